//! The outbox under chance: workers that crash, hang and come back, slow sends, late marks, recoveries and operators, at times
//! that only the simulation knows. After every step what must always hold is looked at.
//!
//! The workers follow the rules that the server's follow: no send is started later than half the stale window after its claim,
//! nor once a heartbeat has been six seconds late since.

use std::collections::{BTreeMap, BTreeSet};

use courant_api::DeliveryId;
use courant_api::notify::{DeliveriesRetry, DeliveryStatus, RetryOutcome};
use courant_store::{Change, Claimed, DeliveryQuery, Lanes, Mark, Outcome};
use uuid::Uuid;

use crate::outbox::{failure, sent};
use crate::world::{Chance, Engine, Ground, Raw, Tenant, World, at, draft, now};

const STALE: i64 = 300;
const TRUST: i64 = 6;
const MAX_ATTEMPTS: u32 = 3;
const STEPS: usize = 150;

/// A claimed delivery in a worker's hands.
struct InHand {
    claimed: Claimed,
    since: i64,
    sending: bool,
}

struct Worker {
    server: Uuid,
    last_beat: i64,
    /// Since when no heartbeat has been late.
    steady_since: i64,
    /// Whether its heartbeats reach the database.
    beats: bool,
    in_hand: Vec<InHand>,
}

struct Simulation {
    world: World,
    tenant: Tenant,
    raw: Raw,
    chance: Chance,
    clock: i64,
    workers: Vec<Worker>,
    /// Every delivery that was ever queued, and whether it was told that it arrived.
    queued: BTreeMap<DeliveryId, bool>,
    /// Sends that were started: a claim is used once.
    started: BTreeSet<(DeliveryId, i64)>,
    events: usize,
}

