//! The whole catalogue, told: each change over HTTP, and each that the clock or a receiver causes, appends its event in the
//! workspace where its entity lies. A type of the catalogue that nothing here tells stands on a list, or the test fails.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use courant_api::events::{RESERVED_SEGMENTS, core_types};
use courant_store::{Fault, Options, Store};
use courant_testkit::{DrivenClock, TestDatabase};

use crate::support::http::Call;
use crate::support::tenant::{WEBHOOK_SECRET, id, order};
use crate::support::{Answer, Engine, Reply, Tenant, Value, World, eventually, json};

/// Types that the catalogue has or is going to have and nothing produces yet. The list may only shrink.
const NOT_YET: &[&str] = &["channel_link.created", "channel_link.revoked"];

/// A tenant whose changes are watched one by one.
struct Watched<'w> {
    tenant: Tenant,
    /// What each change has to get over before it is made.
    faults: Option<Faults<'w>>,
    cursor: String,
    told: BTreeSet<String>,
    here: String,
    there: String,
}

/// Where an event is expected.
#[derive(Clone, Copy, Debug)]
enum At {
    /// At the level of the tenant.
    Tenant,
    /// In the first workspace.
    Here,
    /// In the second one.
    There,
}

use At::{Here, Tenant as Nowhere, There};

/// A server that fails before each step of each change, on a database where nothing else happens.
struct Faults<'w> {
    fault: Fault,
    database: &'w TestDatabase,
}

impl Faults<'_> {
    /// Makes a change that fails before its first step, before its second, and so on, until none is left. Each failure is
    /// said and leaves nothing.
    async fn around(&self, change: Call) -> Reply {
        for step in 1.. {
            let before = self.database.contents().await;
            self.fault.set(step);
            let reply = change.again().await;
            if self.fault.is_set() {
                self.fault.set(0);
                assert!(step > 2, "it changes something: {}", reply.text());
                return reply;
            }
            reply.refused(503, "unavailable");
            let after = self.database.contents().await;
            let new: Vec<_> = after.iter().filter(|row| !before.contains(row)).collect();
            assert!(after == before, "step {step} leaves {new:?}");
        }
        unreachable!("every change ends")
    }
}

