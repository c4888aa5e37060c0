//! Retention on a schedule: what the server deletes by itself, what it waits for, and what it exports first.

use courant_api::event::EventPage;
use courant_api::{Cursor, Event, Timestamp};
use courant_store::{Change, EventDraft, PruneRequest, Store, WhenBlocked};

use super::{announced, in_seconds};
use crate::support::{Tenant, Value, World, eventually, json, on_both_databases};

/// Appends events that are as old as the time says.
async fn old(world: &World, tenant: &Tenant, seconds: i64, count: usize) {
    let now = Timestamp::from_micros(courant_server::clock::now().micros() - seconds * 1_000_000);
    let drafts = (0..count).map(|n| EventDraft {
        id: None,
        event_type: "order.made".into(),
        schema_version: 1,
        entity_type: "order".into(),
        entity_id: format!("old_{n}"),
        workspace_id: None,
        payload: r#"{ "name" : "as it was written",  "amount": 7 }"#.into(),
        correlation_id: None,
        causation_id: None,
    });
    world.app.store.event_append(Change::by_server(tenant.id.parse().unwrap(), now), drafts.collect()).await.unwrap();
}

/// The same database with a server that keeps events for an hour.
async fn keeping(world: World, setup: &[(&str, &str)]) -> World {
    let settings: Vec<_> = [("COURANT_JOURNAL_RETENTION", "1h")].iter().chain(setup).copied().collect();
    world.restart(&settings).await
}

/// A tenant whose every event but the last is old: it was made by events that are young, which are first pruned away.
async fn tenant(world: &World, count: usize) -> Tenant {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    announced(world).await;
    let body = json!({ "beforeSeconds": 0, "maxEvents": 1000 });
    tenant.post("/operations/journal:prune", &body).await.expect(200);
    clear(&world.app.store, &tenant).await;
    old(world, &tenant, 7200, count).await;
    announced(world).await;
    tenant
}

/// Deletes the event that told of the prune.
async fn clear(store: &Store, tenant: &Tenant) {
    let id = tenant.id.parse().unwrap();
    let change = Change::by_server(id, Timestamp::from_micros(courant_server::clock::now().micros() - 7_200_000_000));
    let request = PruneRequest {
        before: courant_server::clock::now(),
        max_events: 1000,
        dry_run: false,
        blocked: WhenBlocked::Refuse,
    };
    eventually("the announcer", async || store.prune_begin(change.clone(), request).await.ok()).await;
    store.prune_step(change, i64::MAX).await.unwrap();
}

/// The tenant at another server.
fn at(tenant: &Tenant, server: &World) -> Tenant {
    Tenant { api: server.api.with(&tenant.key), ..tenant.clone() }
}

/// Every event, its payload as the answer spells it, without its cursor: a server that starts on
/// SQLite spells those anew.
async fn as_written(tenant: &Tenant) -> Vec<Event> {
    let (mut all, mut path) = (Vec::new(), "/events?limit=1000".to_owned());
    loop {
        let mut page: EventPage = serde_json::from_str(tenant.get(&path).await.text()).unwrap();
        all.append(&mut page.items);
        if !page.has_more {
            for event in &mut all {
                event.cursor.clear();
            }
            return all;
        }
        path = format!("/events?limit=1000&cursor={}", page.next_cursor);
    }
}

async fn left(tenant: &Tenant) -> Vec<Value> {
    tenant.events("types=order.").await
}

async fn old_events_are_deleted_by_themselves(world: &World) {
    let world = World::start(world.engine, &[]).await;
    let tenant = tenant(&world, 5).await;
    assert_eq!(left(&tenant).await.len(), 5);
    let server = keeping(world, &[]).await;
    let tenant = at(&tenant, &server);
    eventually("the prune", async || left(&tenant).await.is_empty().then_some(())).await;
    let told = eventually("the event of the prune", async || tenant.events("types=event_journal.").await.pop()).await;
    assert_eq!((&told["payload"]["count"], &told["actorId"]), (&json!(6), &json!(null)));
    assert_eq!(tenant.get("/operations/journal").await.expect(200)["retentionSeconds"], 3600);
    server.finish().await;
}

