//! Two changes of one entity, one waiting for the other's lock.

use courant_api::access::{PrincipalPatch, WorkspacePatch};
use courant_api::{PrincipalId, WorkspaceId};
use courant_store::Store;
use courant_testkit::eventually;
use tokio::task::JoinSet;

use crate::gate::Gate;
use crate::world::{Engine, Ground, Raw, Tenant, World, draft, entities, payload, types};

fn rename(tasks: &mut JoinSet<bool>, store: &Store, tenant: &Tenant, id: WorkspaceId, name: &str) {
    let (store, change, patch) = (store.clone(), tenant.change(), WorkspacePatch { name: Some(name.into()) });
    tasks.spawn(async move { store.workspace_update(change, id, patch).await.is_ok() });
}

/// Until somebody waits for a lock.
async fn somebody_waits(raw: &Raw) {
    let waiting =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("the lock to be waited for", async || (raw.number(waiting).await == 1).then_some(())).await;
}

async fn world() -> (World, Tenant, WorkspaceId) {
    let world = Ground::new(Engine::Postgres).world().await;
    let tenant = world.tenant().await;
    let workspace = world.workspace(&tenant, None).await;
    (world, tenant, workspace)
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_one_entity_come_out_in_the_order_in_which_they_got_its_lock() {
    let (world, tenant, workspace) = world().await;
    let begin = world.end(&tenant).await;
    let (store, mut gate) = Gate::store(world.url(), 8).await;
    let raw = world.raw().await;
    let mut tasks = JoinSet::new();
    rename(&mut tasks, &store, &tenant, workspace, "first");
    let first = gate.next().await;
    rename(&mut tasks, &store, &tenant, workspace, "second");
    somebody_waits(&raw).await;

    // Meanwhile others append and commit: the one that waits has drawn no position yet.
    world.append(&tenant, vec![draft("task.made", "between")]).await;
    first.commit();
    let second = gate.next().await;
    rename(&mut tasks, &store, &tenant, workspace, "third");
    somebody_waits(&raw).await;
    second.commit();
    gate.next().await.commit();
    assert!(tasks.join_all().await.into_iter().all(|done| done));

    let events = world.since(&tenant, &begin).await;
    let names: Vec<_> = events.iter().map(|e| payload(e)["name"].as_str().unwrap_or("between").to_owned()).collect();
    assert_eq!(names, ["first", "between", "second", "third"]);
    let versions: Vec<_> = events.iter().filter_map(|e| payload(e)["version"].as_i64()).collect();
    assert_eq!(versions, [2, 3, 4]);
    assert_eq!(world.store.workspace_get(tenant.id, workspace).await.unwrap().name, "third");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_waited_for_one_that_was_rolled_back_begins_anew() {
    let (world, tenant, workspace) = world().await;
    let begin = world.end(&tenant).await;
    let (store, mut gate) = Gate::store(world.url(), 8).await;
    let raw = world.raw().await;
    let mut tasks = JoinSet::new();
    rename(&mut tasks, &store, &tenant, workspace, "first");
    let first = gate.next().await;
    rename(&mut tasks, &store, &tenant, workspace, "second");
    somebody_waits(&raw).await;
    first.roll_back();
    gate.next().await.commit();
    let mut outcomes = tasks.join_all().await;
    outcomes.sort_unstable();
    assert_eq!(outcomes, [false, true]);
    let events = world.since(&tenant, &begin).await;
    assert_eq!(types(&events), ["workspace.updated"]);
    assert_eq!((&payload(&events[0])["name"], &payload(&events[0])["version"]), (&"second".into(), &2.into()));
}

/// Two moves that are each harmless and together close a circle; neither touches a row that the other locks.
#[tokio::test(flavor = "multi_thread")]
async fn a_move_waits_for_another_one_and_judges_the_tree_after_it() {
    let (world, tenant, a) = world().await;
    let below_a = world.workspace(&tenant, Some(a)).await;
    let b = world.workspace(&tenant, None).await;
    let below_b = world.workspace(&tenant, Some(b)).await;
    let (store, mut gate) = Gate::store(world.url(), 8).await;
    let raw = world.raw().await;
    let mut tasks = JoinSet::new();
    let (mover, change) = (store.clone(), tenant.change());
    tasks.spawn(async move { mover.workspace_move(change, a, Some(below_b)).await.map(|_| ()) });
    let first = gate.next().await;
    let (mover, change) = (store.clone(), tenant.change());
    tasks.spawn(async move { mover.workspace_move(change, b, Some(below_a)).await.map(|_| ()) });
    somebody_waits(&raw).await;
    first.commit();
    tasks.join_next().await.unwrap().unwrap().unwrap();
    crate::world::conflict(tasks.join_next().await.unwrap().unwrap());
    assert_eq!(world.store.workspace_get(tenant.id, b).await.unwrap().parent_id, None);
}

/// A unit that has appended holds readers back at its own place, no further, and only until it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_between_append_and_commit_hides_what_follows_it_until_it_ends() {
    let (world, tenant, _) = world().await;
    let begin = world.end(&tenant).await;
    let principals: Vec<PrincipalId> = vec![world.principal(&tenant).await, world.principal(&tenant).await];
    let start = world.end(&tenant).await;
    assert_eq!(world.since(&tenant, &begin).await.len(), 2);
    let (store, mut gate) = Gate::store(world.url(), 8).await;
    for commits in [true, false] {
        let from = world.end(&tenant).await;
        let mut tasks = JoinSet::new();
        let patch = PrincipalPatch { display_name: Some(format!("renamed {commits}")), status: None };
        let (writer, change, id) = (store.clone(), tenant.change(), principals[0]);
        tasks.spawn(async move { writer.principal_update(change, id, patch).await.is_ok() });
        let held = gate.next().await;
        assert_eq!(held.entities, [principals[0].to_string()]);
        let later = world.append(&tenant, vec![draft("task.made", "later")]).await[0];

        assert_eq!(world.since(&tenant, &from).await, [], "it is committed and not yet settled");
        crate::world::not_found(world.store.event_get(tenant.id, later.id).await);
        assert_eq!(world.store.journal_scan(0, 1000).await.unwrap().events.last().unwrap().cursor, from);
        if commits {
            held.commit();
        } else {
            held.roll_back();
        }
        assert_eq!(tasks.join_all().await, [commits]);
        let id = principals[0].to_string();
        let expected = if commits { vec![id.as_str(), "later"] } else { vec!["later"] };
        assert_eq!(entities(&world.since(&tenant, &from).await), expected);
        assert_eq!(world.store.event_get(tenant.id, later.id).await.unwrap().sequence, later.seq);
    }
    assert_eq!(world.since(&tenant, &start).await.len(), 3);
}
