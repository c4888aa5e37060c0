//! The resolver of guarded connections: a name is looked up once and only checked addresses are handed on.
//!
//! It never hands over an address that it has not checked, and never some of a name's addresses when one is not
//! allowed: a name that leads both outside and inside is an attack or a mistake, not a choice.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::egress::Egress;

/// A look-up under way.
pub(super) type LookingUp = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// How a name becomes addresses.
pub(super) type Lookup = Arc<dyn Fn(String) -> LookingUp + Send + Sync>;

/// Asks the operating system.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let sockets = tokio::net::lookup_host((name, 0)).await?;
            Ok(sockets.map(|socket| socket.ip()).collect())
        })
    })
}

/// The name leads to an address that may not be reached.
#[derive(Debug, thiserror::Error)]
#[error("target address is not allowed")]
pub(super) struct NotAllowed;

/// Resolves names and refuses those that lead where the policy does not allow.
pub(super) struct Guard {
    pub(super) egress: Arc<Egress>,
    pub(super) lookup: Lookup,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let egress = Arc::clone(&self.egress);
        let name = name.as_str().to_owned();
        let looking_up = (self.lookup)(name.clone());
        Box::pin(async move {
            let addresses = looking_up.await?;
            if addresses.is_empty() {
                return Err(io::Error::from(io::ErrorKind::NotFound).into());
            }
            if !egress.allows_name(&name) && !addresses.iter().all(|&ip| egress.allows_address(ip)) {
                return Err(NotAllowed.into());
            }
            // Port 0 is replaced by the port of the request.
            let sockets = addresses.into_iter().map(|ip| SocketAddr::new(ip, 0));
            Ok(Box::new(sockets) as Addrs)
        })
    }
}