async fn a_consumer_is_waited_for_and_shown(world: &World) {
    let world = World::start(world.engine, &[]).await;
    let tenant = tenant(&world, 5).await;
    let events = left(&tenant).await;
    let lease = json!({ "cursor": events[2]["cursor"], "expiresAt": in_seconds(3600) });
    tenant.put("/consumers/slow", &lease).await.expect(200);
    let server = keeping(world, &[]).await;
    let tenant = at(&tenant, &server);
    eventually("the prune", async || (left(&tenant).await.len() == 2).then_some(())).await;
    let ids = |events: &[Value]| events.iter().map(|e| e["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&left(&tenant).await), ids(&events[3..]));
    let status = tenant.get("/operations/journal").await.expect(200);
    assert_eq!(
        (&status["consumers"][1]["name"], &status["consumers"][1]["blocksRetention"]),
        (&json!("slow"), &json!(true))
    );
    let position = |cursor: &Value| Cursor::decode(cursor.as_str().unwrap()).unwrap().seq;
    assert_eq!(position(&status["floorCursor"]), position(&events[2]["cursor"]));
    let gauge = r#"courant_journal_retention_blocked_tenants{by="lease"} "#;
    eventually("the gauge", async || {
        server.api.get("/metrics").await.text().lines().find_map(|l| l.strip_prefix(gauge)?.parse::<f64>().ok())
    })
    .await;
    assert_eq!(server.api.get("/readyz").await.status, 200, "who is waited for is no failure");
    server.finish().await;
}

async fn what_is_deleted_is_exported_first(world: &World) {
    let world = World::start(world.engine, &[]).await;
    let tenant = tenant(&world, 2100).await;
    let before = as_written(&tenant).await;
    let dir = tempfile::tempdir().unwrap();
    let server = keeping(world, &[("COURANT_JOURNAL_EXPORT_DIR", dir.path().to_str().unwrap())]).await;
    let tenant = at(&tenant, &server);
    eventually("the event of the prune", async || {
        tenant.events("types=event_journal.pruned").await.pop().filter(|told| told["payload"]["count"] == 2101)
    })
    .await;
    let mut files: Vec<_> =
        std::fs::read_dir(dir.path().join(&tenant.id)).unwrap().map(|f| f.unwrap().path()).collect();
    let first = |path: &std::path::Path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let (first, last) = name.strip_suffix(".ndjson").unwrap().split_once('-').unwrap();
        (first.parse::<i64>().unwrap(), last.parse::<i64>().unwrap())
    };
    files.sort_by_key(|path| first(path));
    assert_eq!(files.len(), 3);
    let mut exported: Vec<Event> = Vec::new();
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        let events: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((events[0].sequence, events.last().unwrap().sequence), first(path));
        exported.extend(events);
        for event in &mut exported {
            event.cursor.clear();
        }
    }
    assert_eq!(exported.len(), 2101);
    assert!(exported == before[before.len() - 2101..], "what was exported is not what was there");
    server.finish().await;
}

async fn an_unfinished_prune_is_ended_at_the_next_start(world: &World) {
    let world = World::start(world.engine, &[]).await;
    let tenant = tenant(&world, 1500).await;
    let id = tenant.id.parse().unwrap();
    let change = Change::by_server(id, courant_server::clock::now());
    let request = PruneRequest { before: change.now, max_events: 1400, dry_run: false, blocked: WhenBlocked::Refuse };
    world.app.store.prune_begin(change.clone(), request).await.unwrap();
    world.app.store.prune_step(change, i64::MAX).await.unwrap();
    let server = world.restart(&[]).await;
    let tenant = at(&tenant, &server);
    let told = eventually("the event of the prune", async || tenant.events("types=event_journal.").await.pop()).await;
    assert_eq!(told["payload"]["count"], 1400);
    server.finish().await;
}

async fn a_prune_that_cannot_export_is_refused_and_deletes_nothing(world: &World) {
    let world = World::start(world.engine, &[]).await;
    let tenant = world.tenant().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let below = file.path().join("exports");
    let settings = [("COURANT_JOURNAL_RETENTION", "90d"), ("COURANT_JOURNAL_EXPORT_DIR", below.to_str().unwrap())];
    let server = world.restart(&settings).await;
    let tenant = at(&tenant, &server);
    announced(&server).await;
    let before = tenant.events("").await;
    let body = json!({ "beforeSeconds": 0, "maxEvents": 2 });
    tenant.post("/operations/journal:prune", &body).await.refused(503, "unavailable");
    // Nothing of it is left for anybody to go on with.
    assert_eq!(server.app.store.prunes_pending().await.unwrap(), []);
    assert_eq!(tenant.events("").await, before);
    server.finish().await;
}

async fn an_export_without_a_retention_is_refused(world: &World) {
    let error = World::refused(world.engine, &[("COURANT_JOURNAL_EXPORT_DIR", "/tmp/exports")]).await;
    assert!(error.contains("COURANT_JOURNAL_RETENTION"), "{error}");
}

on_both_databases! {
    old_events_are_deleted_by_themselves,
    a_consumer_is_waited_for_and_shown,
    what_is_deleted_is_exported_first,
    a_prune_that_cannot_export_is_refused_and_deletes_nothing,
    an_unfinished_prune_is_ended_at_the_next_start,
    an_export_without_a_retention_is_refused,
}
