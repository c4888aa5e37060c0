//! What the clock and background work change is made whole or not at all, whichever step of it fails. What requests change
//! is tried in the same way over HTTP.

use std::sync::Arc;

use courant_api::approvals::ApprovalRequest;
use courant_api::deployments::DeploymentMode;
use courant_api::work::TaskClaim;
use courant_store::{Change, Error, Fault, Options, Store};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::cases;
use crate::deployments::{deploy, of, stack};
use crate::outbox::{claim, dead, queue};
use crate::resources::task;
use crate::world::{Tenant, World, at, draft, now, place, types};

cases![background_changes_are_made_whole_or_not_at_all, announcing_is_whole_or_not_at_all];

/// How a change ends.
type Done = BoxFuture<'static, Result<(), Error>>;

/// A store whose units fail where a test wants it.
struct Faulty<'w> {
    world: &'w World,
    store: Arc<Store>,
    fault: Fault,
}

impl<'w> Faulty<'w> {
    async fn on(world: &'w World) -> Self {
        let fault = Fault::default();
        let options = Options { fault: Some(fault.clone()), ..Options::command(world.url()) };
        Self { world, store: Arc::new(Store::open(&options).await.unwrap()), fault }
    }

    /// Makes a change that fails before its first step, before its second, and so on, until none is left.
    async fn make(&self, name: &str, change: impl Fn(Arc<Store>) -> Done) {
        for step in 1.. {
            let before = self.world.contents().await;
            self.fault.set(step);
            let outcome = change(Arc::clone(&self.store)).await;
            let after = self.world.contents().await;
            if self.fault.is_set() {
                self.fault.set(0);
                outcome.unwrap();
                assert!(step > 2 && after != before, "{name} changes nothing");
                return;
            }
            assert!(matches!(outcome, Err(Error::Unavailable(_))), "{name}, step {step}: {outcome:?}");
            assert!(after == before, "{name}: step {step} leaves something");
        }
    }

    /// The same with a change that tells exactly this.
    async fn tells(&self, tenant: &Tenant, told: &[&str], change: impl Fn(Arc<Store>) -> Done) {
        let begin = self.world.end(tenant).await;
        self.make(told[0], change).await;
        assert_eq!(types(&self.world.since(tenant, &begin).await), told);
    }
}

async fn background_changes_are_made_whole_or_not_at_all(world: World) {
    let faulty = Faulty::on(&world).await;
    let (tenant, server) = queue(&world, 1).await;
    let task = task(&world, &tenant, None).await;
    world.store.task_claim(tenant.change(), task.id, TaskClaim { lease_seconds: Some(10) }).await.unwrap();
    let asked = ApprovalRequest {
        task_id: Some(task.id),
        artifact_id: None,
        required_role_id: None,
        assigned_principal_id: Some(tenant.admin),
        gate: None,
        comment: None,
        expires_at: Some(at(20)),
        require_other_than_requester: None,
    };
    let asked = now(world.store.approval_request(tenant.change(), asked).await.unwrap());
    let (tenant_id, task) = (tenant.id, task.id);
    let late = move || Change::by_server(tenant_id, at(10_000));
    let expire = |store: Arc<Store>| async move { store.claim_expire(late(), task).await.map(now) }.boxed();
    faulty.tells(&tenant, &["claim.expired"], expire).await;
    let expire = |store: Arc<Store>| async move { store.approval_expire(late(), asked.id).await.map(now) }.boxed();
    faulty.tells(&tenant, &["approval.expired"], expire).await;

    let network = stack(&world, &tenant, "network", &[]).await;
    let stuck = deploy(&world, &tenant, of(network.id, DeploymentMode::Plan)).await;
    let expire = |store: Arc<Store>| async move { store.deployment_expire(late(), stuck.id).await.map(now) }.boxed();
    faulty.tells(&tenant, &["deployment.failed"], expire).await;
    let untold = deploy(&world, &tenant, of(network.id, DeploymentMode::PlanUnlocked)).await;
    let raw = world.raw().await;
    raw.run("UPDATE deployment SET status = 'failed', error = 'start_failed' WHERE end_told_at IS NULL").await.unwrap();
    let tell = |store: Arc<Store>| async move { store.deployment_tell_end(late(), untold.id).await.map(now) }.boxed();
    faulty.tells(&tenant, &["preview.failed"], tell).await;

    let claimed = claim(&world.store, server, 1).await;
    let die = |store: Arc<Store>| {
        let marks = vec![dead(&claimed[0], true)];
        async move { store.delivery_finish(marks, at(9)).await.map(|_| ()) }.boxed()
    };
    let told = ["notification_delivery.dead", "notification_integration.disabled"];
    faulty.tells(&tenant, &told, die).await;
}

async fn announcing_is_whole_or_not_at_all(world: World) {
    let faulty = Faulty::on(&world).await;
    let (tenant, _) = queue(&world, 1).await;
    world.append(&tenant, vec![draft("task.made", "next")]).await;
    let from = world.store.announcer_place().await.unwrap();
    let page = world.store.journal_scan(from.seq, 1000).await.unwrap();
    let announce = |store: Arc<Store>| {
        let (to, events) = (place(&page), page.events.clone());
        async move { store.announce(from, to, events, None, at(5)).await.map(|_| ()) }.boxed()
    };
    faulty.make("announcing", announce).await;
}
