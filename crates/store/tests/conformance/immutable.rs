//! The database itself keeps the journal: whoever has a connection cannot rewrite it.

use crate::cases;
use crate::world::{World, draft, entities};

cases![
    an_event_cannot_be_changed_by_any_statement,
    an_event_can_be_deleted_only_at_or_below_the_floor,
    positions_are_never_handed_out_again,
];

async fn an_event_cannot_be_changed_by_any_statement(world: World) {
    let tenant = world.tenant().await;
    world.append(&tenant, vec![draft("task.made", "a"), draft("task.made", "b")]).await;
    let before = world.events(&tenant).await;
    let mut forbidden = vec![
        "UPDATE event SET payload = '{}'",
        "UPDATE event SET tenant_id = tenant_id WHERE entity_id = 'a'",
        "DELETE FROM event",
        "DELETE FROM event WHERE entity_id = 'b'",
    ];
    let columns = "tenant_id, id, type, schema_version, entity_type, entity_id, payload, occurred_at";
    let values = "tenant_id, id, type, schema_version, entity_type, 'forged', payload, occurred_at";
    let by_id = format!("INSERT OR REPLACE INTO event ({columns}) SELECT {values} FROM event WHERE entity_id = 'a'");
    let other_id = values.replace(" id,", " randomblob(16),");
    let by_seq = format!("REPLACE INTO event (seq, {columns}) SELECT seq, {other_id} FROM event WHERE entity_id = 'a'");
    let upsert = format!(
        "INSERT INTO event ({columns}) SELECT {values} FROM event WHERE entity_id = 'a'
        ON CONFLICT (tenant_id, id) DO UPDATE SET entity_id = 'forged'"
    );
    let upsert_lite = upsert.replace("WHERE entity_id = 'a'", "WHERE entity_id = 'a' AND true");
    if world.is_postgres() {
        forbidden.extend(["TRUNCATE event", "TRUNCATE event, tenant CASCADE", upsert.as_str()]);
    } else {
        forbidden.extend(["UPDATE event SET seq = seq + 1000", "UPDATE OR REPLACE event SET entity_id = 'forged'"]);
        forbidden.extend([by_id.as_str(), by_seq.as_str(), upsert_lite.as_str()]);
    }
    let raw = world.raw().await;
    for sql in forbidden {
        let refusal = raw.run(sql).await.expect_err(sql);
        assert!(refusal.contains("the journal is append-only"), "{sql}: {refusal}");
        assert_eq!(world.events(&tenant).await, before, "{sql}");
    }
}

async fn an_event_can_be_deleted_only_at_or_below_the_floor(world: World) {
    let tenant = world.tenant().await;
    world.append(&tenant, vec![draft("task.made", "a"), draft("task.made", "b")]).await;
    let events = world.events(&tenant).await;
    let floor = events[events.len() - 2].sequence;
    let raw = world.raw().await;
    raw.raise_floor(floor).await;
    raw.run(&format!("DELETE FROM event WHERE seq <= {}", floor + 1)).await.unwrap_err();
    assert_eq!(raw.number("SELECT count(*) FROM event").await, i64::try_from(events.len()).unwrap());
    raw.run(&format!("DELETE FROM event WHERE seq <= {floor}")).await.unwrap();
    assert_eq!(entities(&world.events(&tenant).await), ["b"]);
    raw.run("UPDATE event SET payload = '{}'").await.unwrap_err();
}

async fn positions_are_never_handed_out_again(world: World) {
    let tenant = world.tenant().await;
    let last = world.append(&tenant, vec![draft("task.made", "a")]).await[0].seq;
    let raw = world.raw().await;
    raw.raise_floor(last).await;
    raw.run(&format!("DELETE FROM event WHERE seq <= {last}")).await.unwrap();
    assert!(world.append(&tenant, vec![draft("task.made", "b")]).await[0].seq > last);
}
