//! Custom event types and their versions.

use courant_api::catalog::{EventTypeRegister, EventTypeView};
use courant_store::{Changed, Error};
use serde_json::{Value, json};

use crate::world::{Tenant, World, conflict, not_found, now, payload};
use crate::{cases, second_server};

cases![
    a_type_is_registered_with_version_one_and_told,
    the_next_version_may_only_add_optional_fields,
    the_same_version_again_changes_nothing,
    a_version_out_of_turn_is_refused,
    a_type_keeps_its_entity_type,
    a_type_registered_by_another_server_is_found_at_once,
    types_are_listed_by_name_in_pages,
    current_types_are_those_that_are_asked_for,
];

fn schema(fields: &[&str]) -> Value {
    let properties: serde_json::Map<_, _> =
        fields.iter().map(|f| ((*f).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "required": ["a"], "properties": properties})
}

fn with(fields: &[&str]) -> EventTypeRegister {
    EventTypeRegister { entity_type: "invoice".into(), description: Some("An invoice.".into()), schema: schema(fields) }
}

async fn register(world: &World, tenant: &Tenant, number: u32, new: EventTypeRegister) -> Result<EventTypeView, Error> {
    let changed = world.store.event_type_register(tenant.change(), "invoice.paid".into(), number, new).await;
    changed.map(now)
}

async fn a_type_is_registered_with_version_one_and_told(world: World) {
    let tenant = world.tenant().await;
    let begin = world.end(&tenant).await;
    let made = register(&world, &tenant, 1, with(&["a"])).await.unwrap();
    assert_eq!((made.event_type.as_str(), made.entity_type.as_str(), made.core), ("invoice.paid", "invoice", false));
    assert_eq!((made.description.as_str(), made.current_version, made.versions.len()), ("An invoice.", 1, 1));
    assert_eq!((made.versions[0].version, &made.versions[0].schema), (1, &schema(&["a"])));
    assert_eq!(world.store.event_type_get(tenant.id, "invoice.paid".into()).await.unwrap(), made);

    let told = world.since(&tenant, &begin).await;
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].event_type.as_str(), told[0].entity_id.as_str()), ("event_type.registered", "invoice.paid"));
    assert_eq!(payload(&told[0]), json!({"type": "invoice.paid", "version": 1}));
}

async fn the_next_version_may_only_add_optional_fields(world: World) {
    let tenant = world.tenant().await;
    register(&world, &tenant, 1, with(&["a", "b"])).await.unwrap();
    let begin = world.end(&tenant).await;
    let fewer = register(&world, &tenant, 2, with(&["a"])).await;
    let Err(Error::IncompatibleSchema { version: 1, faults }) = fewer else { panic!("{fewer:?}") };
    assert_eq!(faults.iter().map(|f| f.pointer.as_str()).collect::<Vec<_>>(), ["/properties/b"]);
    assert_eq!(world.since(&tenant, &begin).await, []);

    let new = EventTypeRegister { description: None, ..with(&["a", "b", "c"]) };
    let more = register(&world, &tenant, 2, new).await.unwrap();
    assert_eq!((more.current_version, more.description.as_str()), (2, "An invoice."));
    assert_eq!(more.versions.iter().map(|v| v.version).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(more.versions[0].schema, schema(&["a", "b"]));
    let new = EventTypeRegister { description: Some("Paid.".into()), ..with(&["a", "b", "c", "d"]) };
    assert_eq!(register(&world, &tenant, 3, new).await.unwrap().description, "Paid.");
    assert_eq!(world.since(&tenant, &begin).await.len(), 2);
}

async fn the_same_version_again_changes_nothing(world: World) {
    let tenant = world.tenant().await;
    let first = register(&world, &tenant, 1, with(&["a"])).await.unwrap();
    let begin = world.end(&tenant).await;
    assert_eq!(register(&world, &tenant, 1, with(&["a"])).await.unwrap(), first);
    register(&world, &tenant, 2, with(&["a", "b"])).await.unwrap();
    assert_eq!(register(&world, &tenant, 1, with(&["a"])).await.unwrap().current_version, 2);
    conflict(register(&world, &tenant, 1, with(&["a", "x"])).await);
    assert_eq!(world.since(&tenant, &begin).await.len(), 1);
}

async fn a_version_out_of_turn_is_refused(world: World) {
    let tenant = world.tenant().await;
    for number in [0, 2] {
        conflict(register(&world, &tenant, number, with(&["a"])).await);
    }
    not_found(world.store.event_type_get(tenant.id, "invoice.paid".into()).await);
    register(&world, &tenant, 1, with(&["a"])).await.unwrap();
    for number in [0, 3] {
        conflict(register(&world, &tenant, number, with(&["a", "b"])).await);
    }
}

async fn a_type_keeps_its_entity_type(world: World) {
    let tenant = world.tenant().await;
    register(&world, &tenant, 1, with(&["a"])).await.unwrap();
    for number in [1, 2] {
        let moved = EventTypeRegister { entity_type: "bill".into(), ..with(&["a"]) };
        conflict(register(&world, &tenant, number, moved).await);
    }
}

async fn a_type_registered_by_another_server_is_found_at_once(world: World) {
    let tenant = world.tenant().await;
    let other = second_server(&world).await;
    let current = async || world.store.event_type_current(tenant.id, vec!["invoice.paid".into()]).await.unwrap();
    assert_eq!(current().await.len(), 0);
    for (number, fields) in [(1, &["a"][..]), (2, &["a", "b"])] {
        let done =
            other.event_type_register(tenant.change(), "invoice.paid".into(), number, with(fields)).await.unwrap();
        assert!(matches!(done, Changed::Now(_)));
        let found = current().await;
        assert_eq!((found.len(), found[0].version, &found[0].schema), (1, number, &schema(fields)));
    }
}

async fn types_are_listed_by_name_in_pages(world: World) {
    let tenant = world.tenant().await;
    let names = ["b.made", "a.made", "a.done", "a_b.made", "c.made"];
    for name in names {
        now(world.store.event_type_register(tenant.change(), name.into(), 1, with(&["a"])).await.unwrap());
    }
    let list = async |after: &str, limit| {
        let page = world.store.event_type_list(tenant.id, after.into(), limit).await.unwrap();
        assert!(page.iter().all(|t| t.versions.len() == 1));
        page.into_iter().map(|t| t.event_type).collect::<Vec<_>>()
    };
    assert_eq!(list("", 100).await, ["a.done", "a.made", "a_b.made", "b.made", "c.made"]);
    assert_eq!(list("", 2).await, ["a.done", "a.made"]);
    assert_eq!(list("a.made", 2).await, ["a_b.made", "b.made"]);
    assert_eq!(list("c.made", 2).await, Vec::<String>::new());
}

async fn current_types_are_those_that_are_asked_for(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    for owner in [&tenant, &other] {
        now(world.store.event_type_register(owner.change(), "a.made".into(), 1, with(&["a"])).await.unwrap());
    }
    now(world.store.event_type_register(other.change(), "b.made".into(), 1, with(&["a"])).await.unwrap());
    let names = vec!["a.made".into(), "b.made".into(), "c.made".into()];
    let found = world.store.event_type_current(tenant.id, names).await.unwrap();
    let found: Vec<_> = found.iter().map(|t| (t.name.as_str(), t.entity_type.as_str(), t.version)).collect();
    assert_eq!(found, [("a.made", "invoice", 1)]);
}
