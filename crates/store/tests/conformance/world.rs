//! What a case starts from: an empty database, tenants in it, and short ways to say the usual.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use courant_api::access::{PrincipalCreate, PrincipalKind, WorkspaceCreate};
use courant_api::event::EventPage;
use courant_api::{
    Cursor, Event, EventId, IntegrationId, Permission, PrincipalId, Resource, TenantId, Timestamp, WorkspaceId,
};
use courant_core::access::{Grant, Reach};
use courant_store::{
    Announced, Authority, Caller, Change, Changed, Error, EventDraft, EventQuery, Integration, KeyDraft, Options,
    Place, Rights, ScanBatch, Start, Store,
};
use courant_testkit::TestDatabase;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Chance that is the same in every run (xorshift).
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

/// Which database a case runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Postgres,
    Sqlite,
}

/// Databases to use again: making one takes PostgreSQL longer than most cases do.
#[derive(Clone)]
pub struct Ground {
    engine: Engine,
    used: Arc<Mutex<Vec<TestDatabase>>>,
}

impl Ground {
    pub fn new(engine: Engine) -> Self {
        Self { engine, used: Arc::default() }
    }

    /// A database with nothing in it.
    pub async fn database(&self) -> TestDatabase {
        let used = self.used.lock().unwrap().pop();
        match (self.engine, used) {
            (Engine::Postgres, Some(database)) => {
                let raw = Raw::open(database.url()).await;
                raw.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
                database
            }
            (Engine::Postgres, None) => TestDatabase::postgres().await,
            (Engine::Sqlite, _) => TestDatabase::sqlite(),
        }
    }

    pub async fn world(&self) -> World {
        let database = self.database().await;
        let store = Store::open(&Options::server(database.url())).await.unwrap();
        World { store, database: Some(database), ground: self.clone(), names: AtomicU32::new(0) }
    }
}

/// An empty database and a store on it.
pub struct World {
    pub store: Store,
    pub ground: Ground,
    /// `Some` until dropped.
    database: Option<TestDatabase>,
    names: AtomicU32,
}

impl Drop for World {
    fn drop(&mut self) {
        self.ground.used.lock().unwrap().extend(self.database.take().filter(TestDatabase::is_postgres));
    }
}

/// A tenant with its first principal, who may do everything.
#[derive(Clone)]
pub struct Tenant {
    pub id: TenantId,
    pub admin: PrincipalId,
    pub caller: Caller,
}

/// The n-th second of the test's own time.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_micros((1_800_000_000 + second) * 1_000_000)
}

/// A key draft whose hash is its name.
pub fn key(name: &str) -> KeyDraft {
    let mut hash = [0; 32];
    hash[..name.len()].copy_from_slice(name.as_bytes());
    KeyDraft { secret: format!("secret of {name}"), hash, prefix: format!("ck_{name}"), expires_at: None }
}

/// An event id that the case makes up.
pub fn id(n: u128) -> EventId {
    EventId(Uuid::from_u128(n))
}

pub fn draft(event_type: &str, entity_id: impl Into<String>) -> EventDraft {
    EventDraft {
        id: None,
        event_type: event_type.into(),
        schema_version: 1,
        entity_type: event_type.split('.').next().unwrap().into(),
        entity_id: entity_id.into(),
        workspace_id: None,
        payload: "{}".into(),
        correlation_id: None,
        causation_id: None,
    }
}

/// Every event from the first one on, in pages of `limit`.
pub fn query(limit: i64) -> EventQuery {
    EventQuery {
        prefixes: Vec::new(),
        workspace_id: None,
        entity_type: None,
        entity_id: None,
        start: Start::First,
        limit,
    }
}

pub fn after(cursor: &str) -> Start {
    Start::After(Cursor::decode(cursor).unwrap())
}

/// The ids of what events are about, in their order.
pub fn entities(events: &[Event]) -> Vec<&str> {
    events.iter().map(|e| e.entity_id.as_str()).collect()
}

/// The types of events, in their order.
pub fn types(events: &[Event]) -> Vec<&str> {
    events.iter().map(|e| e.event_type.as_str()).collect()
}

pub fn payload(event: &Event) -> serde_json::Value {
    serde_json::from_str(event.payload.text()).unwrap()
}

/// The result of a change that happened now.
#[track_caller]
pub fn now<T>(changed: Changed<T>) -> T {
    match changed {
        Changed::Now(value) => value,
        Changed::Before(body) => panic!("replayed {body}"),
    }
}

