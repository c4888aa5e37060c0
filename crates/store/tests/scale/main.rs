//! Journals of twenty thousand and of two million events: what a page costs depends on what it holds, not on the size.
//!
//! The work is counted, not timed: entries of indexes on PostgreSQL, by the plans that prepared statements get after many
//! runs, and steps of its machine on SQLite. To see it fail, let `find` in `journal/page.rs` walk for every filter.

#![expect(clippy::unwrap_used, reason = "a test says what it met by panicking")]

use std::collections::BTreeMap;

use courant_api::{Cursor, TenantId, WorkspaceId};
use courant_store::{EventQuery, Options, Start, Store};
use courant_testkit::TestDatabase;
use uuid::Uuid;

const LARGE: i64 = 2_000_000;
const SMALL: i64 = 20_000;
/// Events of the rare type in either journal.
const RARE: i64 = 40;
const PAGE: i64 = 200;
/// Runs before a plan is judged: by then PostgreSQL has settled for the plan that does not know the parameters.
const RUNS: usize = 8;

/// Tenant t (1 to 3), workspace w (0 to 499) and event n have these numbers as ids.
fn tenant() -> TenantId {
    TenantId(Uuid::from_u128(1))
}

fn workspace(n: u128) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(1000 + n))
}

/// 500 workspaces: the first holds the next 19, the others stand alone.
const POSTGRES: &str = "
    INSERT INTO tenant (id, name, created_at) SELECT lpad(to_hex(t), 32, '0')::uuid, 'tenant ' || t, 0 FROM generate_series(1, 3) t;
    INSERT INTO workspace (id, tenant_id, parent_id, name, version, created_at)
        SELECT lpad(to_hex(1000 + w), 32, '0')::uuid, lpad('1', 32, '0')::uuid,
            CASE WHEN w BETWEEN 1 AND 19 THEN lpad(to_hex(1000), 32, '0')::uuid END, 'w' || w, 1, 0
        FROM generate_series(0, 499) w;
    INSERT INTO event (tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, payload, occurred_at)
        SELECT lpad(to_hex(CASE WHEN n % $every = 0 THEN 1 ELSE 1 + n % 3 END), 32, '0')::uuid, lpad(to_hex(n), 32, '0')::uuid,
            CASE WHEN n % $every = 0 THEN 'rare.seen' ELSE 'kind_' || ((n / 3) % 200) || '.made' END, 1, 'thing', n % 1000,
            CASE WHEN n % $every = 0 THEN lpad(to_hex(1000 + (n / $every) % 40), 32, '0')::uuid
                WHEN n % 3 = 0 THEN lpad(to_hex(1000 + (n / 3) % 500), 32, '0')::uuid END, '{}', n
        FROM generate_series(1, $events) n";

const SQLITE: &str = "
    INSERT INTO tenant (id, name, created_at) SELECT unhex(printf('%032x', value)), 'tenant ' || value, 0 FROM json_each('[1,2,3]');
    WITH RECURSIVE s(w) AS (SELECT 0 UNION ALL SELECT w + 1 FROM s WHERE w < 499)
        INSERT INTO workspace (id, tenant_id, parent_id, name, version, created_at)
        SELECT unhex(printf('%032x', 1000 + w)), unhex(printf('%032x', 1)),
            CASE WHEN w BETWEEN 1 AND 19 THEN unhex(printf('%032x', 1000)) END, 'w' || w, 1, 0 FROM s;
    WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $events)
        INSERT INTO event (tenant_id, id, type, schema_version, entity_type, entity_id, workspace_id, payload, occurred_at)
        SELECT unhex(printf('%032x', CASE WHEN n % $every = 0 THEN 1 ELSE 1 + n % 3 END)), unhex(printf('%032x', n)),
            CASE WHEN n % $every = 0 THEN 'rare.seen' ELSE 'kind_' || ((n / 3) % 200) || '.made' END, 1, 'thing', CAST(n % 1000 AS text),
            CASE WHEN n % $every = 0 THEN unhex(printf('%032x', 1000 + (n / $every) % 40))
                WHEN n % 3 = 0 THEN unhex(printf('%032x', 1000 + (n / 3) % 500)) END, '{}', n
        FROM s";