impl Watched<'_> {
    fn place(&self, at: At) -> Value {
        match at {
            Nowhere => Value::Null,
            Here => json!(self.here),
            There => json!(self.there),
        }
    }

    /// That since the last look exactly these events were appended, there.
    async fn tells(&mut self, expected: &[(&str, At)]) {
        let events = self.tenant.events(&format!("cursor={}", self.cursor)).await;
        let told: Vec<_> = events.iter().map(|e| (e["type"].clone(), e["workspaceId"].clone())).collect();
        let expected: Vec<_> = expected.iter().map(|(name, at)| (json!(name), self.place(*at))).collect();
        assert_eq!(told, expected);
        self.told.extend(events.iter().map(|event| event["type"].as_str().unwrap().to_owned()));
        if let Some(last) = events.last() {
            last["cursor"].as_str().unwrap().clone_into(&mut self.cursor);
        }
    }

    /// The same once it is told by itself.
    async fn tells_soon(&mut self, expected: &[(&str, At)]) {
        eventually("what is told by itself", async || {
            let events = self.tenant.events(&format!("cursor={}", self.cursor)).await;
            (events.len() >= expected.len()).then_some(())
        })
        .await;
        self.tells(expected).await;
    }

    /// Makes a change, over all that stands in its way.
    async fn make(&self, change: Call) -> Reply {
        match &self.faults {
            Some(faults) => faults.around(change).await,
            None => change.await,
        }
    }

    /// Creates something and sees what that tells; its id.
    async fn post(&mut self, path: &str, body: &Value, expected: &[(&str, At)]) -> String {
        let made = self.make(self.tenant.post(path, body)).await.expect(201);
        self.tells(expected).await;
        id(&made)
    }

    /// Does something and sees what that tells.
    async fn does(&mut self, done: Reply, expected: &[(&str, At)]) -> Value {
        assert!((200..300).contains(&done.status), "{}", done.text());
        self.tells(expected).await;
        if done.bytes.is_empty() { Value::Null } else { done.expect(done.status) }
    }

    /// A request with this body, or with none when it is empty.
    async fn act(&mut self, path: &str, body: &Value, expected: &[(&str, At)]) -> Value {
        let call = if *body == json!({}) { self.tenant.act(path) } else { self.tenant.post(path, body) };
        let done = self.make(call).await;
        self.does(done, expected).await
    }

    async fn patch(&mut self, path: &str, body: &Value, expected: &[(&str, At)]) {
        let done = self.make(self.tenant.patch(path, body)).await;
        self.does(done, expected).await;
    }

    async fn delete(&mut self, path: &str, expected: &[(&str, At)]) {
        let done = self.make(self.tenant.delete(path)).await;
        self.does(done, expected).await;
    }

    async fn workspaces(&mut self) {
        let (here, there) = (self.here.clone(), self.there.clone());
        self.patch(&format!("/workspaces/{here}"), &json!({ "name": "first" }), &[("workspace.updated", Here)]).await;
        // Below the first one, then at the top, then gone: the place that it leaves is told apart.
        let to = json!({ "parentId": here });
        self.act(&format!("/workspaces/{there}:move"), &to, &[("workspace.moved", There)]).await;
        let told = [("workspace.moved", There), ("workspace.entity_left", Here)];
        self.act(&format!("/workspaces/{there}:move"), &json!({ "parentId": null }), &told).await;
        let made = self.make(self.tenant.post("/workspaces", &json!({ "name": "third" }))).await.expect(201);
        self.make(self.tenant.act(&format!("/workspaces/{}:archive", id(&made)))).await.expect(200);
        let events = self.tenant.events(&format!("cursor={}", self.cursor)).await;
        assert!(events.iter().all(|event| event["workspaceId"] == made["id"]), "{events:?}");
        let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["workspace.created", "workspace.archived"]);
        self.told.extend(types.iter().map(|name| (*name).to_owned()));
        self.cursor = self.tenant.end().await;
    }

    async fn access(&mut self, world: &World) {
        let person = json!({ "kind": "human", "displayName": "Grace" });
        let person = self.post("/principals", &person, &[("principal.created", Nowhere)]).await;
        let path = format!("/principals/{person}");
        self.patch(&path, &json!({ "displayName": "Grace H." }), &[("principal.updated", Nowhere)]).await;
        let key = self.post("/api-keys", &json!({ "principalId": person }), &[("api_key.created", Nowhere)]).await;
        self.act(&format!("/api-keys/{key}:revoke"), &json!({}), &[("api_key.revoked", Nowhere)]).await;
        let grant = json!({ "principalId": person, "permission": "tasks.read", "resource": "tenant" });
        let grant = self.post("/grants", &grant, &[("grant.created", Nowhere)]).await;
        self.delete(&format!("/grants/{grant}"), &[("grant.revoked", Nowhere)]).await;
        let login = json!({ "issuer": world.issuer.name(), "subject": "grace", "principalId": person });
        let login = self.post("/identity-bindings", &login, &[("identity_binding.created", Nowhere)]).await;
        self.delete(&format!("/identity-bindings/{login}"), &[("identity_binding.revoked", Nowhere)]).await;
        let role = json!({ "key": "deciders", "name": "Deciders", "workspaceId": self.here });
        let role = self.post("/roles", &role, &[("role.created", Here)]).await;
        self.patch(&format!("/roles/{role}"), &json!({ "name": "Who decides" }), &[("role.updated", Here)]).await;
        let held = json!({ "principalId": person, "workspaceId": self.there });
        let held = self.post(&format!("/roles/{role}/assignments"), &held, &[("role.assigned", Here)]).await;
        self.delete(&format!("/roles/{role}/assignments/{held}"), &[("role.revoked", Here)]).await;
        self.patch(&path, &json!({ "status": "disabled" }), &[("principal.disabled", Nowhere)]).await;
    }

    async fn resources(&mut self) -> String {
        let (here, there) = (self.here.clone(), self.there.clone());
        let goal = json!({ "title": "Fewer pages", "workspaceId": here });
        let goal = self.post("/goals", &goal, &[("goal.created", Here)]).await;
        let moved = [("goal.updated", There), ("workspace.entity_left", Here)];
        self.patch(&format!("/goals/{goal}"), &json!({ "workspaceId": there }), &moved).await;
        let rule = json!({ "key": "nightly", "workspaceId": here, "definition": {} });
        let rule = self.post("/rules", &rule, &[("rule.created", Here)]).await;
        let path = format!("/rules/{rule}");
        self.act(&format!("{path}:enable"), &json!({}), &[("rule.enabled", Here)]).await;
        self.act(&format!("{path}:disable"), &json!({}), &[("rule.disabled", Here)]).await;
        let moved = [("rule.updated", There), ("workspace.entity_left", Here)];
        self.patch(&path, &json!({ "workspaceId": there }), &moved).await;
        self.act(&format!("{path}:archive"), &json!({}), &[("rule.archived", There)]).await;
        let project = json!({ "key": "billing", "name": "Billing", "workspaceId": here });
        let project = self.post("/projects", &project, &[("project.created", Here)]).await;
        let path = format!("/projects/{project}");
        let moved = [("project.updated", There), ("workspace.entity_left", Here)];
        self.patch(&path, &json!({ "workspaceId": there }), &moved).await;
        self.act(&format!("{path}:archive"), &json!({}), &[("project.archived", There)]).await;
        goal
    }

    async fn task(&mut self, with: Value) -> String {
        let mut body = json!({ "title": "Renew the certificate", "workspaceId": self.here });
        body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        self.post("/tasks", &body, &[("task.created", Here)]).await
    }

    /// Claims a task and begins a run on it; the claim and the run.
    async fn works(&mut self, task: &str, at: At) -> (Value, String) {
        let claim = self.act(&format!("/tasks/{task}:claim"), &json!({}), &[("task.claimed", at)]).await;
        let run = json!({ "claimId": claim["id"], "fencingToken": claim["fencingToken"] });
        let run = self.post("/runs", &run, &[("run.started", at)]).await;
        (claim, run)
    }

    async fn progress(&mut self, task: &str) {
        self.post(&format!("/tasks/{task}/comments"), &json!({ "body": "Soon" }), &[("task.comment_added", Here)])
            .await;
        let (claim, run) = self.works(task, Here).await;
        let again = json!({ "claimId": claim["id"], "fencingToken": claim["fencingToken"] });
        self.act(&format!("/runs/{run}:fail"), &json!({}), &[("run.failed", Here)]).await;
        for (verb, told) in [("suspend", "run.suspended"), ("cancel", "run.cancelled")] {
            let run = self.post("/runs", &again, &[("run.started", Here)]).await;
            self.act(&format!("/runs/{run}:{verb}"), &json!({}), &[(told, Here)]).await;
        }
        self.act(&format!("/claims/{}:release", id(&claim)), &json!({}), &[("claim.released", Here)]).await;
        for (verb, body, told) in [
            ("fail", json!({ "failedCheck": "tests" }), "task.verification_failed"),
            ("pass", json!({}), "task.verified"),
        ] {
            let checks = json!({ "checks": ["tests"] });
            let path = format!("/tasks/{task}/verifications");
            let verification = self.post(&path, &checks, &[("task.verification_started", Here)]).await;
            self.act(&format!("/verifications/{verification}:{verb}"), &body, &[(told, Here)]).await;
        }
        let wanted = json!({ "taskId": task, "skill": "translate", "skillVersion": "1" });
        for (verb, body, told) in [
            ("succeed", json!({}), "skill.invocation_succeeded"),
            ("fail", json!({ "errorCode": "no_model" }), "skill.invocation_failed"),
            ("cancel", json!({}), "skill.invocation_cancelled"),
            ("retry", json!({ "errorCode": "rate_limited" }), "skill.invocation_retry_scheduled"),
        ] {
            let skill = self.post("/skill-invocations", &wanted, &[("skill.invocation_requested", Here)]).await;
            let path = format!("/skill-invocations/{skill}");
            self.act(&format!("{path}:claim"), &json!({}), &[("skill.invocation_claimed", Here)]).await;
            self.act(&format!("{path}:{verb}"), &body, &[(told, Here)]).await;
        }
    }

    /// Asks for a decision about a task or an artifact.
    async fn asks(&mut self, about: Value, at: At) -> String {
        let mut body = json!({ "assignedPrincipalId": self.tenant.principal });
        body.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
        self.post("/approvals", &body, &[("approval.requested", at)]).await
    }

    /// Artifacts of a task and of none, decisions about both, and what becomes of them when the task moves.
    async fn artifacts_and_decisions(&mut self, task: &str) {
        let made = |with: Value| {
            let mut body = json!({ "type": "report", "name": "plan.txt" });
            body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
            body
        };
        let of_task = self.post("/artifacts", &made(json!({ "taskId": task })), &[("artifact.created", Here)]).await;
        let own = made(json!({ "taskId": task, "workspaceId": self.there }));
        self.post("/artifacts", &own, &[("artifact.created", There)]).await;
        self.post("/artifacts", &made(json!({})), &[("artifact.created", Nowhere)]).await;
        let stays = self.asks(json!({ "taskId": task }), Here).await;
        let about = self.asks(json!({ "artifactId": of_task }), Here).await;
        let moved = [("task.updated", There), ("workspace.entity_left", Here)];
        self.patch(&format!("/tasks/{task}"), &json!({ "workspaceId": self.there }), &moved).await;
        self.post("/artifacts", &made(json!({ "taskId": task })), &[("artifact.created", There)]).await;
        // Decisions stay where they were asked for.
        self.act(&format!("/approvals/{stays}:approve"), &json!({}), &[("approval.approved", Here)]).await;
        self.act(&format!("/approvals/{about}:reject"), &json!({}), &[("approval.rejected", Here)]).await;
        for approval in [stays, about] {
            let view = self.tenant.get(&format!("/approvals/{approval}")).await.expect(200);
            assert_eq!(view["workspaceId"], json!(self.here));
        }
        let requested = self.tenant.events("types=approval.requested").await;
        assert!(requested.iter().all(|event| event["payload"]["workspaceId"] == event["workspaceId"]), "{requested:?}");
        let withdrawn = self.asks(json!({ "taskId": task }), There).await;
        self.act(&format!("/approvals/{withdrawn}:cancel"), &json!({}), &[("approval.cancelled", There)]).await;
        let (_, run) = self.works(task, There).await;
        let done = [("run.succeeded", There), ("task.completed", There)];
        self.act(&format!("/runs/{run}:succeed"), &json!({ "completeTask": true }), &done).await;
    }

    /// What ends by the clock.
    async fn ends(&mut self) {
        let task = self.task(json!({})).await;
        let claim = json!({ "leaseSeconds": 10 });
        self.act(&format!("/tasks/{task}:claim"), &claim, &[("task.claimed", Here)]).await;
        let soon = courant_server::clock::now().plus_micros(9_000_000).to_string();
        self.asks(json!({ "taskId": task, "expiresAt": soon }), Here).await;
        let clock = DrivenClock::take();
        clock.pass(Duration::from_secs(11)).await;
        clock.release();
        eventually("both ends", async || {
            (self.tenant.events(&format!("cursor={}", self.cursor)).await.len() == 2).then_some(())
        })
        .await;
        let events = self.tenant.events(&format!("cursor={}", self.cursor)).await;
        let first = events[0]["type"].as_str().unwrap();
        let second = if first == "claim.expired" { "approval.expired" } else { "claim.expired" };
        self.tells(&[(first, Here), (second, Here)]).await;
    }

    /// A deployment of a stack, which lies here; its id.
    async fn deploys(&mut self, stack: &str, with: Value, told: &[(&str, At)]) -> String {
        let mut body = json!({ "stackId": stack, "mode": "plan" });
        body.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        let path = self.tenant.org("/deployments");
        self.post(&path, &body, told).await
    }

    /// Runs a deployment's next run to this end.
    async fn runs(&mut self, deployment: &str, kind: &str, end: &str, told: &[(&str, At)]) {
        let body = json!({ "kind": kind });
        let path = self.tenant.org(&format!("/deployments/{deployment}/runs"));
        let run = self.post(&path, &body, &[]).await;
        let path = self.tenant.org(&format!("/runs/{run}:complete"));
        self.act(&path, &json!({ "status": end }), told).await;
    }

    /// Does something to a deployment.
    async fn step(&mut self, deployment: &str, verb: &str, told: &[(&str, At)]) {
        let path = self.tenant.org(&format!("/deployments/{deployment}:{verb}"));
        self.act(&path, &json!({}), told).await;
    }

    async fn deployments(&mut self) {
        let path = self.tenant.org("/stacks");
        let body = json!({ "name": "network", "workspaceId": self.here, "prPlanMode": "manual" });
        let stack = self.post(&path, &body, &[("stack.created", Here)]).await;
        let body = json!({ "name": "cluster", "workspaceId": self.there,
            "dependsOn": [{ "stackId": stack, "trigger": true }] });
        let dependent = self.post(&path, &body, &[("stack.created", There)]).await;
        let created = [("deployment.created", Here)];
        let full = self.deploys(&stack, json!({}), &created).await;
        self.runs(&full, "plan", "succeeded", &[("deployment.awaiting_confirmation", Here)]).await;
        self.step(&full, "confirm", &[("deployment.confirmed", Here)]).await;
        let done = [("deployment.succeeded", Here), ("deployment.created", There)];
        self.runs(&full, "apply", "succeeded", &done).await;
        // The dependent one has not ended when the next apply would start it.
        let again = self.deploys(&stack, json!({}), &created).await;
        self.runs(&again, "plan", "succeeded", &[("deployment.awaiting_confirmation", Here)]).await;
        self.step(&again, "confirm", &[("deployment.confirmed", Here)]).await;
        let done = [("deployment.succeeded", Here), ("dependent_trigger.failed", Here)];
        self.runs(&again, "apply", "succeeded", &done).await;

        let failed = self.deploys(&stack, json!({}), &created).await;
        self.runs(&failed, "plan", "failed", &[("deployment.failed", Here)]).await;
        for (verb, told) in [("cancel", "deployment.cancelled"), ("skip", "deployment.skipped")] {
            let deployment = self.deploys(&stack, json!({}), &created).await;
            self.step(&deployment, verb, &[(told, Here)]).await;
        }
        let preview =
            |number: i64| json!({ "mode": "plan_unlocked", "origin": { "kind": "pull_request", "number": number } });
        let parked = [("deployment.created", Here), ("preview.awaiting_confirmation", Here)];
        let first = self.deploys(&stack, preview(1), &parked).await;
        let newer =
            [("deployment.created", Here), ("preview.auto_skipped", Here), ("preview.awaiting_confirmation", Here)];
        let second = self.deploys(&stack, preview(1), &newer).await;
        let retired = self.tenant.get(&self.tenant.org(&format!("/deployments/{first}"))).await.expect(200);
        assert_eq!((&retired["status"], &retired["skippedReason"]), (&json!("skipped"), &json!("superseded")));
        self.step(&second, "confirm", &[("preview.confirmed", Here)]).await;
        self.runs(&second, "plan", "succeeded", &[("preview.succeeded", Here)]).await;
        let path = self.tenant.org(&format!("/deployments/{second}:promote"));
        let done = self.make(self.tenant.act(&path)).await;
        self.does(done, &[("pull_request.promoted", Here), ("deployment.created", Here)]).await;
        for (number, verb, told) in [(2, "cancel", "preview.cancelled"), (3, "skip", "preview.skipped")] {
            let deployment = self.deploys(&stack, preview(number), &parked).await;
            self.step(&deployment, verb, &[(told, Here)]).await;
        }
        let failed = self.deploys(&stack, json!({ "mode": "plan_unlocked" }), &created).await;
        self.runs(&failed, "plan", "failed", &[("preview.failed", Here)]).await;
        let command = self.deploys(&stack, json!({ "mode": "raw" }), &created).await;
        let path = self.tenant.org(&format!("/deployments/{command}/runs"));
        let body = json!({ "kind": "command", "command": "true" });
        self.post(&path, &body, &[("run_command.executed", Here)]).await;

        let path = self.tenant.org(&format!("/stacks/{stack}"));
        let moved = [("stack.updated", There), ("workspace.entity_left", Here)];
        self.patch(&path, &json!({ "workspaceId": self.there.clone() }), &moved).await;
        self.step(&command, "cancel", &[("deployment.cancelled", There)]).await;
        // What the apply has started still waits when its stack is deleted.
        let path = self.tenant.org(&format!("/stacks/{dependent}"));
        self.delete(&path, &[("deployment.auto_skipped", There), ("stack.deleted", There)]).await;
    }

    async fn operations(&mut self, world: &World) {
        let order_type = crate::support::tenant::order_type();
        let done = self.make(self.tenant.put("/event-types/order.made/versions/1", &order_type)).await;
        self.does(done, &[("event_type.registered", Nowhere)]).await;
        let until = courant_server::clock::now().plus_micros(60_000_000).to_string();
        let lease = json!({ "cursor": self.cursor, "expiresAt": until });
        let done = self.make(self.tenant.put("/consumers/billing", &lease)).await;
        self.does(done, &[("consumer.registered", Nowhere)]).await;
        let done = self.tenant.put("/consumers/billing", &lease).await;
        self.does(done, &[]).await;
        self.delete("/consumers/billing", &[("consumer.released", Nowhere)]).await;

        let path = self.tenant.org("/notification-integrations");
        let hook = json!({
            "name": "hooks", "provider": "webhook", "journalTypes": ["order."],
            "providerConfig": { "url": world.sink.url("/") }, "authConfig": { "secret": WEBHOOK_SECRET },
        });
        let hook = self.post(&path, &hook, &[("notification_integration.created", Nowhere)]).await;
        let path = format!("{path}/{hook}");
        let updated = [("notification_integration.updated", Nowhere)];
        self.patch(&path, &json!({ "name": "webhooks" }), &updated).await;
        self.delete(&path, &[("notification_integration.deleted", Nowhere)]).await;
    }

    /// What background work tells, and what waits for it.
    async fn background(&mut self, world: &World) {
        self.tenant.webhook("hooks", &world.sink, &["order."], json!({})).await;
        self.tells(&[("notification_integration.created", Nowhere)]).await;
        self.tenant.append(order("order.made", "o_1")).await;
        self.tells(&[("order.made", Nowhere)]).await;
        world.sink.next().await.answer(Answer::status(410));
        let gone = [("notification_delivery.dead", Nowhere), ("notification_integration.disabled", Nowhere)];
        self.tells_soon(&gone).await;
        world.announced(world.app.store.journal_horizon().await.unwrap()).await;
        let all = json!({ "beforeSeconds": 0, "maxEvents": 100_000 });
        self.act("/operations/journal:prune", &all, &[("event_journal.pruned", Nowhere)]).await;
    }
}

