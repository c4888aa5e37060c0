//! The journal's end as the server's own readers see it.

use courant_api::WorkspaceId;
use courant_store::{EventDraft, TailBatch};

use crate::cases;
use crate::world::{World, draft};

cases![
    the_tail_has_what_every_tenant_appended_in_one_order,
    each_event_of_a_workspace_comes_with_all_above_it_as_they_are_now,
    another_journal_is_told_from_this_one,
];

async fn end(world: &World) -> i64 {
    world.store.journal_horizon().await.unwrap()
}

fn names(batch: &TailBatch) -> Vec<&str> {
    batch.events.iter().map(|e| e.event.entity_id.as_str()).collect()
}

async fn the_tail_has_what_every_tenant_appended_in_one_order(world: World) {
    let (one, other) = (world.tenant().await, world.tenant().await);
    let begin = end(&world).await;
    let nothing = world.store.journal_tail(begin, 10).await.unwrap();
    assert_eq!((nothing.events.len(), nothing.next, nothing.has_more), (0, begin, false));
    for (tenant, name) in [(&one, "a"), (&other, "b"), (&one, "c")] {
        world.append(tenant, vec![draft("task.made", name)]).await;
    }
    let first = world.store.journal_tail(begin, 2).await.unwrap();
    assert_eq!((names(&first), first.has_more), (vec!["a", "b"], true));
    assert_eq!(first.next, first.events[1].event.sequence);
    let second = world.store.journal_tail(first.next, 2).await.unwrap();
    assert_eq!((names(&second), second.next, second.has_more), (vec!["c"], end(&world).await, false));
}

async fn each_event_of_a_workspace_comes_with_all_above_it_as_they_are_now(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let top = world.workspace(&tenant, None).await;
    let middle = world.workspace(&tenant, Some(top)).await;
    let leaf = world.workspace(&tenant, Some(middle)).await;
    let foreign = world.workspace(&other, None).await;
    let begin = end(&world).await;
    let made = |name: &str, workspace_id| EventDraft { workspace_id, ..draft("task.made", name) };
    let drafts = [("none", None), ("top", Some(top)), ("leaf", Some(leaf)), ("leaf again", Some(leaf))];
    world.append(&tenant, drafts.map(|(name, workspace)| made(name, workspace)).to_vec()).await;
    world.append(&other, vec![made("foreign", Some(foreign))]).await;
    let batch = world.store.journal_tail(begin, 10).await.unwrap();
    let within: Vec<Vec<WorkspaceId>> = batch
        .events
        .iter()
        .map(|e| {
            let mut within = e.within.to_vec();
            within.sort_unstable_by_key(|id| id.uuid());
            within
        })
        .collect();
    let sorted = |mut ids: Vec<WorkspaceId>| {
        ids.sort_unstable_by_key(|id| id.uuid());
        ids
    };
    let all = sorted(vec![top, middle, leaf]);
    assert_eq!(within, [vec![], vec![top], all.clone(), all, vec![foreign]]);
}

async fn another_journal_is_told_from_this_one(world: World) {
    let first = world.store.journal_tail(0, 1).await.unwrap().journal;
    assert_eq!(world.store.journal_tail(5, 1).await.unwrap().journal, first);
    world.raw().await.run("UPDATE journal SET incarnation = incarnation + 1").await.unwrap();
    assert_ne!(world.store.journal_tail(0, 1).await.unwrap().journal, first);
}
