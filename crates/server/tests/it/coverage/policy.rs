//! Every route with an external decision point: it alone decides, and without its decision nobody passes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use courant_testkit::{PolicyService, Verdict};
use futures_util::future::join_all;

use super::routes::{ROUTES, Route, Who};
use super::{Things, fill, things};
use crate::support::{Engine, Socket, Tenant, Value, World, eventually, json, tenant};

/// A server with a policy service that allows everything, so far.
async fn governed(engine: Engine) -> (World, PolicyService) {
    let policy = PolicyService::start().await;
    let world = World::start(engine, &[("COURANT_AUTHORIZE", "policy"), ("COURANT_PDP_URL", &policy.url())]).await;
    (world, policy)
}

fn guarded() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| matches!(route.who, Who::Holders(_) | Who::OneOf(_) | Who::Caller))
}

fn asked_on(question: &Value) -> Held {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, id) = (text(&question["resource"]["type"]), text(&question["resource"]["id"]));
    (text(&question["action"]["name"]), if kind == "tenant" { kind } else { format!("{kind}:{id}") })
}

/// A permission and what it is held on.
type Held = (String, String);

/// What one principal is allowed, while everybody else is allowed everything.
#[derive(Clone, Default)]
struct Allowed(Arc<Mutex<(String, BTreeSet<Held>)>>);

impl Allowed {
    fn set(&self, principal: &str, allowed: &[(&str, &str)]) {
        let allowed = allowed.iter().map(|(permission, on)| ((*permission).to_owned(), (*on).to_owned()));
        *self.0.lock().unwrap() = (principal.to_owned(), allowed.collect());
    }

    fn verdict(&self, question: &Value) -> Verdict {
        let (principal, allowed) = &*self.0.lock().unwrap();
        let (permission, on) = asked_on(question);
        // What is allowed on the tenant is handed out within it, too.
        let everywhere = allowed.contains(&(permission.clone(), "tenant".to_owned()));
        let allowed = everywhere || allowed.contains(&(permission, on));
        Verdict::Decide(question["subject"]["id"] != principal.as_str() || allowed)
    }
}

async fn what_the_table_says_is_what_the_decision_point_is_asked(engine: Engine) {
    let (world, policy) = governed(engine).await;
    let allowed = Allowed::default();
    policy.decide({
        let allowed = allowed.clone();
        move |question| allowed.verdict(question)
    });
    let tenant = world.tenant().await;
    for (n, route) in guarded().filter(|route| !route.is_socket()).enumerate() {
        let things = things(&world, &tenant, &format!("sample{n}.made")).await;
        let member = tenant.member(&[]).await;
        let needs = match route.who {
            Who::Holders(needs) => needs,
            Who::OneOf(needs) => &needs[needs.len() - 1..],
            Who::Caller | Who::Bootstrap | Who::Everybody => continue,
        };
        let place = format!("{} {}", route.method, route.template);
        for (without, need) in needs.iter().enumerate() {
            let rest = needs.iter().enumerate().filter(|(n, _)| *n != without).map(|(_, need)| need);
            let rest: Vec<_> = rest.map(|need| (need.permission, fill(need.on, &things))).collect();
            allowed.set(&member.id, &rest.iter().map(|(p, on)| (*p, on.as_str())).collect::<Vec<_>>());
            let reply = route.request(&member, &things).await;
            // Of an integration that may not be seen there is nothing to tell apart.
            let hidden = reply.status == 404 && route.template.contains("notification");
            assert!(reply.status == need.refused || hidden, "{place}: {}", reply.text());
        }
        // Denials count for a moment; a second server has not heard of them.
        let other = tenant.member(&[]).await;
        if route.decides() {
            tenant.assign(&things["decider"], &other.id, &things["workspace"]).await;
        }
        let all: Vec<_> = needs.iter().map(|need| (need.permission, fill(need.on, &things))).collect();
        allowed.set(&other.id, &all.iter().map(|(p, on)| (*p, on.as_str())).collect::<Vec<_>>());
        let reply = route.request(&other, &things).await;
        assert_eq!(reply.status, route.status, "{place}: {}", reply.text());
    }
    world.finish().await;
}

/// Members who have asked for nothing yet, so that nothing is known of them.
async fn strangers(tenant: &Tenant, things: &Things) -> Vec<tenant::Member> {
    let mut members = Vec::new();
    for _ in guarded() {
        let member = tenant.member(&[]).await;
        // So that there is something to ask about what they may decide.
        tenant.assign(&things["decider"], &member.id, &things["workspace"]).await;
        members.push(member);
    }
    members
}

async fn every_answer(members: &[tenant::Member], things: &Things) -> Vec<(String, u16, String)> {
    let answers = guarded().zip(members).map(async |(route, member)| {
        let place = format!("{} {}", route.method, route.template);
        if route.is_socket() {
            let (code, reason) = Socket::open(member, &fill(route.path, things)).await.closed().await;
            return (place, code, reason);
        }
        let reply = route.request(member, things).await;
        if reply.status == 503 {
            assert!(reply.header("retry-after").is_some(), "{place}");
        }
        let body: Value = serde_json::from_str(reply.text()).unwrap_or_default();
        let code = body["error"]["code"].as_str().unwrap_or_default().to_owned();
        (place, reply.status, code)
    });
    join_all(answers).await
}