/// Makes every change that a request can make.
async fn tell(watched: &mut Watched<'_>, world: &World) {
    watched.workspaces().await;
    watched.access(world).await;
    let goal = watched.resources().await;
    let task = watched.task(json!({ "goalId": goal })).await;
    watched.progress(&task).await;
    watched.artifacts_and_decisions(&task).await;
    watched.deployments().await;
    watched.operations(world).await;
}

/// A tenant with two workspaces, acted upon at this address.
async fn watched<'w>(world: &World, address: SocketAddr, faults: Option<Faults<'w>>) -> Watched<'w> {
    let tenant = world.tenant().await;
    let tenant = Tenant { api: tenant.api.at(address), ..tenant };
    let told: BTreeSet<_> = tenant.events("").await.iter().map(|e| e["type"].as_str().unwrap().to_owned()).collect();
    let first = ["api_key.created", "grant.created", "principal.created", "tenant.bootstrapped"];
    assert_eq!(told.iter().collect::<Vec<_>>(), first);
    let (here, there) = (tenant.workspace(None).await, tenant.workspace(None).await);
    let cursor = tenant.end().await;
    Watched { tenant, faults, cursor, told, here, there }
}

async fn every_type_of_the_catalogue_is_told_where_its_entity_lies(engine: Engine) {
    let world = World::start(engine, &[]).await;
    let address = world.second_listener().await;
    let mut watched = watched(&world, address, None).await;
    tell(&mut watched, &world).await;
    watched.ends().await;
    watched.background(&world).await;

    let told: BTreeSet<_> = watched.told.iter().map(String::as_str).filter(|name| *name != "order.made").collect();
    let not_yet: BTreeSet<_> = NOT_YET.iter().copied().collect();
    assert_eq!(told.intersection(&not_yet).count(), 0, "take what is told off the list");
    let known: BTreeSet<_> = core_types().map(|t| t.name).collect();
    let silent: Vec<_> = known.iter().filter(|name| !told.contains(*name) && !not_yet.contains(*name)).collect();
    assert!(silent.is_empty(), "nothing here tells {silent:?}");
    assert!(told.is_subset(&known));
    world.finish().await;
}