/// Fills the journal without its indexes and triggers and makes them again, which is quicker.
async fn fill(database: &TestDatabase, events: i64) {
    let of = |text: &str| text.replace("$every", &(events / RARE).to_string()).replace("$events", &events.to_string());
    if let Some(path) = database.url().strip_prefix("sqlite://") {
        let raw = rusqlite::Connection::open(path).unwrap();
        raw.execute_batch("PRAGMA synchronous = off; PRAGMA cache_size = -200000; BEGIN").unwrap();
        let list = "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = 'event' AND type <> 'table' AND sql IS NOT NULL";
        let mut found = raw.prepare(list).unwrap();
        let text = |row: &rusqlite::Row<'_>, i| row.get::<_, String>(i);
        let found: Vec<_> = found
            .query_map([], |row| Ok((text(row, 0)?, text(row, 1)?, text(row, 2)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for (kind, name, _) in &found {
            raw.execute_batch(&format!("DROP {kind} {name}")).unwrap();
        }
        raw.execute_batch(&of(SQLITE)).unwrap();
        for (_, _, sql) in &found {
            raw.execute_batch(sql).unwrap();
        }
        raw.execute_batch("COMMIT").unwrap();
        return;
    }
    let (client, connection) = tokio_postgres::connect(database.url(), tokio_postgres::NoTls).await.unwrap();
    let filling = async {
        let list = "SELECT c.relname::text, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
            WHERE i.indrelid = 'event'::regclass AND NOT i.indisprimary";
        let found = client.query(list, &[]).await?;
        for row in &found {
            client.batch_execute(&format!("DROP INDEX {}", row.get::<_, String>(0))).await?;
        }
        client.batch_execute(&of(POSTGRES)).await?;
        for row in &found {
            client.batch_execute(row.get(1)).await?;
        }
        // What the planner knows must not lead it astray either.
        client.batch_execute("VACUUM ANALYZE event").await
    };
    tokio::select! {
        filled = filling => filled.unwrap(),
        ended = connection => panic!("the connection ended: {ended:?}"),
    }
}

fn query(prefixes: &[&str], workspace_id: Option<WorkspaceId>, start: Start) -> EventQuery {
    let prefixes = prefixes.iter().map(|p| (*p).to_owned()).collect();
    EventQuery { prefixes, workspace_id, entity_type: None, entity_id: None, start, limit: PAGE }
}

/// What the statements examined that read pages; a look at the horizon is everybody's.
fn work() -> BTreeMap<&'static str, u64> {
    Store::examined().into_iter().filter(|(name, n)| *n > 0 && name.starts_with("journal.")).collect()
}

/// How many events the page holds, and what the last of many runs of it examined.
async fn cost(store: &Store, query: &EventQuery) -> (usize, u64, bool) {
    let mut last = (0, 0, false);
    for _ in 0..RUNS {
        let before: u64 = work().values().sum();
        let page = store.event_page(tenant(), query.clone()).await.unwrap();
        last = (page.items.len(), work().values().sum::<u64>() - before, page.has_more);
    }
    last
}

/// What each page held and examined, in words.
async fn pages_cost_what_they_hold(database: TestDatabase, events: i64) -> Vec<String> {
    let mut said = Vec::new();
    let store = Store::open(&Options::server(database.url())).await.unwrap();
    fill(&database, events).await;
    let postgres = database.is_postgres();
    // An index entry on PostgreSQL, and the steps that one costs on SQLite.
    let (row, fixed) = if postgres { (1, 60) } else { (90, 8_000) };
    let cursor = |seq: i64| Start::After(Cursor { seq, ..Cursor::decode(&store.journal_cursor(tenant(), 0)).unwrap() });
    let rare = usize::try_from(RARE).unwrap();
    let one = (1..=events / 3).filter(|n| n % 200 == 7).count().min(200);
    let top = Some(workspace(0));
    let end = cursor(events);
    let cases: [(&str, EventQuery, usize, u64); 9] = [
        ("a rare type", query(&["rare."], None, Start::First), rare, 40),
        ("a rare type from the middle", query(&["rare."], None, cursor(events / 2)), rare / 2, 40),
        ("a rare type backwards", query(&["rare."], None, Start::Tail), rare, 40),
        // Each of the twenty ranges may hold the whole page.
        ("a subtree", query(&[], top, Start::First), 200, 20 * 201 + 201),
        ("a subtree backwards", query(&[], top, Start::Tail), 200, 20 * 201 + 201),
        // Each of the forty is looked for in the subtree of twenty.
        ("a rare type in a subtree", query(&["rare."], top, Start::First), rare / 2, 40 * 20),
        ("one type", query(&["kind_7.made"], None, Start::First), one, 2 * 201),
        ("nothing, from the first event on", query(&["never."], None, Start::First), 0, 0),
        ("a rare type at the end", query(&["rare."], None, end), 0, 0),
    ];
    for (what, query, matches, entries) in cases {
        let (found, examined, _) = cost(&store, &query).await;
        said.push(format!("{what}: {found} events, examined {examined}"));
        assert_eq!(found, matches, "{what}");
        assert!(examined <= entries * row + fixed, "{what}: {examined} is more than {entries} times {row} and {fixed}");
    }

    // A reader whose filter never matches looks at nothing when it asks again.
    for never in [query(&["never."], None, Start::First), query(&["never."], top, Start::First)] {
        let page = store.event_page(tenant(), never.clone()).await.unwrap();
        assert_eq!((page.items.len(), page.has_more), (0, false));
        let next = Start::After(Cursor::decode(&page.next_cursor).unwrap());
        let runs = |store: &Store| -> BTreeMap<_, _> { store.statements().into_iter().collect() };
        let (before, ran) = (work(), runs(&store));
        let again = store.event_page(tenant(), EventQuery { start: next, ..never }).await.unwrap();
        assert_eq!((again.items.len(), again.next_cursor), (0, page.next_cursor));
        let looked: Vec<_> =
            runs(&store).into_iter().filter(|(name, n)| *n > ran[name]).map(|(name, _)| name).collect();
        let harmless = ["journal.FLOOR", "journal.WORKSPACE_EXISTS", "horizon.postgres", "horizon.sqlite"];
        assert!(looked.iter().all(|name| harmless.contains(name)), "{looked:?}");
        if postgres {
            assert_eq!(work(), before);
        }
    }
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_costs_what_it_holds_in_a_journal_of_any_size() {
    Store::examine();
    for events in [SMALL, LARGE] {
        let sqlite = pages_cost_what_they_hold(TestDatabase::sqlite(), events).await;
        let postgres = pages_cost_what_they_hold(TestDatabase::postgres().await, events).await;
        println!("{events} events: steps on SQLite: {sqlite:#?}\nindex entries on PostgreSQL: {postgres:#?}");
    }
}