impl Simulation {
    async fn new(ground: &Ground, seed: u64) -> Self {
        let world = ground.world().await;
        let tenant = world.tenant().await;
        for name in ["ops", "chat"] {
            let new = tenant.integration(name, &["task."]);
            now(world.store.integration_create(tenant.change(), new, None).await.unwrap());
        }
        // A SQLite file has one server: its next one is the next start.
        let workers = if world.is_postgres() { 2 } else { 1 };
        let raw = world.raw().await;
        let mut simulation = Self {
            world,
            tenant,
            raw,
            chance: Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1),
            clock: 1,
            workers: Vec::new(),
            queued: BTreeMap::new(),
            started: BTreeSet::new(),
            events: 0,
        };
        for _ in 0..workers {
            let worker = simulation.fresh().await;
            simulation.workers.push(worker);
        }
        simulation
    }

    async fn fresh(&self) -> Worker {
        let server = self.world.store.server_register(at(self.clock)).await.unwrap();
        Worker { server, last_beat: self.clock, steady_since: self.clock, beats: true, in_hand: Vec::new() }
    }

    async fn queue(&mut self) {
        let count = 1 + self.chance.below(4);
        let drafts = (0..count).map(|n| draft("task.made", (self.events + n).to_string())).collect();
        self.events += count;
        self.world.append(&self.tenant, drafts).await;
        self.world.announce(at(self.clock)).await;
        let all =
            self.world.store.delivery_list(&self.tenant.caller, DeliveryQuery::default(), None, 1000).await.unwrap();
        for delivery in all.items {
            self.queued.entry(delivery.id).or_insert(false);
        }
    }

    async fn pass(&mut self) {
        // Mostly moments; now and then long enough for a recovery or for the end of a back-off.
        let seconds = match self.chance.below(10) {
            0 => 160,
            1 | 2 => 40,
            3..=5 => 7,
            _ => 1,
        };
        self.clock += seconds;
        for worker in self.workers.iter_mut().filter(|worker| worker.beats) {
            if self.world.store.server_beat(worker.server, at(self.clock)).await.unwrap() {
                if self.clock - worker.last_beat >= TRUST {
                    worker.steady_since = self.clock;
                }
                worker.last_beat = self.clock;
            }
        }
        if self.chance.below(2) == 0 {
            let recovered = self.world.store.delivery_recover(at(self.clock), STALE * 1_000_000, MAX_ATTEMPTS);
            recovered.await.unwrap();
        }
    }

    async fn claim(&mut self, n: usize) {
        let limit = 1 + i64::try_from(self.chance.below(4)).unwrap();
        let worker = &mut self.workers[n];
        if self.clock - worker.last_beat >= TRUST {
            return;
        }
        let claim =
            self.world.store.delivery_claim(worker.server, at(self.clock), limit, Lanes::default()).await.unwrap();
        for claimed in claim.deliveries {
            assert!(claimed.attempt.attempt_count <= i64::from(MAX_ATTEMPTS), "over its budget");
            worker.in_hand.push(InHand { claimed, since: self.clock, sending: false });
        }
    }

    /// Whether the row still stands under this claim.
    async fn owns(&self, claimed: &Claimed) -> bool {
        let id = claimed.attempt.id.uuid();
        let literal = if self.world.is_postgres() { format!("'{id}'") } else { format!("x'{}'", id.as_simple()) };
        let token = claimed.attempt.claim_token;
        let owned = format!(
            "SELECT count(*) FROM delivery WHERE id = {literal} AND status = 'processing' AND claim_token = {token}"
        );
        self.raw.number(&owned).await == 1
    }

    async fn send(&mut self, n: usize) {
        let worker = &self.workers[n];
        let Some(next) = worker.in_hand.iter().position(|held| !held.sending) else { return };
        let held = &worker.in_hand[next];
        let certain = self.clock - worker.last_beat < TRUST && held.since >= worker.steady_since;
        if self.clock - held.since > STALE / 2 || !certain {
            // It is left to be recovered.
            self.workers[n].in_hand.remove(next);
            return;
        }
        let claimed = held.claimed.clone();
        assert!(self.owns(&claimed).await, "a send on a claim that could be recovered");
        let used = (claimed.attempt.id, claimed.attempt.claim_token);
        assert!(self.started.insert(used), "two sends on one claim");
        self.workers[n].in_hand[next].sending = true;
    }

    async fn mark(&mut self, n: usize) {
        let Some(next) = self.workers[n].in_hand.iter().position(|held| held.sending) else { return };
        let claimed = self.workers[n].in_hand.remove(next).claimed;
        let outcome = match self.chance.below(5) {
            0 | 1 => Outcome::Sent,
            2 => Outcome::Dead { error: failure("HTTP 404"), disable_integration: false },
            _ if claimed.attempt.attempt_count >= i64::from(MAX_ATTEMPTS) => {
                Outcome::Dead { error: failure("HTTP 503"), disable_integration: false }
            }
            _ => Outcome::Retry { run_at: at(self.clock + 5), error: failure("HTTP 503") },
        };
        let owned = self.owns(&claimed).await;
        let arrived = matches!(outcome, Outcome::Sent);
        let mark = Mark { outcome, ..sent(&claimed) };
        // A mark may come twice, when the answer to the first was lost.
        let times = 1 + self.chance.below(2);
        for time in 0..times {
            let landed = self.world.store.delivery_finish(vec![mark.clone()], at(self.clock)).await.unwrap();
            assert_eq!(landed, [owned && time == 0], "a mark lands on its own claim, once");
        }
        if owned && arrived {
            self.queued.insert(claimed.attempt.id, true);
        }
    }

    async fn operate(&mut self) {
        let dead = DeliveryQuery { statuses: vec![DeliveryStatus::Dead], ..DeliveryQuery::default() };
        let dead = self.world.store.delivery_list(&self.tenant.caller, dead, None, 1000).await.unwrap().items;
        if dead.is_empty() {
            return;
        }
        let id = dead[self.chance.below(dead.len())].id;
        let change = Change { now: at(self.clock), ..self.tenant.change() };
        let retried = now(self.world.store.delivery_requeue(change, id).await.unwrap());
        assert_eq!(retried.outcome, RetryOutcome::Requeued);
    }

    async fn step(&mut self) {
        let n = self.chance.below(self.workers.len());
        match self.chance.below(100) {
            0..=9 => self.queue().await,
            10..=29 => self.pass().await,
            30..=49 => self.claim(n).await,
            50..=69 => self.send(n).await,
            70..=84 => self.mark(n).await,
            85..=89 => self.operate().await,
            90..=95 => self.workers[n].beats = !self.workers[n].beats,
            // It dies with what it has in hand, before, during or after a send.
            _ => self.workers[n] = self.fresh().await,
        }
    }

    /// Nothing is lost: what has not arrived is stored.
    async fn check(&self) {
        let stored = self.world.store.delivery_list(&self.tenant.caller, DeliveryQuery::default(), None, 1000).await;
        let stored: BTreeSet<_> = stored.unwrap().items.into_iter().map(|delivery| delivery.id).collect();
        for (id, arrived) in &self.queued {
            assert_ne!(stored.contains(id), *arrived, "{id} is lost, or kept although it arrived");
        }
    }

    /// Lets one good worker finish everything: what was hung, lost or given up is not stuck.
    async fn finish(mut self) {
        self.workers.clear();
        for _ in 0..20 {
            self.clock += STALE + 1;
            let worker = self.fresh().await;
            self.world.store.delivery_recover(at(self.clock), STALE * 1_000_000, MAX_ATTEMPTS).await.unwrap();
            let retry = DeliveriesRetry::default();
            let change = Change { now: at(self.clock), ..self.tenant.change() };
            now(self.world.store.deliveries_requeue(change, retry).await.unwrap());
            let claim =
                self.world.store.delivery_claim(worker.server, at(self.clock), 100, Lanes::default()).await.unwrap();
            let marks: Vec<_> = claim.deliveries.iter().map(sent).collect();
            let landed = self.world.store.delivery_finish(marks, at(self.clock)).await.unwrap();
            assert!(landed.iter().all(|landed| *landed));
            if claim.deliveries.is_empty() {
                break;
            }
        }
        assert_eq!(self.raw.number("SELECT count(*) FROM delivery").await, 0, "something is stuck");
    }
}

async fn nothing_is_lost_and_nothing_told_under_anothers_claim(engine: Engine, seeds: std::ops::Range<u64>) {
    let ground = Ground::new(engine);
    for seed in seeds {
        let mut simulation = Simulation::new(&ground, seed).await;
        simulation.queue().await;
        for _ in 0..STEPS {
            simulation.step().await;
            simulation.check().await;
        }
        simulation.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outbox_holds_under_chance_on_postgres() {
    nothing_is_lost_and_nothing_told_under_anothers_claim(Engine::Postgres, 0..12).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outbox_holds_under_chance_on_sqlite() {
    nothing_is_lost_and_nothing_told_under_anothers_claim(Engine::Sqlite, 0..24).await;
}
