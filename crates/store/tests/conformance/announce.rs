//! From the journal to the outbox: each event once to each integration that wants it.

use std::sync::Arc;

use courant_api::access::{GrantCreate, PrincipalPatch, PrincipalStatus};
use courant_api::notify::Notification;
use courant_api::{Permission, PrincipalId, Resource};
use courant_store::{Announced, DeliveryQuery, Edit, EventDraft, Integration, Place};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::world::{Tenant, World, at, draft, now, place};
use crate::{cases, second_server};

cases![
    each_event_is_announced_once_to_each_integration_that_wants_it,
    a_position_that_moved_meanwhile_makes_a_page_stale,
    of_servers_that_announce_at_once_one_moves_the_position,
    a_page_announced_again_from_an_older_position_adds_nothing,
    an_integration_hears_nothing_from_before_its_creation,
    a_disabled_integration_hears_nothing,
    an_integration_hears_what_its_saver_may_read,
    an_integration_of_a_workspace_hears_what_happens_in_it,
    an_integration_hears_nothing_of_itself_and_of_other_tenants,
    a_delivery_carries_its_notification,
];

async fn add(world: &World, tenant: &Tenant, new: Integration) {
    now(world.store.integration_create(tenant.change(), new, None).await.unwrap());
}

/// What is queued, as (integration, entity), oldest first.
async fn queued(world: &World, tenant: &Tenant) -> Vec<(String, String)> {
    let mut all = world.store.delivery_list(&tenant.caller, DeliveryQuery::default(), None, 1000).await.unwrap().items;
    all.reverse();
    all.into_iter().map(|d| (d.integration_name, d.subject.id)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

async fn each_event_is_announced_once_to_each_integration_that_wants_it(world: World) {
    let tenant = world.tenant().await;
    add(&world, &tenant, tenant.integration("all", &["task.", "note."])).await;
    add(&world, &tenant, tenant.integration("made", &["task.made"])).await;
    add(&world, &tenant, tenant.integration("none", &[])).await;
    assert_eq!(world.announce(at(1)).await, 0);
    world
        .append(
            &tenant,
            vec![draft("task.made", "1"), draft("task.done", "2"), draft("note.made", "3"), draft("x.y", "4")],
        )
        .await;
    assert_eq!(world.announce(at(2)).await, 4);
    let expected = pairs(&[("all", "1"), ("made", "1"), ("all", "2"), ("all", "3")]);
    assert_eq!(queued(&world, &tenant).await, expected);
    assert_eq!(world.store.announcer_position().await.unwrap(), world.store.journal_horizon().await.unwrap());
    assert_eq!(world.announce(at(3)).await, 0);
    assert_eq!(queued(&world, &tenant).await, expected);
}

async fn a_position_that_moved_meanwhile_makes_a_page_stale(world: World) {
    let tenant = world.tenant().await;
    add(&world, &tenant, tenant.integration("ops", &["task."])).await;
    world.append(&tenant, vec![draft("task.made", "1")]).await;
    let from = world.store.announcer_place().await.unwrap();
    let page = world.store.journal_scan(from.seq, 100).await.unwrap();
    let announce = async || world.store.announce(from, place(&page), page.events.clone(), None, at(1)).await.unwrap();
    // A page of a journal that was replaced meanwhile.
    let elsewhere = Place { incarnation: from.incarnation + 1, ..place(&page) };
    let refused = world.store.announce(from, elsewhere, page.events.clone(), None, at(1)).await.unwrap();
    assert_eq!(refused, Announced::Stale);
    assert_eq!(announce().await, Announced::Moved { deliveries: 1, withheld: 0 });
    assert_eq!(announce().await, Announced::Stale);
    assert_eq!(queued(&world, &tenant).await.len(), 1);
    assert_eq!(world.store.announcer_position().await.unwrap(), page.next);
}

async fn of_servers_that_announce_at_once_one_moves_the_position(world: World) {
    let tenant = world.tenant().await;
    add(&world, &tenant, tenant.integration("ops", &["task."])).await;
    world.append(&tenant, (0..20).map(|n| draft("task.made", n.to_string())).collect()).await;
    let other = second_server(&world).await;
    let from = world.store.announcer_place().await.unwrap();
    let page = world.store.journal_scan(from.seq, 100).await.unwrap();
    let start = Arc::new(Barrier::new(2));
    let mut tasks = JoinSet::new();
    for store in [world.store.clone(), other] {
        let (start, page) = (Arc::clone(&start), page.clone());
        tasks.spawn(async move {
            start.wait().await;
            store.announce(from, place(&page), page.events, None, at(1)).await.unwrap()
        });
    }
    let outcomes = tasks.join_all().await;
    assert!(outcomes.contains(&Announced::Stale), "{outcomes:?}");
    assert!(outcomes.contains(&Announced::Moved { deliveries: 20, withheld: 0 }), "{outcomes:?}");
    assert_eq!(queued(&world, &tenant).await.len(), 20);
}

async fn a_page_announced_again_from_an_older_position_adds_nothing(world: World) {
    let tenant = world.tenant().await;
    add(&world, &tenant, tenant.integration("ops", &["task."])).await;
    world.append(&tenant, vec![draft("task.made", "1")]).await;
    world.announce(at(1)).await;
    world.raw().await.run("UPDATE consumer_position SET seq = 0 WHERE name = 'announcer'").await.unwrap();
    assert_eq!(world.announce(at(2)).await, 0, "what is queued is not queued twice");
    assert_eq!(queued(&world, &tenant).await.len(), 1);
}

async fn an_integration_hears_nothing_from_before_its_creation(world: World) {
    let tenant = world.tenant().await;
    world.append(&tenant, vec![draft("task.made", "before")]).await;
    add(&world, &tenant, tenant.integration("ops", &["task."])).await;
    world.append(&tenant, vec![draft("task.made", "after")]).await;
    // The announcer was behind all the time.
    assert_eq!(world.announce(at(1)).await, 1);
    assert_eq!(queued(&world, &tenant).await, pairs(&[("ops", "after")]));
}

async fn a_disabled_integration_hears_nothing(world: World) {
    let tenant = world.tenant().await;
    add(&world, &tenant, Integration { enabled: false, ..tenant.integration("off", &["task."]) }).await;
    add(&world, &tenant, Integration { paused: true, ..tenant.integration("paused", &["task."]) }).await;
    let on = tenant.integration("on", &["task."]);
    let id = on.id;
    add(&world, &tenant, on).await;
    world.append(&tenant, vec![draft("task.made", "1")]).await;
    assert_eq!(world.announce(at(1)).await, 2);
    let disable: Edit = Arc::new(|i| Ok(Integration { enabled: false, ..i.clone() }.into()));
    now(world.store.integration_update(tenant.change(), id, disable).await.unwrap());
    world.append(&tenant, vec![draft("task.made", "2")]).await;
    world.announce(at(2)).await;
    assert_eq!(queued(&world, &tenant).await, pairs(&[("paused", "1"), ("on", "1"), ("paused", "2")]));
}

async fn grant(world: &World, tenant: &Tenant, principal_id: PrincipalId, permission: Permission, resource: Resource) {
    now(world.store.grant_create(tenant.change(), GrantCreate::to(principal_id, permission, resource)).await.unwrap());
}

async fn an_integration_hears_what_its_saver_may_read(world: World) {
    let tenant = world.tenant().await;
    let saver = world.principal(&tenant).await;
    let workspace = world.workspace(&tenant, None).await;
    let saved = |name: &str| Integration { saved_by: saver, ..tenant.integration(name, &["task."]) };
    add(&world, &tenant, saved("tenant")).await;
    add(&world, &tenant, Integration { workspace_id: Some(workspace), ..saved("workspace") }).await;
    let task = || vec![EventDraft { workspace_id: Some(workspace), ..draft("task.made", "x") }];

    world.append(&tenant, task()).await;
    assert_eq!(world.announce(at(1)).await, 0, "without events.read it hears nothing");
    grant(&world, &tenant, saver, Permission::EventsAppend, Resource::Tenant).await;
    grant(&world, &tenant, saver, Permission::EventsRead, Resource::NotificationIntegration("tenant".into())).await;
    world.append(&tenant, task()).await;
    assert_eq!(world.announce(at(2)).await, 0);
    grant(&world, &tenant, saver, Permission::EventsRead, Resource::Workspace(workspace)).await;
    world.append(&tenant, task()).await;
    assert_eq!(world.announce(at(3)).await, 1);
    assert_eq!(queued(&world, &tenant).await, pairs(&[("workspace", "x")]));
    grant(&world, &tenant, saver, Permission::EventsRead, Resource::Tenant).await;
    world.append(&tenant, task()).await;
    assert_eq!(world.announce(at(4)).await, 2);

    let patch = PrincipalPatch { display_name: None, status: Some(PrincipalStatus::Disabled) };
    now(world.store.principal_update(tenant.change(), saver, patch).await.unwrap());
    world.append(&tenant, task()).await;
    assert_eq!(world.announce(at(5)).await, 0, "nor does it when its saver is disabled");
}

async fn an_integration_of_a_workspace_hears_what_happens_in_it(world: World) {
    let tenant = world.tenant().await;
    let top = world.workspace(&tenant, None).await;
    let below = world.workspace(&tenant, Some(top)).await;
    let beside = world.workspace(&tenant, None).await;
    add(&world, &tenant, Integration { workspace_id: Some(top), ..tenant.integration("ops", &["task."]) }).await;
    let places = [("none", None), ("top", Some(top)), ("below", Some(below)), ("beside", Some(beside))];
    let drafts = places.map(|(name, workspace_id)| EventDraft { workspace_id, ..draft("task.made", name) });
    world.append(&tenant, drafts.to_vec()).await;
    world.announce(at(1)).await;
    assert_eq!(queued(&world, &tenant).await, pairs(&[("ops", "top"), ("ops", "below")]));
}

async fn an_integration_hears_nothing_of_itself_and_of_other_tenants(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let (one, two) = (tenant.integration("one", &["n", "t"]), tenant.integration("two", &["n", "t"]));
    let (one_id, two_id) = (one.id, two.id);
    add(&world, &tenant, one).await;
    add(&world, &tenant, two).await;
    world.append(&other, vec![draft("task.made", "theirs")]).await;
    let pause: Edit = Arc::new(|i| Ok(Integration { paused: true, ..i.clone() }.into()));
    now(world.store.integration_update(tenant.change(), two_id, pause).await.unwrap());
    world.announce(at(1)).await;
    let two_id = two_id.to_string();
    assert_eq!(queued(&world, &tenant).await, pairs(&[("one", &two_id), ("one", &two_id)]), "one is {one_id}");
}

async fn a_delivery_carries_its_notification(world: World) {
    let tenant = world.tenant().await;
    add(&world, &tenant, tenant.integration("ops", &["task."])).await;
    let event = EventDraft { payload: r#"{ "name": "Tidy up", "n": 1.50 }"#.into(), ..draft("task.made", "t1") };
    let appended = world.append(&tenant, vec![event]).await[0];
    world.announce(at(9)).await;
    let shown =
        world.store.delivery_list(&tenant.caller, DeliveryQuery::default(), None, 10).await.unwrap().items.remove(0);
    assert_eq!(
        (shown.status.as_str(), shown.attempt_count, shown.run_at, shown.created_at),
        ("pending", 0, at(9), at(9))
    );
    assert_eq!((shown.subject.kind.as_str(), shown.subject.name.as_str()), ("task", "Tidy up"));
    assert_eq!(shown.last_error, None);

    let server = world.store.server_register(at(9)).await.unwrap();
    let claimed = world
        .store
        .delivery_claim(server, at(9), 10, courant_store::Lanes::default())
        .await
        .unwrap()
        .deliveries
        .remove(0);
    let told: Notification = serde_json::from_str(&claimed.payload).unwrap();
    assert_eq!(
        (told.id, told.event_id, told.sequence, told.org_id),
        (shown.id, Some(appended.id), Some(appended.seq), tenant.id)
    );
    assert_eq!(
        (claimed.attempt.tenant_id, claimed.attempt.cause_type.as_str(), claimed.attempt.event_type.as_str()),
        (tenant.id, "task.made", "journal_event")
    );
    assert_eq!(told.event.unwrap().payload.text(), r#"{ "name": "Tidy up", "n": 1.50 }"#);
    assert_eq!((claimed.integration.name.as_str(), claimed.integration.version), ("ops", 1));
}
