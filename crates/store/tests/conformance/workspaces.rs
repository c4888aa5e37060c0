//! The workspace tree.
//!
//! Broken on purpose: without the event for the place that was left the move that tells both places fails.

use courant_api::access::{WorkspaceCreate, WorkspacePatch};
use courant_api::{Permission, Resource, WorkspaceId};
use courant_store::{Change, Error};
use serde_json::json;

use crate::cases;
use crate::world::{Tenant, World, at, conflict, denied, not_found, now, payload, types};

cases![
    a_workspace_is_created_renamed_and_told,
    a_workspace_cannot_move_below_itself,
    a_move_tells_the_old_place_and_the_new,
    a_tree_has_a_deepest_level,
    moves_at_once_cannot_close_a_circle,
    an_archived_workspace_takes_nothing_in,
    each_change_needs_its_right_on_the_row,
    workspaces_are_listed_newest_first_in_pages,
];

async fn create(world: &World, change: Change, parent_id: Option<WorkspaceId>) -> Result<WorkspaceId, Error> {
    let new = WorkspaceCreate { name: world.name("workspace"), parent_id };
    world.store.workspace_create(change, new).await.map(|changed| now(changed).id)
}

async fn move_to(world: &World, tenant: &Tenant, id: WorkspaceId, parent: Option<WorkspaceId>) -> Result<i64, Error> {
    world.store.workspace_move(tenant.change(), id, parent).await.map(|changed| now(changed).version)
}

async fn a_workspace_is_created_renamed_and_told(world: World) {
    let tenant = world.tenant().await;
    let begin = world.end(&tenant).await;
    let new = WorkspaceCreate { name: "payments".into(), parent_id: None };
    let made = now(world.store.workspace_create(tenant.change(), new).await.unwrap());
    assert_eq!((made.name.as_str(), made.parent_id, made.archived_at, made.version), ("payments", None, None, 1));
    assert_eq!(world.store.workspace_get(tenant.id, made.id).await.unwrap(), made);

    let rename = async |change, name: &str| {
        world.store.workspace_update(change, made.id, WorkspacePatch { name: Some(name.into()) }).await
    };
    let renamed = now(rename(tenant.change(), "billing").await.unwrap());
    assert_eq!((renamed.name.as_str(), renamed.version), ("billing", 2));
    assert_eq!(now(rename(tenant.change(), "billing").await.unwrap()), renamed);
    let stale = rename(Change { if_match: Some(vec![1]), ..tenant.change() }, "x").await;
    assert!(matches!(stale, Err(Error::VersionConflict { current: 2 })), "{stale:?}");

    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["workspace.created", "workspace.updated"]);
    assert!(told.iter().all(|e| e.workspace_id == Some(made.id) && e.entity_id == made.id.to_string()));
    assert_eq!(payload(&told[1]), json!({"name": "billing", "parentId": null, "previousParentId": null, "version": 2}));
}

async fn a_workspace_cannot_move_below_itself(world: World) {
    let tenant = world.tenant().await;
    let a = world.workspace(&tenant, None).await;
    let b = world.workspace(&tenant, Some(a)).await;
    let c = world.workspace(&tenant, Some(b)).await;
    let begin = world.end(&tenant).await;
    for below in [a, b, c] {
        conflict(move_to(&world, &tenant, a, Some(below)).await);
    }
    assert_eq!(world.since(&tenant, &begin).await, []);
    assert_eq!(world.store.workspace_get(tenant.id, a).await.unwrap().parent_id, None);
    move_to(&world, &tenant, c, Some(a)).await.unwrap();
    move_to(&world, &tenant, b, Some(c)).await.unwrap();
    not_found(move_to(&world, &tenant, b, Some(uuid::Uuid::from_u128(1).into())).await);
}

async fn a_move_tells_the_old_place_and_the_new(world: World) {
    let tenant = world.tenant().await;
    let (old, new) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let moving = world.workspace(&tenant, Some(old)).await;
    let begin = world.end(&tenant).await;
    assert_eq!(move_to(&world, &tenant, moving, Some(new)).await.unwrap(), 2);
    assert_eq!(move_to(&world, &tenant, moving, Some(new)).await.unwrap(), 2, "it is there already");
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["workspace.moved", "workspace.entity_left"]);
    assert_eq!((told[0].workspace_id, told[0].entity_id.as_str()), (Some(moving), moving.to_string().as_str()));
    assert_eq!(payload(&told[0])["parentId"], json!(new));
    assert_eq!(payload(&told[0])["previousParentId"], json!(old));
    assert_eq!((told[1].workspace_id, told[1].entity_id.as_str()), (Some(old), old.to_string().as_str()));
    let left = json!({"leftEntityType": "workspace", "leftEntityId": moving, "toWorkspaceId": new});
    assert_eq!(payload(&told[1]), left);

    // To the top and down again: the top is nobody's old place.
    let begin = world.end(&tenant).await;
    move_to(&world, &tenant, moving, None).await.unwrap();
    move_to(&world, &tenant, moving, Some(old)).await.unwrap();
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["workspace.moved", "workspace.entity_left", "workspace.moved"]);
    assert_eq!(payload(&told[1])["toWorkspaceId"], json!(null));
}