async fn without_a_decision_nobody_passes_and_all_is_well_again_with_one(engine: Engine) {
    let (world, policy) = governed(engine).await;
    let tenant = world.tenant().await;
    let things = things(&world, &tenant, "sample.made").await;
    let before = tenant.end().await;
    for (name, fault) in [
        ("hangs", Verdict::Hang),
        ("never ends its answer", Verdict::Trickle),
        ("fails", Verdict::Answer(500, "{\"decision\":true}".into())),
        ("refuses", Verdict::Answer(403, "{\"decision\":true}".into())),
        ("redirects", Verdict::Answer(302, "{\"decision\":true}".into())),
        ("answers garbage", Verdict::Answer(200, "<html>yes</html>".into())),
        ("answers half", Verdict::Answer(200, "{\"decision\":tr".into())),
        ("answers a text", Verdict::Answer(200, "{\"decision\":\"true\"}".into())),
        ("answers too much", Verdict::Answer(200, format!("{{\"x\":\"{}\",\"decision\":true}}", "x".repeat(100_000)))),
    ] {
        policy.decide(|_| Verdict::Decide(true));
        let members = strangers(&tenant, &things).await;
        let people: BTreeSet<_> = members.iter().map(|member| member.id.clone()).collect();
        policy.decide(move |question| {
            let stranger = question["subject"]["id"].as_str().is_some_and(|id| people.contains(id));
            if stranger { fault.clone() } else { Verdict::Decide(true) }
        });
        for (place, status, code) in every_answer(&members, &things).await {
            let expected = if status > 1000 { 4503 } else { 503 };
            assert_eq!((status, code.as_str()), (expected, "authorization_unavailable"), "{place} when it {name}");
        }
        assert_eq!(tenant.end().await.len(), before.len());
        policy.decide(|_| Verdict::Decide(false));
        for (place, status, code) in every_answer(&members, &things).await {
            // What is about oneself is answered, with nothing in it.
            let about_oneself = place.ends_with("authz:check") || place.ends_with("/me/approvals");
            let refused = matches!(status, 403 | 404 | 4403) || about_oneself;
            assert!(refused, "{place} after it {name}: {status} {code}");
        }
    }
    world.finish().await;
}

async fn a_question_carries_who_what_and_where_and_the_servers_own_token(engine: Engine) {
    let policy = PolicyService::start().await;
    let setup = [
        ("COURANT_AUTHORIZE", "policy"),
        ("COURANT_PDP_URL", &policy.url()),
        ("COURANT_PDP_TOKEN", "token-of-the-policy-service"),
    ];
    let world = World::start(engine, &setup).await;
    let tenant = world.tenant().await;
    let top = tenant.workspace(None).await;
    let below = tenant.workspace(Some(&top)).await;
    policy.asked();
    tenant.get(&format!("/events?workspaceId={below}")).await.expect(200);
    let asked = policy.asked();
    let [question] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(question.path, "/access/v1/evaluation");
    assert_eq!(question.headers["authorization"], "Bearer token-of-the-policy-service");
    assert_eq!(question.headers["content-type"], "application/json");
    let expected = json!({
        "subject": { "type": "principal", "id": tenant.principal, "properties": { "tenantId": tenant.id } },
        "action": { "name": "events.read" },
        "resource": {
            "type": "workspace", "id": below, "properties": { "tenantId": tenant.id, "ancestors": [top] },
        },
    });
    assert_eq!(question.body, expected);
    world.finish().await;
}

/// What is announced hangs on what the saver of an integration may read; while nobody says, it waits.
async fn what_is_announced_waits_for_a_decision_and_is_not_lost(engine: Engine) {
    let (world, policy) = governed(engine).await;
    let tenant = world.tenant().await;
    tenant.register(&["order.placed"]).await;
    let saver = tenant.member(&[]).await;
    let as_saver = Tenant { api: saver.api.clone(), ..tenant.clone() };
    as_saver.webhook("ops", &world.sink, &["order."], json!({})).await;
    // What was allowed a moment ago is forgotten first.
    policy.decide({
        let saver = saver.id.clone();
        move |question| if question["subject"]["id"] == saver.as_str() { Verdict::Hang } else { Verdict::Decide(true) }
    });
    eventually("a question about the saver that nobody answers", async || {
        (saver.get("/events").await.status == 503).then_some(())
    })
    .await;
    tenant.append(tenant::order("order.placed", "o_1")).await;
    policy.asked();
    eventually("the announcer's question", async || {
        policy.asked().iter().any(|asked| asked.body["subject"]["id"] == saver.id.as_str()).then_some(())
    })
    .await;
    assert!(world.sink.waiting().is_none());
    policy.decide(|_| Verdict::Decide(true));
    let arrival = world.sink.next().await;
    assert_eq!(arrival.json()["subject"]["id"], "o_1");
    arrival.answer(crate::support::Answer::status(200));
    tenant.all_delivered().await;
    world.finish().await;
}

macro_rules! on_both {
    ($($case:ident),+ $(,)?) => {
        mod postgres { $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() { super::$case(super::Engine::Postgres).await; })+ }
        mod sqlite { $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() { super::$case(super::Engine::Sqlite).await; })+ }
    };
}

on_both! {
    what_the_table_says_is_what_the_decision_point_is_asked,
    without_a_decision_nobody_passes_and_all_is_well_again_with_one,
    a_question_carries_who_what_and_where_and_the_servers_own_token,
    what_is_announced_waits_for_a_decision_and_is_not_lost,
}
