//! A filtered page of a large journal beside the same page of a small one: what it costs should depend on what it holds.
//!
//! Both journals hold the same matches, in the same order and evenly spread: 40 events of a rare type, and 5,000 events
//! in a subtree of 20 workspaces. The others belong to other workspaces and tenants.

use anyhow::{Result, ensure};
use courant_api::{Cursor, TenantId, WorkspaceId};
use courant_store::{EventQuery, Options, Start, Store};
use uuid::Uuid;

use crate::Scale;
use crate::load::{Client, run as run_load};
use crate::place::{Engine, Place};
use crate::raw::{postgres, sqlite};
use crate::report::Row;
use crate::rounds::{Measure, alternate};

const PAGE: i64 = 200;
const RARE: i64 = 40;
const SUBTREE: i64 = 5_000;

/// What is asked for: a name, the type, whether within the subtree, and how many events the page holds.
const CASES: [(&str, Option<&str>, bool, usize); 3] = [
    ("rare type", Some("rare."), false, 40),
    ("subtree of 20 workspaces", None, true, 200),
    ("rare type in a subtree of 20", Some("rare."), true, 20),
];

/// Tenants 1 to 3, workspaces 1000 to 1499 and events have their numbers as ids; `$rare` and `$step` are how far the
/// events of the rare type and of the subtree are apart.
const POSTGRES: &str = "
    CREATE TEMP TABLE made AS SELECT c.relname, pg_get_indexdef(c.oid) AS text
        FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE x.indrelid = 'event'::regclass AND NOT x.indisprimary;
    DO $$ DECLARE i record; BEGIN FOR i IN SELECT * FROM made LOOP EXECUTE format('DROP INDEX %I', i.relname); END LOOP; END $$;
    INSERT INTO tenant (id, name, created_at) SELECT lpad(to_hex(t), 32, '0')::uuid, 'tenant ' || t, 0 FROM generate_series(1, 3) t;
    INSERT INTO workspace (id, tenant_id, parent_id, name, version, created_at)
        SELECT lpad(to_hex(1000 + w), 32, '0')::uuid, lpad('1', 32, '0')::uuid,
            CASE WHEN w BETWEEN 1 AND 19 THEN lpad(to_hex(1000), 32, '0')::uuid END, 'w' || w, 1, 0
        FROM generate_series(0, 499) w;
    INSERT INTO event (tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, payload, occurred_at)
        SELECT lpad(to_hex(CASE WHEN n % $step = 0 THEN 1 ELSE 1 + n % 3 END), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid,
            CASE WHEN n % $rare = 0 THEN 'rare.seen' ELSE 'kind_' || ((n / 3) % 200) || '.made' END, 1, 'thing', n % 1000,
            CASE WHEN n % $rare = 0 THEN lpad(to_hex(1000 + (n / $rare) % 40), 32, '0')::uuid
                WHEN n % $step = 0 THEN lpad(to_hex(1000 + (n / $step) % 20), 32, '0')::uuid
                WHEN n % 3 = 0 THEN lpad(to_hex(1020 + (n / 3) % 480), 32, '0')::uuid END, '{}', n
        FROM generate_series(1, $events) n;
    DO $$ DECLARE i record; BEGIN FOR i IN SELECT * FROM made LOOP EXECUTE i.text; END LOOP; END $$;
    DROP TABLE made";

const SQLITE: &str = "
    INSERT INTO tenant (id, name, created_at) SELECT unhex(printf('%032x', value)), 'tenant ' || value, 0 FROM json_each('[1,2,3]');
    WITH RECURSIVE s(w) AS (SELECT 0 UNION ALL SELECT w + 1 FROM s WHERE w < 499)
        INSERT INTO workspace (id, tenant_id, parent_id, name, version, created_at)
        SELECT unhex(printf('%032x', 1000 + w)), unhex(printf('%032x', 1)),
            CASE WHEN w BETWEEN 1 AND 19 THEN unhex(printf('%032x', 1000)) END, 'w' || w, 1, 0 FROM s;
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $events)
        INSERT INTO event (tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, payload, occurred_at)
        SELECT unhex(printf('%032x', CASE WHEN n % $step = 0 THEN 1 ELSE 1 + n % 3 END)), unhex(printf('%032x', n)),
            CASE WHEN n % $rare = 0 THEN 'rare.seen' ELSE 'kind_' || ((n / 3) % 200) || '.made' END, 1, 'thing', CAST(n % 1000 AS text),
            CASE WHEN n % $rare = 0 THEN unhex(printf('%032x', 1000 + (n / $rare) % 40))
                WHEN n % $step = 0 THEN unhex(printf('%032x', 1000 + (n / $step) % 20))
                WHEN n % 3 = 0 THEN unhex(printf('%032x', 1020 + (n / 3) % 480)) END, '{}', n
        FROM s";