async fn a_tree_has_a_deepest_level(world: World) {
    let tenant = world.tenant().await;
    let mut path = vec![world.workspace(&tenant, None).await];
    while path.len() < 32 {
        path.push(world.workspace(&tenant, path.last().copied()).await);
    }
    conflict(create(&world, tenant.change(), Some(path[31])).await);

    let pair = world.workspace(&tenant, None).await;
    world.workspace(&tenant, Some(pair)).await;
    conflict(move_to(&world, &tenant, pair, Some(path[30])).await);
    move_to(&world, &tenant, pair, Some(path[29])).await.unwrap();
}

async fn moves_at_once_cannot_close_a_circle(world: World) {
    let tenant = world.tenant().await;
    for _ in 0..10 {
        let (a, b) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
        let (below_a, below_b) = (world.workspace(&tenant, Some(a)).await, world.workspace(&tenant, Some(b)).await);
        let (one, two) =
            tokio::join!(move_to(&world, &tenant, a, Some(below_b)), move_to(&world, &tenant, b, Some(below_a)));
        assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    }
}

async fn an_archived_workspace_takes_nothing_in(world: World) {
    let tenant = world.tenant().await;
    let parent = world.workspace(&tenant, None).await;
    let child = world.workspace(&tenant, Some(parent)).await;
    let begin = world.end(&tenant).await;
    let archive = async |id, second| world.store.workspace_archive(tenant.change_at(second), id).await.map(now);
    conflict(archive(parent, 1).await);
    assert_eq!(archive(child, 2).await.unwrap().archived_at, Some(at(2)));
    let archived = archive(parent, 3).await.unwrap();
    assert_eq!((archived.archived_at, archived.version), (Some(at(3)), 2));
    assert_eq!(archive(parent, 4).await.unwrap(), archived);
    assert_eq!(types(&world.since(&tenant, &begin).await), ["workspace.archived", "workspace.archived"]);

    conflict(create(&world, tenant.change(), Some(parent)).await);
    let other = world.workspace(&tenant, None).await;
    conflict(move_to(&world, &tenant, other, Some(parent)).await);
}

async fn each_change_needs_its_right_on_the_row(world: World) {
    let tenant = world.tenant().await;
    let (mine, theirs) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let change = || tenant.change_with(&[(Permission::WorkspacesManage, Resource::Workspace(mine))]);
    let child = create(&world, change(), Some(mine)).await.unwrap();
    denied(create(&world, change(), None).await);
    denied(create(&world, change(), Some(theirs)).await);
    let patch = || WorkspacePatch { name: Some(world.name("new")) };
    now(world.store.workspace_update(change(), mine, patch()).await.unwrap());
    denied(world.store.workspace_update(change(), theirs, patch()).await);
    denied(world.store.workspace_update(change(), child, patch()).await);
    denied(world.store.workspace_archive(change(), theirs).await);
    denied(world.store.workspace_move(change(), mine, Some(theirs)).await);
    denied(world.store.workspace_move(change(), mine, None).await);
    denied(world.store.workspace_move(change(), theirs, Some(mine)).await);
    let reader = tenant.change_with(&[(Permission::WorkspacesRead, Resource::Tenant)]);
    denied(world.store.workspace_update(reader, mine, patch()).await);
}

async fn workspaces_are_listed_newest_first_in_pages(world: World) {
    let tenant = world.tenant().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(world.workspace(&tenant, ids.first().copied()).await);
    }
    ids.reverse();
    let first = world.store.workspace_list(tenant.id, None, 2).await.unwrap();
    let rest = world.store.workspace_list(tenant.id, first.next, 2).await.unwrap();
    assert_eq!(rest.next, None);
    assert_eq!(first.items.iter().chain(&rest.items).map(|w| w.id).collect::<Vec<_>>(), ids);
}