#[tokio::test]
async fn every_type_is_told_on_postgres() {
    every_type_of_the_catalogue_is_told_where_its_entity_lies(Engine::Postgres).await;
}

#[tokio::test]
async fn every_type_is_told_on_sqlite() {
    every_type_of_the_catalogue_is_told_where_its_entity_lies(Engine::Sqlite).await;
}

/// A change and its events are one: what fails anywhere leaves neither.
async fn a_change_that_fails_at_any_step_leaves_nothing(engine: Engine) {
    let world = World::start(engine, &[]).await;
    let fault = Fault::default();
    let options = Options { fault: Some(fault.clone()), ..Options::command(world.database_url()) };
    let address = world.second_server_on(Store::open(&options).await.unwrap()).await;
    let mut watched = watched(&world, address, Some(Faults { fault, database: &world.database })).await;
    world.stop().await;
    tell(&mut watched, &world).await;
    let told = &watched.told;
    let known: BTreeSet<_> = core_types().map(|t| t.name).filter(|name| !NOT_YET.contains(name)).collect();
    let untried: Vec<_> = known.into_iter().filter(|name| !told.contains(*name)).collect();
    assert_eq!(untried, BY_BACKGROUND);
    world.finish().await;
}

/// What no request tells: the store's tests put the same faults into these changes. A prune is many changes, which go on where
/// it was cut.
const BY_BACKGROUND: &[&str] = &[
    "approval.expired",
    "claim.expired",
    "event_journal.pruned",
    "notification_delivery.dead",
    "notification_integration.disabled",
];

#[tokio::test]
async fn a_change_that_fails_leaves_nothing_on_postgres() {
    a_change_that_fails_at_any_step_leaves_nothing(Engine::Postgres).await;
}

#[tokio::test]
async fn a_change_that_fails_leaves_nothing_on_sqlite() {
    a_change_that_fails_at_any_step_leaves_nothing(Engine::Sqlite).await;
}

/// Names that are reserved for events and begin none.
const NO_FAMILY: &[&str] = &["skill_invocation", "explore"];

#[test]
fn every_family_of_the_platform_is_told_or_on_the_list() {
    for segment in RESERVED_SEGMENTS.iter().filter(|segment| !NO_FAMILY.contains(segment)) {
        let family = |name: &str| name.split('.').next() == Some(segment);
        assert!(core_types().any(|t| family(t.name)) || NOT_YET.iter().any(|name| family(name)), "{segment}");
    }
}