#[track_caller]
pub fn not_found<T>(outcome: Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::NotFound(_))), "{:?}", outcome.err());
}

#[track_caller]
pub fn conflict<T>(outcome: Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::Conflict(_))), "{:?}", outcome.err());
}

#[track_caller]
pub fn denied<T>(outcome: Result<T, Error>) {
    assert!(matches!(outcome, Err(Error::Denied { .. })), "{:?}", outcome.err());
}

impl World {
    pub fn url(&self) -> &str {
        self.database.as_ref().unwrap().url()
    }

    pub fn is_postgres(&self) -> bool {
        self.ground.engine == Engine::Postgres
    }

    /// Every row of its database.
    pub async fn contents(&self) -> Vec<String> {
        self.database.as_ref().unwrap().contents().await
    }

    /// A name that nothing else in this world has.
    pub fn name(&self, what: &str) -> String {
        format!("{what}-{}", self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// A new tenant; appends four events.
    pub async fn tenant(&self) -> Tenant {
        let (name, key) = (self.name("tenant"), key(&self.name("key")));
        let hash = key.hash;
        let change = Change::by_server(TenantId(Uuid::nil()), at(0));
        let made = now(self.store.tenant_bootstrap(change, name, key).await.unwrap());
        let caller = self.store.caller_by_key(hash, at(0)).await.unwrap().unwrap();
        Tenant { id: made.tenant_id, admin: made.principal_id, caller }
    }

    pub async fn append(&self, tenant: &Tenant, drafts: Vec<EventDraft>) -> Vec<courant_store::AppendOutcome> {
        self.store.event_append(tenant.change(), drafts).await.unwrap()
    }

    pub async fn workspace(&self, tenant: &Tenant, parent_id: Option<WorkspaceId>) -> WorkspaceId {
        let new = WorkspaceCreate { name: self.name("workspace"), parent_id };
        now(self.store.workspace_create(tenant.change(), new).await.unwrap()).id
    }

    pub async fn principal(&self, tenant: &Tenant) -> PrincipalId {
        let new = PrincipalCreate { kind: PrincipalKind::Service, display_name: self.name("principal") };
        now(self.store.principal_create(tenant.change(), new).await.unwrap()).id
    }

    pub async fn page(&self, tenant: &Tenant, query: EventQuery) -> EventPage {
        self.store.event_page(tenant.id, query).await.unwrap()
    }

    /// Every readable event of the tenant.
    pub async fn events(&self, tenant: &Tenant) -> Vec<Event> {
        let page = self.page(tenant, query(1000)).await;
        assert!(!page.has_more);
        page.items
    }

    /// The cursor of the journal's end.
    pub async fn end(&self, tenant: &Tenant) -> String {
        self.page(tenant, EventQuery { start: Start::Tail, ..query(1) }).await.next_cursor
    }

    /// What was appended after a cursor.
    pub async fn since(&self, tenant: &Tenant, cursor: &str) -> Vec<Event> {
        self.page(tenant, EventQuery { start: after(cursor), ..query(1000) }).await.items
    }

    /// Announces what has been appended since the last time; how many deliveries that gave.
    pub async fn announce(&self, now: Timestamp) -> u64 {
        let from = self.store.announcer_place().await.unwrap();
        let page = self.store.journal_scan(from.seq, 1000).await.unwrap();
        assert!(!page.has_more);
        match self.store.announce(from, place(&page), page.events, None, now).await.unwrap() {
            Announced::Moved { deliveries, .. } => deliveries,
            Announced::Stale => panic!("somebody else announces here"),
        }
    }

    /// A connection of the test's own to the same database.
    pub async fn raw(&self) -> Raw {
        Raw::open(self.url()).await
    }
}

impl Tenant {
    pub fn change(&self) -> Change {
        self.change_at(0)
    }

    pub fn change_at(&self, second: i64) -> Change {
        Change {
            actor_id: Some(self.admin),
            rights: self.caller.rights.clone(),
            ..Change::by_server(self.id, at(second))
        }
    }

    /// A change by somebody who holds just these grants.
    pub fn change_with(&self, grants: &[(Permission, Resource)]) -> Change {
        Change { rights: self.caller_with(grants).rights, ..self.change() }
    }

    pub fn caller_with(&self, grants: &[(Permission, Resource)]) -> Caller {
        let grants = grants.iter().map(|(permission, resource)| Grant::new(*permission, resource.clone())).collect();
        let rights = Rights::new(&Authority::Grants(Reach::Exact), self.id, self.admin, grants);
        Caller { rights, ..self.caller.clone() }
    }

    /// An integration that wants events of these prefixes.
    pub fn integration(&self, name: &str, prefixes: &[&str]) -> Integration {
        Integration {
            journal_types: prefixes.iter().map(|p| (*p).to_owned()).collect(),
            ..Integration::new(IntegrationId(fresh(name)), name.into(), "webhook".into(), self.admin, at(0))
        }
    }
}

/// A new id for `name`; ids of later names are greater within a process.
fn fresh(name: &str) -> Uuid {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let rest = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()).as_u128() >> 32;
    Uuid::from_u128(u128::from(count) << 96 | rest)
}

/// Where the server's own consumer stands after a batch.
pub fn place(batch: &ScanBatch) -> Place {
    Place { incarnation: batch.incarnation, seq: batch.next }
}

/// A connection beside the store, for what an intruder, an operator or a control would do.
pub enum Raw {
    Postgres { client: tokio_postgres::Client, _connection: JoinSet<()> },
    Sqlite(Mutex<rusqlite::Connection>),
}

impl Raw {
    pub async fn open(url: &str) -> Self {
        if let Some(path) = url.strip_prefix("sqlite://") {
            return Self::Sqlite(Mutex::new(rusqlite::Connection::open(path).unwrap()));
        }
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // Its end is the client's end, or the client's calls say why.
            let _ = connection.await;
        });
        Self::Postgres { client, _connection: tasks }
    }

    /// Runs statements; the database's refusal in words.
    pub async fn run(&self, sql: &str) -> Result<(), String> {
        match self {
            Self::Postgres { client, .. } => client
                .batch_execute(sql)
                .await
                .map_err(|e| e.as_db_error().map_or(e.to_string(), |e| e.message().to_owned())),
            Self::Sqlite(connection) => connection.lock().unwrap().execute_batch(sql).map_err(|e| e.to_string()),
        }
    }

    /// Raises every tenant's floor, as a prune does before it deletes.
    pub async fn raise_floor(&self, floor: i64) {
        self.run(&format!(
            "UPDATE journal SET deleted_seq = {floor};
            INSERT INTO tenant_journal SELECT id, {floor}, {floor}, 0 FROM tenant WHERE true
            ON CONFLICT (tenant_id) DO UPDATE SET floor_seq = {floor}"
        ))
        .await
        .unwrap();
    }

    /// The one number that a query answers.
    pub async fn number(&self, sql: &str) -> i64 {
        match self {
            Self::Postgres { client, .. } => client.query_one(sql, &[]).await.unwrap().get(0),
            Self::Sqlite(connection) => connection.lock().unwrap().query_row(sql, [], |row| row.get(0)).unwrap(),
        }
    }

    /// The tenant's committed events: where each stands, its type and its workspace.
    pub async fn placed(&self, tenant: TenantId) -> Vec<(i64, String, Option<WorkspaceId>)> {
        let place = |id: Option<Uuid>| id.map(WorkspaceId);
        match self {
            Self::Postgres { client, .. } => {
                let text = "SELECT seq, type, workspace_id FROM event WHERE tenant_id = $1 ORDER BY seq";
                let rows = client.query(text, &[&tenant.uuid()]).await.unwrap();
                rows.iter().map(|row| (row.get(0), row.get(1), place(row.get(2)))).collect()
            }
            Self::Sqlite(connection) => {
                let connection = connection.lock().unwrap();
                let text = "SELECT seq, type, workspace_id FROM event WHERE tenant_id = ?1 ORDER BY seq";
                let mut statement = connection.prepare(text).unwrap();
                let id = |bytes: Option<Vec<u8>>| bytes.map(|b| Uuid::from_slice(&b).unwrap());
                let rows = statement.query_map([tenant.uuid().as_bytes()], |row| {
                    Ok((row.get(0)?, row.get(1)?, place(id(row.get(2)?))))
                });
                rows.unwrap().map(Result::unwrap).collect()
            }
        }
    }

    /// The numbers in the first column of a query's rows.
    pub async fn numbers(&self, sql: &str) -> Vec<i64> {
        match self {
            Self::Postgres { client, .. } => {
                client.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
            }
            Self::Sqlite(connection) => {
                let connection = connection.lock().unwrap();
                let mut statement = connection.prepare(sql).unwrap();
                statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
            }
        }
    }
}
