//! Databases to measure on: each empty, its own, and gone after it.

use std::path::Path;

use anyhow::{Context, Result};
use courant_api::access::TenantBootstrap;
use courant_api::{PrincipalId, TenantId};
use courant_server::clock;
use courant_server::ops::access::tenant_bootstrap;
use courant_store::{Change, Changed, Options, Store};
use courant_testkit::TestDatabase;
use tempfile::TempDir;

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Postgres,
    Sqlite,
}

impl Engine {
    pub(crate) const BOTH: [Self; 2] = [Self::Postgres, Self::Sqlite];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
        }
    }
}

/// An empty database and a directory on the same disk. Keep it as long as anything is connected to it.
pub(crate) struct Place {
    url: String,
    dir: TempDir,
    _database: Option<TestDatabase>,
}

impl Place {
    pub(crate) async fn new(engine: Engine) -> Result<Self> {
        // On a disk, which the directory for temporary files need not be.
        let dir = tempfile::Builder::new()
            .prefix("courant-bench-")
            .tempdir_in("/var/tmp")
            .context("a directory in /var/tmp")?;
        Ok(match engine {
            Engine::Postgres => {
                let database = TestDatabase::postgres().await;
                Self { url: database.url().to_owned(), dir, _database: Some(database) }
            }
            Engine::Sqlite => {
                let url = format!("sqlite://{}", dir.path().join("courant.db").display());
                Self { url, dir, _database: None }
            }
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

/// A tenant of an open store and its administrator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tenant {
    pub(crate) id: TenantId,
    pub(crate) principal: PrincipalId,
}

impl Tenant {
    pub(crate) fn change(self) -> Change {
        Change { actor_id: Some(self.principal), ..Change::by_server(self.id, clock::now()) }
    }
}

/// Opens a store as a server does, with a tenant in it.
pub(crate) async fn open(place: &Place) -> Result<(Store, Tenant)> {
    let store = Store::open(&Options::server(place.url())).await?;
    let made = tenant_bootstrap(&store, None, TenantBootstrap { name: "bench".into() }).await?;
    let Changed::Now(made) = made else { anyhow::bail!("the tenant was there before") };
    Ok((store, Tenant { id: made.tenant_id, principal: made.principal_id }))
}
