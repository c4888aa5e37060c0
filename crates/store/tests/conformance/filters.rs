//! What a filter lets through.
//!
//! Broken on purpose: with `LIKE p || '%'` for the comparison of prefixes the first case fails.

use courant_api::access::WorkspaceCreate;
use courant_store::{Error, EventDraft, EventQuery};

use crate::cases;
use crate::world::{World, draft, entities, now, query};

cases![
    a_type_prefix_is_compared_letter_by_letter,
    a_type_that_is_registered_later_is_found_by_the_same_prefix,
    a_workspace_filter_takes_in_all_below_it_and_nothing_of_the_tenant,
    the_subtree_is_the_one_of_the_moment_of_reading,
    an_entity_filter_gives_one_stream,
    filters_narrow_one_another,
];

async fn a_type_prefix_is_compared_letter_by_letter(world: World) {
    let tenant = world.tenant().await;
    let all = ["task_list.made", "taskx.made", "task.made", "task.made_up", "tas.made", "t.made", "tazk_list.made"];
    world.append(&tenant, all.iter().map(|t| draft(t, *t)).collect()).await;
    let matching = async |prefixes: &[&str]| {
        let prefixes = prefixes.iter().map(|p| (*p).to_owned()).collect();
        let page = world.page(&tenant, EventQuery { prefixes, ..query(100) }).await;
        page.items.into_iter().map(|e| e.event_type).filter(|t| all.contains(&t.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(matching(&["task_"]).await, ["task_list.made"]);
    assert_eq!(matching(&["ta_k"]).await, Vec::<String>::new());
    assert_eq!(matching(&["task%"]).await, Vec::<String>::new());
    assert_eq!(matching(&["task."]).await, ["task.made", "task.made_up"]);
    assert_eq!(matching(&["task.made"]).await, ["task.made", "task.made_up"]);
    assert_eq!(matching(&["task"]).await, ["task_list.made", "taskx.made", "task.made", "task.made_up"]);
    assert_eq!(matching(&["taskx.", "t."]).await, ["taskx.made", "t.made"]);
    assert_eq!(matching(&["task.made_up.more"]).await, Vec::<String>::new());
    assert_eq!(matching(&["TASK."]).await, Vec::<String>::new());
}

async fn a_type_that_is_registered_later_is_found_by_the_same_prefix(world: World) {
    let tenant = world.tenant().await;
    let wanted = EventQuery { prefixes: vec!["deploy.".into()], ..query(100) };
    let first = world.page(&tenant, wanted.clone()).await;
    assert!(first.items.is_empty());
    world.append(&tenant, vec![draft("deploy.begun", "a"), draft("deployed.not", "b")]).await;
    let next = EventQuery { start: crate::world::after(&first.next_cursor), ..wanted };
    assert_eq!(entities(&world.page(&tenant, next).await.items), ["a"]);
}

async fn a_workspace_filter_takes_in_all_below_it_and_nothing_of_the_tenant(world: World) {
    let tenant = world.tenant().await;
    let top = world.workspace(&tenant, None).await;
    let middle = world.workspace(&tenant, Some(top)).await;
    let leaf = world.workspace(&tenant, Some(middle)).await;
    let beside = world.workspace(&tenant, None).await;
    let begin = world.end(&tenant).await;
    let places =
        [("none", None), ("top", Some(top)), ("middle", Some(middle)), ("leaf", Some(leaf)), ("beside", Some(beside))];
    let drafts = places.map(|(name, workspace_id)| EventDraft { workspace_id, ..draft("task.made", name) });
    world.append(&tenant, drafts.to_vec()).await;
    let seen = async |workspace| {
        let start = crate::world::after(&begin);
        let page = world.page(&tenant, EventQuery { workspace_id: Some(workspace), start, ..query(100) }).await;
        page.items.into_iter().map(|e| e.entity_id).collect::<Vec<_>>()
    };
    assert_eq!(seen(top).await, ["top", "middle", "leaf"]);
    assert_eq!(seen(middle).await, ["middle", "leaf"]);
    assert_eq!(seen(leaf).await, ["leaf"]);
    assert_eq!(seen(beside).await, ["beside"]);

    let nowhere = EventQuery { workspace_id: Some(uuid::Uuid::from_u128(7).into()), ..query(100) };
    let page = world.store.event_page(tenant.id, nowhere).await;
    assert!(matches!(page, Err(Error::NotFound("workspace"))), "{page:?}");
}

async fn the_subtree_is_the_one_of_the_moment_of_reading(world: World) {
    let tenant = world.tenant().await;
    let (one, two) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let new = WorkspaceCreate { name: "child".into(), parent_id: Some(one) };
    let child = now(world.store.workspace_create(tenant.change(), new).await.unwrap()).id;
    world.append(&tenant, vec![EventDraft { workspace_id: Some(child), ..draft("task.made", "old") }]).await;
    let of = async |workspace| {
        let prefixes = vec!["task.".into()];
        let page = world.page(&tenant, EventQuery { prefixes, workspace_id: Some(workspace), ..query(100) }).await;
        page.items.into_iter().map(|e| e.entity_id).collect::<Vec<_>>()
    };
    assert_eq!((of(one).await.len(), of(two).await.len()), (1, 0));
    now(world.store.workspace_move(tenant.change(), child, Some(two)).await.unwrap());
    world.append(&tenant, vec![EventDraft { workspace_id: Some(child), ..draft("task.made", "new") }]).await;
    assert_eq!((of(one).await.len(), of(two).await), (0, vec!["old".into(), "new".into()]));
}

async fn an_entity_filter_gives_one_stream(world: World) {
    let tenant = world.tenant().await;
    let drafts = [("task.made", "1"), ("task.made", "2"), ("note.made", "1"), ("task.done", "1"), ("task.done", "10")];
    world.append(&tenant, drafts.map(|(t, e)| draft(t, e)).to_vec()).await;
    let kind = |kind: &str| EventQuery { entity_type: Some(kind.into()), ..query(100) };
    let one = EventQuery { entity_id: Some("1".into()), ..kind("task") };
    assert_eq!(crate::world::types(&world.page(&tenant, one.clone()).await.items), ["task.made", "task.done"]);
    let first = world.page(&tenant, EventQuery { limit: 1, ..one.clone() }).await;
    assert!(first.has_more);
    let rest = world.page(&tenant, EventQuery { start: crate::world::after(&first.next_cursor), ..one }).await;
    assert_eq!(crate::world::types(&rest.items), ["task.done"]);
    assert_eq!(entities(&world.page(&tenant, kind("task")).await.items), ["1", "2", "1", "10"]);
    assert_eq!(entities(&world.page(&tenant, kind("tas")).await.items), Vec::<&str>::new());
}

async fn filters_narrow_one_another(world: World) {
    let tenant = world.tenant().await;
    let (here, there) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let below = world.workspace(&tenant, Some(here)).await;
    let mut drafts = Vec::new();
    for (place, workspace_id) in [("here", here), ("below", below), ("there", there)] {
        for event_type in ["task.made", "task.done", "note.made"] {
            drafts.push(EventDraft { workspace_id: Some(workspace_id), ..draft(event_type, place) });
        }
    }
    world.append(&tenant, drafts).await;
    let made =
        EventQuery { prefixes: vec!["task.made".into(), "note.".into()], workspace_id: Some(here), ..query(100) };
    let page = world.page(&tenant, made.clone()).await;
    assert_eq!(entities(&page.items), ["here", "here", "below", "below"]);
    let tasks = EventQuery { entity_type: Some("task".into()), ..made };
    assert_eq!(entities(&world.page(&tenant, tasks.clone()).await.items), ["here", "below"]);
    let one = EventQuery { entity_id: Some("below".into()), ..tasks };
    assert_eq!(entities(&world.page(&tenant, one.clone()).await.items), ["below"]);
    let elsewhere = EventQuery { workspace_id: Some(there), ..one };
    assert_eq!(world.page(&tenant, elsewhere).await.items, []);
}