pub(super) async fn run(engine: Engine, scale: &Scale) -> Result<Vec<Row>> {
    let [many, few] = scale.filtered;
    let titled = CASES.map(|case| (case, format!("{}, page of {PAGE}: {many} events beside {few}", case.0)));
    let wanted: Vec<_> =
        titled.into_iter().filter(|(_, title)| scale.wants(&format!("{} {title}", engine.name()))).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let (large, small) = (Journal::of(engine, many).await?, Journal::of(engine, few).await?);
    let mut rows = Vec::new();
    for ((_, prefix, subtree, found), title) in wanted {
        let measure = async |journal: &Journal| -> Result<Measure> {
            Ok(run_load(vec![journal.page(prefix, subtree, found)?], scale.until).await?.0)
        };
        let pairs = alternate(scale.rounds, async || measure(&large).await, async || measure(&small).await).await?;
        rows.push(Row::of_p50(engine.name(), title, "pages", &pairs));
    }
    Ok(rows)
}

struct Journal {
    store: Store,
    _place: Place,
}

impl Journal {
    async fn of(engine: Engine, events: i64) -> Result<Self> {
        ensure!(events % SUBTREE == 0, "{events} events cannot be spread evenly");
        let place = Place::new(engine).await?;
        let options = Options::server(place.url());
        drop(Store::open(&options).await?);
        let (rare, step) = ((events / RARE).to_string(), (events / SUBTREE).to_string());
        let text = if engine == Engine::Postgres { POSTGRES } else { SQLITE };
        let text = text.replace("$rare", &rare).replace("$step", &step).replace("$events", &events.to_string());
        match engine {
            Engine::Postgres => {
                let connection = postgres::Connection::open(place.url()).await?;
                connection.batch(&text).await?;
                connection.batch("VACUUM ANALYZE event").await?;
                connection.batch("CHECKPOINT").await?;
            }
            Engine::Sqlite => sqlite::fill_journal(place.url(), &text)?,
        }
        // As a server that starts on it.
        Ok(Self { store: Store::open(&options).await?, _place: place })
    }

    fn page(&self, prefix: Option<&str>, subtree: bool, found: usize) -> Result<Page> {
        let tenant = TenantId(Uuid::from_u128(1));
        let query = EventQuery {
            prefixes: prefix.map(str::to_owned).into_iter().collect(),
            workspace_id: subtree.then(|| WorkspaceId(Uuid::from_u128(1000))),
            entity_type: None,
            entity_id: None,
            start: Start::After(Cursor::decode(&self.store.journal_cursor(tenant, 0))?),
            limit: PAGE,
        };
        Ok(Page { store: self.store.clone(), tenant, query, found })
    }
}

/// Reads the same page over and over.
struct Page {
    store: Store,
    tenant: TenantId,
    query: EventQuery,
    found: usize,
}

impl Client for Page {
    async fn call(&mut self) -> Result<u64> {
        let page = self.store.event_page(self.tenant, self.query.clone()).await?;
        ensure!(page.items.len() == self.found, "{} events, not {}", page.items.len(), self.found);
        Ok(1)
    }
}
