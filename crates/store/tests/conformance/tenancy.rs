//! What one tenant has, no other tenant can tell from what is not there.

use std::sync::Arc;

use courant_api::access::{GrantCreate, PrincipalPatch, WorkspaceCreate, WorkspacePatch};
use courant_api::catalog::EventTypeRegister;
use courant_api::{Permission, Resource};
use courant_store::{DeliveryQuery, EventDraft, EventQuery};
use serde_json::json;

use crate::cases;
use crate::world::{World, at, draft, key, not_found, now, query};

cases![another_tenants_ids_are_not_found_by_any_method, another_tenants_rows_are_in_no_list,];

async fn another_tenants_ids_are_not_found_by_any_method(world: World) {
    let (owner, stranger) = (world.tenant().await, world.tenant().await);
    let store = &world.store;
    let principal = world.principal(&owner).await;
    let api_key = now(store.api_key_create(owner.change(), principal, key("theirs")).await.unwrap()).id;
    let workspace = world.workspace(&owner, None).await;
    let own_workspace = world.workspace(&stranger, None).await;
    let new = GrantCreate::to(principal, Permission::EventsRead, Resource::Tenant);
    let grant = now(store.grant_create(owner.change(), new).await.unwrap()).id;
    let new = EventTypeRegister { entity_type: "a".into(), description: None, schema: json!({"type": "object"}) };
    now(store.event_type_register(owner.change(), "a.made".into(), 1, new).await.unwrap());
    let integration =
        now(store.integration_create(owner.change(), owner.integration("ops", &["task."]), None).await.unwrap()).id;
    let event = world.append(&owner, vec![draft("task.made", "a")]).await[0].id;
    world.announce(at(0)).await;
    let delivery = store.delivery_list(&owner.caller, DeliveryQuery::default(), None, 1).await.unwrap().items[0].id;
    let everything = world.events(&owner).await;

    not_found(store.principal_get(stranger.id, principal).await);
    not_found(store.principal_update(stranger.change(), principal, PrincipalPatch::default()).await);
    not_found(store.api_key_create(stranger.change(), principal, key("mine")).await);
    not_found(store.api_key_revoke(stranger.change(), api_key).await);
    let grant_to = |principal_id, resource| GrantCreate::to(principal_id, Permission::EventsRead, resource);
    not_found(store.grant_create(stranger.change(), grant_to(principal, Resource::Tenant)).await);
    not_found(store.grant_create(stranger.change(), grant_to(stranger.admin, Resource::Workspace(workspace))).await);
    not_found(store.grant_delete(stranger.change(), grant).await);
    not_found(store.workspace_get(stranger.id, workspace).await);
    not_found(store.workspace_update(stranger.change(), workspace, WorkspacePatch { name: Some("x".into()) }).await);
    not_found(store.workspace_archive(stranger.change(), workspace).await);
    not_found(store.workspace_move(stranger.change(), workspace, None).await);
    not_found(store.workspace_move(stranger.change(), own_workspace, Some(workspace)).await);
    let below = WorkspaceCreate { name: "x".into(), parent_id: Some(workspace) };
    not_found(store.workspace_create(stranger.change(), below).await);
    not_found(store.event_get(stranger.id, event).await);
    not_found(store.event_page(stranger.id, EventQuery { workspace_id: Some(workspace), ..query(10) }).await);
    let into = EventDraft { workspace_id: Some(workspace), ..draft("task.made", "x") };
    not_found(store.event_append(stranger.change(), vec![into]).await);
    not_found(store.event_type_get(stranger.id, "a.made".into()).await);
    not_found(store.integration_get(&stranger.caller, integration).await);
    not_found(store.integration_update(stranger.change(), integration, Arc::new(|i| Ok(i.clone().into()))).await);
    not_found(store.integration_delete(stranger.change(), integration).await);
    let mut scoped = stranger.integration("ops", &["task."]);
    scoped.workspace_id = Some(workspace);
    not_found(store.integration_create(stranger.change(), scoped, None).await);
    not_found(store.delivery_requeue(stranger.change(), delivery).await);

    assert_eq!(world.events(&owner).await, everything, "nothing of it touched the owner");
    assert_eq!(store.delivery_list(&owner.caller, DeliveryQuery::default(), None, 10).await.unwrap().items.len(), 1);
}

async fn another_tenants_rows_are_in_no_list(world: World) {
    let (owner, stranger) = (world.tenant().await, world.tenant().await);
    let store = &world.store;
    world.workspace(&owner, None).await;
    let new = EventTypeRegister { entity_type: "a".into(), description: None, schema: json!({"type": "object"}) };
    now(store.event_type_register(owner.change(), "a.made".into(), 1, new).await.unwrap());
    now(store.integration_create(owner.change(), owner.integration("ops", &["task."]), None).await.unwrap());
    world.append(&owner, vec![draft("task.made", "a")]).await;
    world.announce(at(0)).await;

    assert_eq!(store.workspace_list(stranger.id, None, 10).await.unwrap().items, []);
    assert_eq!(store.event_type_list(stranger.id, String::new(), 10).await.unwrap(), []);
    assert_eq!(store.integration_list(&stranger.caller, None, 10).await.unwrap().items, []);
    assert_eq!(store.delivery_list(&stranger.caller, DeliveryQuery::default(), None, 10).await.unwrap().items, []);
    let principals = store.principal_list(stranger.id, None, 10).await.unwrap().items;
    assert_eq!(principals.iter().map(|p| p.id).collect::<Vec<_>>(), [stranger.admin]);
    assert!(
        store.api_key_list(stranger.id, None, 10).await.unwrap().items.iter().all(|k| k.principal_id == stranger.admin)
    );
    assert!(
        store
            .grant_list(stranger.id, None, 10)
            .await
            .unwrap()
            .items
            .iter()
            .all(|g| g.principal_id == Some(stranger.admin))
    );
    assert_eq!(world.events(&stranger).await.len(), 4);

    // The same names are free to everybody.
    now(store.integration_create(stranger.change(), stranger.integration("ops", &["task."]), None).await.unwrap());
}
