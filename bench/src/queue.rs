//! The outbox without a network: claim a batch, mark all of it as sent, until nothing is left.

use anyhow::{Result, ensure};
use courant_api::notify::Notification;
use courant_api::{DeliveryId, Event, IntegrationId};
use courant_core::announce::{As, News};
use courant_server::{clock, ids};
use courant_store::{EventQuery, Integration, Mark, Outcome, Start, Store};
use uuid::Uuid;

use crate::Scale;
use crate::load::{Client, Until, run as run_load, run_threads};
use crate::place::{self, Engine, Place, Tenant};
use crate::raw::{postgres, sqlite};
use crate::report::Row;
use crate::rounds::{Measure, alternate};
use crate::sample;
use crate::seam::{CLIENTS, named};

/// Deliveries a claim.
pub(crate) const BATCH: i64 = 100;

struct Queue {
    store: Store,
    server: Uuid,
}

impl Client for Queue {
    async fn call(&mut self) -> Result<u64> {
        let claim =
            self.store.delivery_claim(self.server, clock::now(), BATCH, courant_store::Lanes::default()).await?;
        let marks: Vec<Mark> =
            claim.deliveries.iter().map(|d| Mark { attempt: d.attempt.clone(), outcome: Outcome::Sent }).collect();
        if marks.is_empty() {
            return Ok(0);
        }
        let landed = self.store.delivery_finish(marks, clock::now()).await?;
        ensure!(landed.iter().all(|landed| *landed), "a mark did not land");
        Ok(landed.len() as u64)
    }
}

pub(crate) async fn run(engine: Engine, scale: &Scale) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for clients in CLIENTS {
        let title = format!("claim and mark, batches of {BATCH}, {}", named(clients));
        if !scale.wants(&format!("{} {title}", engine.name())) {
            continue;
        }
        let (here, there) = (Outbox::new(engine).await?, Outbox::new(engine).await?);
        let ours = async || -> Result<Measure> {
            here.fill(scale.outbox).await?;
            let all = (0..clients).map(|_| Queue { store: here.store.clone(), server: ids::new_id() }).collect();
            Ok(run_load(all, Until::Empty).await?.0)
        };
        let raw = async || {
            there.fill(scale.outbox).await?;
            there.drain_without_us(clients).await
        };
        let pairs = alternate(scale.rounds, ours, raw).await?;
        rows.push(Row::of(engine.name(), title, "deliveries", &pairs));
    }
    Ok(rows)
}

/// A database with one integration, whose deliveries are queued.
struct Outbox {
    engine: Engine,
    place: Place,
    store: Store,
    tenant: Tenant,
    integration: IntegrationId,
    payload: String,
}

impl Outbox {
    async fn new(engine: Engine) -> Result<Self> {
        let place = Place::new(engine).await?;
        let (store, tenant) = place::open(&place).await?;
        let integration = integration(tenant);
        let id = integration.id;
        store.integration_create(tenant.change(), integration, None).await?;
        store.event_append(tenant.change(), vec![sample::draft(1)]).await?;
        let payload = serde_json::to_string(&told(&newest(&store, tenant).await?))?;
        Ok(Self { engine, place, store, tenant, integration: id, payload })
    }

    async fn fill(&self, deliveries: usize) -> Result<()> {
        let (tenant, integration) = (self.tenant.id.uuid(), self.integration.uuid());
        match self.engine {
            Engine::Postgres => {
                postgres::fill_outbox(self.place.url(), deliveries, tenant, integration, &self.payload).await
            }
            Engine::Sqlite => sqlite::fill_outbox(self.place.url(), deliveries, tenant, integration, &self.payload),
        }
    }

    async fn drain_without_us(&self, clients: usize) -> Result<Measure> {
        match self.engine {
            Engine::Postgres => {
                let mut all = Vec::new();
                for _ in 0..clients {
                    all.push(postgres::Queue::new(self.place.url()).await?);
                }
                Ok(run_load(all, Until::Empty).await?.0)
            }
            Engine::Sqlite => {
                let writer = sqlite::Writer::open(self.place.url())?;
                let mut all: Vec<_> = (0..clients).map(|_| sqlite::Queue::new(writer.clone())).collect();
                run_threads(&mut all, Until::Empty)
            }
        }
    }
}

async fn newest(store: &Store, tenant: Tenant) -> Result<Event> {
    let query = EventQuery {
        prefixes: Vec::new(),
        workspace_id: None,
        entity_type: None,
        entity_id: None,
        start: Start::Tail,
        limit: 1,
    };
    let mut page = store.event_page(tenant.id, query).await?;
    page.items.pop().ok_or_else(|| anyhow::anyhow!("the journal is empty"))
}

fn told(event: &Event) -> Notification {
    News::of(event).notification(DeliveryId(ids::new_id()), As::Journal, None)
}

fn integration(tenant: Tenant) -> Integration {
    let id = IntegrationId(ids::new_id());
    Integration {
        journal_types: vec!["build.".into()],
        ..Integration::new(id, "bench".into(), "webhook".into(), tenant.principal, clock::now())
    }
}
