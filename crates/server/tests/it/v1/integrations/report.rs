//! The report of findings, by its schedule.

use std::time::Duration;

use courant_server::clock;
use courant_testkit::DrivenClock;

use crate::support::tenant::id;
use crate::support::{Answer, Engine, Tenant, Value, World, eventually, json};

/// The schedule of a report that is due in so many minutes, every day.
fn daily_in(minutes: i64) -> String {
    let second = (clock::now().unix_seconds() + minutes * 60).rem_euclid(86_400);
    format!("{} {} * * *", second / 60 % 60, second / 3600)
}

/// The interval in which reports are looked for.
const TICK: Duration = Duration::from_mins(15);

/// Lets this much time pass: most of it at once, the end in a way that the background work comes by.
async fn pass(time: Duration) {
    let clock = DrivenClock::take();
    for part in [time.saturating_sub(TICK), time.min(TICK)] {
        clock.pass(part).await;
        // What the background work has begun goes on in real time.
        tokio::task::spawn_blocking(|| std::thread::sleep(Duration::from_millis(200))).await.unwrap();
    }
    clock.release();
}

/// The next report. A jump of the clock may cut a look at the database, which counts as failed then: the next tick sends it.
async fn reported(world: &World) -> Value {
    for _ in 0..20 {
        let Some(arrival) = world.sink.next_within(Duration::from_secs(10)).await else {
            pass(TICK).await;
            continue;
        };
        // By the driven clock it is from the future, so that its signature would be refused.
        let notification = arrival.json();
        arrival.answer(Answer::status(200));
        assert_eq!(notification["eventType"], "explore_findings_changed");
        assert_eq!((&notification["eventId"], &notification["sequence"]), (&json!(null), &json!(null)));
        return notification["findings"].clone();
    }
    panic!("no report came");
}

async fn stack(tenant: &Tenant, on: Option<&str>) -> String {
    let needs: Vec<_> = on.iter().map(|id| json!({ "stackId": id })).collect();
    id(&tenant.post(&tenant.org("/stacks"), &json!({ "name": "network", "dependsOn": needs })).await.expect(201))
}

async fn depend(tenant: &Tenant, stack: &str, on: &[&str]) {
    let needs: Vec<_> = on.iter().map(|id| json!({ "stackId": id })).collect();
    tenant.patch(&tenant.org(&format!("/stacks/{stack}")), &json!({ "dependsOn": needs })).await.expect(200);
}

async fn findings_are_reported_by_their_schedule_and_a_clean_org_is_left_alone(engine: Engine) {
    let world = World::start(engine, &[]).await;
    let tenant = world.tenant().await;
    let with = json!({ "events": ["explore_findings_changed"], "findingsDigestSchedule": daily_in(10),
        "stackLabelSelector": { "team": "nobody" } });
    let hook = id(&tenant.webhook("report", &world.sink, &[], with).await);
    let network = stack(&tenant, None).await;
    depend(&tenant, &network, &[&network]).await;
    pass(Duration::from_mins(16)).await;
    let counts = |cycles: i64| json!({ "cycles": cycles, "orphans": 0, "duplicates": 0 });
    assert_eq!(reported(&world).await, json!({ "counts": counts(1), "previous": null, "unchecked": [] }));
    tenant.all_delivered().await;

    // Not before its time comes round, and then beside the last one.
    let other = stack(&tenant, None).await;
    depend(&tenant, &other, &[&other]).await;
    pass(Duration::from_hours(22)).await;
    assert!(world.sink.waiting().is_none());
    pass(Duration::from_hours(2)).await;
    assert_eq!(reported(&world).await, json!({ "counts": counts(2), "previous": counts(1), "unchecked": [] }));

    // Clean at its time: nothing is sent and nothing stamped, so what appears is told at the next tick.
    for stack in [&network, &other] {
        depend(&tenant, stack, &[]).await;
    }
    pass(Duration::from_hours(25)).await;
    assert!(world.sink.waiting().is_none());
    depend(&tenant, &network, &[&network]).await;
    pass(Duration::from_mins(16)).await;
    assert_eq!(reported(&world).await, json!({ "counts": counts(1), "previous": counts(2), "unchecked": [] }));

    // An integration that is off is sent nothing.
    tenant.edit(&hook, json!({ "enabled": false })).await;
    pass(Duration::from_hours(25)).await;
    eventually("an empty outbox", async || tenant.deliveries().await.is_empty().then_some(())).await;
    assert!(world.sink.waiting().is_none());
    world.finish().await;
}

#[tokio::test]
async fn findings_are_reported_on_postgres() {
    findings_are_reported_by_their_schedule_and_a_clean_org_is_left_alone(Engine::Postgres).await;
}

#[tokio::test]
async fn findings_are_reported_on_sqlite() {
    findings_are_reported_by_their_schedule_and_a_clean_org_is_left_alone(Engine::Sqlite).await;
}

async fn a_schedule_that_is_none_is_refused_with_its_field(world: &World) {
    let tenant = world.tenant().await;
    let path = tenant.org("/notification-integrations");
    let body = |schedule: &str| {
        json!({ "name": "report", "provider": "webhook", "providerConfig": { "url": world.sink.url("/in") },
            "events": ["explore_findings_changed"], "findingsDigestSchedule": schedule })
    };
    for (schedule, field) in [
        ("* 10 * * *", "minute"),
        ("0 */2 * * *", "hour"),
        ("0 10 1 * *", "day of month"),
        ("0 10 * feb *", "month"),
        ("0 10 * * wed-mon", "day of week"),
        ("0 10 * *", "five fields"),
        ("", "five fields"),
    ] {
        let error = tenant.post(&path, &body(schedule)).await.refused(400, "invalid_request");
        assert_eq!(error["details"]["pointer"], "/findingsDigestSchedule", "{error}");
        assert!(error["message"].as_str().unwrap().contains(field), "{error}");
    }
    let made = id(&tenant.post(&path, &body("30 9 * * mon-fri")).await.expect(201));
    let view = tenant.edit(&made, json!({ "findingsDigestSchedule": null })).await;
    assert_eq!(view["findingsDigestSchedule"], json!(null));
    let one = tenant.org(&format!("/notification-integrations/{made}"));
    tenant.patch(&one, &json!({ "findingsDigestSchedule": "0 0 0 0 0" })).await.refused(400, "invalid_request");
}

crate::support::on_both_databases! {
    a_schedule_that_is_none_is_refused_with_its_field,
}
