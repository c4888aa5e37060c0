//! What went wrong with a request, in words that can be stored and shown.
//!
//! Only host and port of the target ever appear: paths, queries and headers can hold secrets.

use std::error::Error;
use std::fmt;
use std::io;

use courant_core::delivery::{Failure, FailureClass};
use url::Url;

use super::guard::NotAllowed;

/// Host and port of a target: all of it that may be shown.
#[derive(Clone, Debug)]
pub(super) struct Place {
    host: String,
    port: u16,
}

impl Place {
    /// Where the URL leads; a failure when it is not one that we send to.
    pub(super) fn of(url: &Url) -> Result<Self, Failure> {
        let refused = |text| Err(Failure::new(FailureClass::Destination, text));
        if !matches!(url.scheme(), "http" | "https") {
            return refused("target is not an http or https URL");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refused("target URL holds a user name or password");
        }
        match (url.host_str(), url.port_or_known_default()) {
            (Some(host), Some(port)) => Ok(Self { host: host.to_owned(), port }),
            _ => refused("target URL has no host"),
        }
    }

    /// The guard does not allow it.
    pub(super) fn blocked(&self) -> Failure {
        Failure::new(FailureClass::Blocked, format!("target address is not allowed: {}", self.host))
    }

    /// The whole exchange took too long.
    pub(super) fn late(&self) -> Failure {
        transient(format!("no complete answer in time from {self}"))
    }

    /// The exchange broke.
    pub(super) fn broken(&self, error: &reqwest::Error) -> Failure {
        if find::<NotAllowed>(error).is_some() {
            return self.blocked();
        }
        if error.is_dns() {
            return transient(format!("name not resolved: {}", self.host));
        }
        if let Some(tls) = find::<rustls::Error>(error) {
            return transient(format!("TLS failed with {self}: {tls}"));
        }
        if error.is_timeout() {
            return transient(format!("connection to {self} timed out"));
        }
        match find::<io::Error>(error).map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => transient(format!("connection refused by {self}")),
            Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
                transient(format!("no route to {self}"))
            }
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe) => {
                transient(format!("connection reset by {self}"))
            }
            _ if error.is_connect() => transient(format!("cannot connect to {self}")),
            _ if error.is_builder() => Failure::new(FailureClass::Destination, "request cannot be sent to this URL"),
            _ => transient(format!("no valid HTTP answer from {self}")),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

fn transient(text: String) -> Failure {
    Failure::new(FailureClass::Transient, text)
}

/// The innermost error of this type among the causes. An I/O error that wraps another hides it from `source()`.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut found = None;
    let mut next = Some(error);
    while let Some(error) = next {
        found = error.downcast_ref::<T>().or(found);
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    found
}
