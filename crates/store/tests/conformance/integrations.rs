//! Integrations and the rights that hang on their names.

use std::sync::Arc;

use courant_api::notify::{IntegrationHealth, IntegrationView};
use courant_api::{IntegrationId, Permission, Resource};
use courant_store::{Change, DeliveryQuery, Edit, Error, Integration};
use serde_json::json;

use crate::cases;
use crate::world::{Tenant, World, at, conflict, denied, draft, not_found, now, payload, types};

cases![
    an_integration_is_created_and_told_without_its_secrets,
    a_name_is_taken_once,
    an_edit_changes_what_differs_and_nothing_else,
    an_edit_that_fails_changes_nothing,
    an_edit_of_another_version_is_refused,
    lists_and_reads_show_what_the_caller_may_read_by_name,
    changes_need_the_right_on_the_name_before_and_after,
    a_deleted_integration_takes_its_deliveries_along,
    an_integrations_workspace_must_exist,
];

fn named(name: &str) -> Resource {
    Resource::NotificationIntegration(name.into())
}

async fn create(world: &World, tenant: &Tenant, new: Integration) -> Result<IntegrationView, Error> {
    world.store.integration_create(tenant.change(), new, None).await.map(now)
}

async fn edit(
    world: &World,
    change: Change,
    id: IntegrationId,
    edit: impl Fn(&mut Integration) + Send + Sync + 'static,
) -> Result<IntegrationView, Error> {
    let edit: Edit = Arc::new(move |old| {
        let mut new = old.clone();
        edit(&mut new);
        Ok(new.into())
    });
    world.store.integration_update(change, id, edit).await.map(now)
}

async fn an_integration_is_created_and_told_without_its_secrets(world: World) {
    let tenant = world.tenant().await;
    let begin = world.end(&tenant).await;
    let config = json!({"url": "https://example.com/in", "z": 1, "a": [1.50, "é"]});
    let mut new = tenant.integration("ops chat", &["task.", "note.made"]);
    new.provider_config = config.as_object().unwrap().clone();
    new.auth_sealed = Some(b"\x00\x01sealed\xff".to_vec());
    new.created_at = at(3);
    let generated = Some("whsec_generated".to_owned());
    let made = now(world.store.integration_create(tenant.change(), new.clone(), generated).await.unwrap());
    assert_eq!(
        made,
        IntegrationView { generated_secret: Some("whsec_generated".into()), ..new.view(IntegrationHealth::default()) }
    );
    let read = world.store.integration_get(&tenant.caller, new.id).await.unwrap();
    assert_eq!(read, new.view(IntegrationHealth::default()));
    assert!(read.has_auth_config);

    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["notification_integration.created"]);
    assert_eq!(told[0].entity_id, new.id.to_string());
    assert_eq!(payload(&told[0]), json!({"name": "ops chat", "provider": "webhook", "changes": []}));
}

async fn a_name_is_taken_once(world: World) {
    let tenant = world.tenant().await;
    create(&world, &tenant, tenant.integration("ops", &[])).await.unwrap();
    let other = create(&world, &tenant, tenant.integration("dev", &[])).await.unwrap();
    let begin = world.end(&tenant).await;
    conflict(create(&world, &tenant, tenant.integration("ops", &[])).await);
    conflict(edit(&world, tenant.change(), other.id, |i| i.name = "ops".into()).await);
    assert_eq!(world.since(&tenant, &begin).await, []);
    assert_eq!(world.store.integration_get(&tenant.caller, other.id).await.unwrap(), other);
    edit(&world, tenant.change(), other.id, |i| i.name = "Ops".into()).await.unwrap();
    create(&world, &tenant, tenant.integration("dev", &[])).await.unwrap();
}

async fn an_edit_changes_what_differs_and_nothing_else(world: World) {
    let tenant = world.tenant().await;
    let made = create(&world, &tenant, tenant.integration("ops", &["task."])).await.unwrap();
    let begin = world.end(&tenant).await;
    assert_eq!(edit(&world, tenant.change_at(5), made.id, |_| {}).await.unwrap(), made);

    let changed = edit(&world, tenant.change_at(6), made.id, |i| {
        i.paused = true;
        i.journal_types = vec!["note.".into()];
        i.auth_sealed = Some(vec![1]);
    });
    let changed = changed.await.unwrap();
    assert_eq!((changed.version, changed.updated_at, changed.created_at), (2, at(6), made.created_at));
    assert_eq!(
        (changed.paused, changed.has_auth_config, &changed.journal_types[..]),
        (true, true, &["note.".to_owned()][..])
    );
    assert_eq!(world.store.integration_get(&tenant.caller, made.id).await.unwrap(), changed);
    edit(&world, tenant.change(), made.id, |i| i.enabled = false).await.unwrap();
    edit(&world, tenant.change(), made.id, |i| i.enabled = true).await.unwrap();

    let told = world.since(&tenant, &begin).await;
    let kinds =
        ["notification_integration.updated", "notification_integration.disabled", "notification_integration.updated"];
    assert_eq!(types(&told), kinds);
    assert_eq!(payload(&told[0])["changes"], json!(["paused", "journalTypes", "authConfig"]));
    assert_eq!(payload(&told[1])["changes"], json!(["enabled"]));
}

async fn an_edit_that_fails_changes_nothing(world: World) {
    let tenant = world.tenant().await;
    let made = create(&world, &tenant, tenant.integration("ops", &["task."])).await.unwrap();
    let begin = world.end(&tenant).await;
    let refuse: Edit = Arc::new(|_| Err(Error::Invalid { field: "/name".into(), message: "no".into() }));
    let outcome = world.store.integration_update(tenant.change(), made.id, refuse).await;
    assert!(matches!(outcome, Err(Error::Invalid { .. })), "{outcome:?}");
    assert_eq!(world.store.integration_get(&tenant.caller, made.id).await.unwrap(), made);
    assert_eq!(world.since(&tenant, &begin).await, []);
}

