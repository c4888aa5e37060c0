//! Our server as it ships, in this process, spoken to over HTTP.

use anyhow::{Context, Result};
use courant_api::access::TenantBootstrap;
use courant_api::catalog::EventTypeRegister;
use courant_api::{PrincipalId, TenantId};
use courant_client::Client;
use courant_server::config::{Config, DatabaseArgs, ServeArgs, ServerArgs};
use courant_server::ops::access::tenant_bootstrap;
use courant_server::outbound::Egress;
use courant_server::secrets::Secret;
use courant_server::serve::{Parts, Running};
use courant_store::Changed;

use crate::place::{Engine, Place};
use crate::sample::{ENTITY_TYPE, EVENT_TYPE, schema};

/// A running server with a tenant and the sample's event type.
pub(crate) struct Ours {
    pub(crate) running: Running,
    pub(crate) client: Client,
    pub(crate) key: String,
    pub(crate) tenant: TenantId,
    pub(crate) principal: PrincipalId,
    pub(crate) place: Place,
}

impl Ours {
    pub(crate) async fn start(engine: Engine) -> Result<Self> {
        let place = Place::new(engine).await?;
        let running = launch(&place).await?;
        let made = tenant_bootstrap(&running.app.store, None, TenantBootstrap { name: "bench".into() }).await?;
        let Changed::Now(made) = made else { anyhow::bail!("the tenant was there before") };
        let key = made.api_key.context("no key")?;
        let client = Client::builder(format!("http://{}", running.address)).api_key(&key).build()?;
        let body = EventTypeRegister { entity_type: ENTITY_TYPE.into(), description: None, schema: schema() };
        client.register_event_type(EVENT_TYPE, 1, &body).await?;
        Ok(Self { running, client, key, tenant: made.tenant_id, principal: made.principal_id, place })
    }

    /// Another server on the same database.
    pub(crate) async fn another(&self) -> Result<Running> {
        launch(&self.place).await
    }

    pub(crate) async fn stop(self) {
        self.running.stop().await;
        drop(self.place);
    }
}

async fn launch(place: &Place) -> Result<Running> {
    let args = ServeArgs {
        server: ServerArgs {
            listen: Some(([127, 0, 0, 1], 0).into()),
            data_dir: Some(place.dir().to_owned()),
            ..ServerArgs::default()
        },
        database: DatabaseArgs { database_url: Some(Secret::new(place.url().into())), ..DatabaseArgs::default() },
        ..ServeArgs::default()
    };
    let config = Config::resolve(&args, &|_| None, None)?;
    Running::start(
        &config,
        Parts {
            ring: None,
            egress: Egress::default().allow_loopback(),
            sockets: courant_server::http::socket::Limits::default(),
        },
    )
    .await
}