async fn an_edit_of_another_version_is_refused(world: World) {
    let tenant = world.tenant().await;
    let made = create(&world, &tenant, tenant.integration("ops", &[])).await.unwrap();
    let at_version = |version| Change { if_match: Some(vec![version]), ..tenant.change() };
    edit(&world, at_version(1), made.id, |i| i.paused = true).await.unwrap();
    let stale = edit(&world, at_version(1), made.id, |i| i.paused = false).await;
    assert!(matches!(stale, Err(Error::VersionConflict { current: 2 })), "{stale:?}");
    let stale = world.store.integration_delete(at_version(1), made.id).await;
    assert!(matches!(stale, Err(Error::VersionConflict { current: 2 })), "{stale:?}");
    now(world.store.integration_delete(at_version(2), made.id).await.unwrap());
}

async fn lists_and_reads_show_what_the_caller_may_read_by_name(world: World) {
    let tenant = world.tenant().await;
    let names = ["a", "b", "a.b", "c", "d", "A", "e"];
    let mut ids = Vec::new();
    for name in names {
        ids.push(create(&world, &tenant, tenant.integration(name, &[])).await.unwrap().id);
    }
    let read = Permission::NotificationIntegrationRead;
    let caller = tenant.caller_with(&[
        (read, named("a")),
        (read, named("d")),
        (Permission::All, named("e")),
        (Permission::NotificationIntegrationUpdate, named("c")),
    ]);
    let walk = async |caller, limit| {
        let (mut seen, mut key) = (Vec::new(), None);
        loop {
            let page = world.store.integration_list(caller, key, limit).await.unwrap();
            assert!(page.items.len() <= usize::try_from(limit).unwrap());
            seen.extend(page.items.into_iter().map(|i| i.name));
            key = page.next;
            if key.is_none() {
                return seen;
            }
        }
    };
    for limit in [1, 2, 3, 100] {
        assert_eq!(walk(&caller, limit).await, ["e", "d", "a"], "in pages of {limit}");
        assert_eq!(walk(&tenant.caller, limit).await, ["e", "A", "d", "c", "a.b", "b", "a"]);
    }
    for (name, id) in names.iter().zip(ids) {
        assert_eq!(world.store.integration_get(&caller, id).await.is_ok(), ["a", "d", "e"].contains(name), "{name}");
    }
}

async fn changes_need_the_right_on_the_name_before_and_after(world: World) {
    let tenant = world.tenant().await;
    let ops = create(&world, &tenant, tenant.integration("ops", &[])).await.unwrap();
    let dev = create(&world, &tenant, tenant.integration("dev", &[])).await.unwrap();
    let update = || tenant.change_with(&[(Permission::NotificationIntegrationUpdate, named("ops"))]);
    edit(&world, update(), ops.id, |i| i.paused = true).await.unwrap();
    // Without the right it is as if it were not there.
    not_found(edit(&world, update(), dev.id, |i| i.paused = true).await);
    denied(edit(&world, update(), ops.id, |i| i.name = "other".into()).await);
    not_found(world.store.integration_delete(update(), ops.id).await);
    let delete = || tenant.change_with(&[(Permission::NotificationIntegrationDelete, named("ops"))]);
    not_found(world.store.integration_delete(delete(), dev.id).await);
    not_found(edit(&world, delete(), ops.id, |i| i.paused = false).await);
    now(world.store.integration_delete(delete(), ops.id).await.unwrap());
}

async fn a_deleted_integration_takes_its_deliveries_along(world: World) {
    let tenant = world.tenant().await;
    let doomed = create(&world, &tenant, tenant.integration("ops", &["task."])).await.unwrap();
    let kept =
        create(&world, &tenant, tenant.integration("dev", &["task.", "notification_integration."])).await.unwrap();
    world.append(&tenant, vec![draft("task.made", "a"), draft("task.made", "b"), draft("task.made", "c")]).await;
    assert_eq!(world.announce(at(1)).await, 6);
    let begin = world.end(&tenant).await;
    now(world.store.integration_delete(tenant.change(), doomed.id).await.unwrap());
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["notification_integration.deleted"]);
    assert_eq!(payload(&told[0]), json!({"name": "ops", "provider": "webhook", "changes": [], "deletedDeliveries": 3}));
    let left = world.store.delivery_list(&tenant.caller, DeliveryQuery::default(), None, 100).await.unwrap().items;
    assert_eq!(left.iter().map(|d| d.integration_id).collect::<Vec<_>>(), [kept.id; 3]);
    not_found(world.store.integration_get(&tenant.caller, doomed.id).await);
    not_found(world.store.integration_delete(tenant.change(), doomed.id).await);
    assert_eq!(world.announce(at(2)).await, 1, "its end is told to the others");
}

async fn an_integrations_workspace_must_exist(world: World) {
    let tenant = world.tenant().await;
    let workspace = world.workspace(&tenant, None).await;
    let nowhere = uuid::Uuid::from_u128(3).into();
    let scoped = |workspace_id| Integration { workspace_id: Some(workspace_id), ..tenant.integration("ops", &[]) };
    not_found(create(&world, &tenant, scoped(nowhere)).await);
    let made = create(&world, &tenant, scoped(workspace)).await.unwrap();
    assert_eq!(made.workspace_id, Some(workspace));
    not_found(edit(&world, tenant.change(), made.id, move |i| i.workspace_id = Some(nowhere)).await);
    assert_eq!(edit(&world, tenant.change(), made.id, |i| i.workspace_id = None).await.unwrap().workspace_id, None);
}
