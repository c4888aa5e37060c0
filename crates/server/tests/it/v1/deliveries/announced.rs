//! Every announced type on its way: from the journal through the outbox to what each provider's receiver gets.

use std::collections::BTreeSet;

use courant_api::announced::{AnnouncedFindings, AnnouncedType};
use courant_api::deployments::FindingCounts;
use courant_api::{DeliveryId, events};
use courant_core::announce::{Told, report};
use courant_store::{Change, Digest, EventDraft};
use courant_testkit::slack;

use crate::support::tenant::{WEBHOOK_SECRET, id};
use crate::support::{Answer, Tenant, World, json, on_both_databases};

/// What the catalogue's example of this type is as an event.
fn example(announced: AnnouncedType) -> Option<EventDraft> {
    let kind = events::core_type(announced.event_type())?;
    Some(EventDraft {
        id: None,
        event_type: kind.name.into(),
        schema_version: kind.current().version,
        entity_type: kind.entity_type.into(),
        entity_id: "3fa85f64-5717-4562-b3fc-2c963f66afa6".into(),
        workspace_id: None,
        payload: kind.current().example().to_string(),
        correlation_id: None,
        causation_id: None,
    })
}

/// Sends the report of findings, as its schedule does.
async fn send_report(world: &World, tenant: &Tenant) {
    let now = courant_server::clock::now();
    for wanted in world.app.store.digests_wanted(None, 100).await.unwrap() {
        let counts = FindingCounts { cycles: Some(2), orphans: Some(0), duplicates: 1 };
        let told = Told {
            id: DeliveryId(courant_server::ids::new_id()),
            org_id: tenant.id.parse().unwrap(),
            at: now,
            base_url: world.app.base_url.as_deref(),
        };
        let findings = AnnouncedFindings { counts, previous: wanted.previous, unchecked: Vec::new() };
        let digest = Digest { to: wanted, occurrence: now, counts, notification: report(told, findings) };
        assert!(world.app.store.digest_send(digest, now).await.unwrap());
    }
    world.app.wake_outbox();
}

async fn every_announced_type_is_received_through_every_provider(world: &World) {
    let tenant = world.tenant().await;
    let all = json!({ "events": AnnouncedType::ALL, "findingsDigestSchedule": "0 0 * * *" });
    tenant.webhook("hooks", &world.sink, &[], all.clone()).await;
    let mut events = all.clone();
    events["providerConfig"] = json!({ "url": world.sink.url("/events"), "format": "cloudevent" });
    tenant.webhook("events", &world.sink, &[], events).await;
    let chat = id(&tenant.slack("chat", &["none."]).await);
    tenant.edit(&chat, all).await;

    let change = Change::by_server(tenant.id.parse().unwrap(), courant_server::clock::now());
    let drafts: Vec<_> = AnnouncedType::ALL.iter().filter_map(|announced| example(*announced)).collect();
    world.store().await.event_append(change, drafts).await.unwrap();
    world.announced(world.app.store.journal_horizon().await.unwrap()).await;
    let queued: BTreeSet<_> =
        tenant.deliveries().await.into_iter().map(|delivery| delivery["eventType"].to_string()).collect();
    assert!(queued.len() <= AnnouncedType::ALL.len());
    send_report(world, &tenant).await;

    let wanted: BTreeSet<String> = AnnouncedType::ALL.iter().map(|announced| announced.as_str().to_owned()).collect();
    let (mut told, mut as_events, mut shown) = (BTreeSet::new(), BTreeSet::new(), 0);
    for _ in 0..2 * wanted.len() {
        let arrival = world.sink.next().await;
        let body = arrival.verified(WEBHOOK_SECRET);
        if arrival.target == "/events" {
            assert_eq!(arrival.header("content-type"), "application/cloudevents+json");
            assert_eq!((&body["specversion"], body["data"].is_object()), (&json!("1.0"), true));
            as_events.insert(body["type"].as_str().unwrap().replace('.', "_"));
        } else {
            assert!(body.get("event").is_none(), "{body}");
            told.insert(body["eventType"].as_str().unwrap().to_owned());
        }
        arrival.answer(Answer::status(200));
    }
    for _ in 0..wanted.len() {
        let arrival = world.slack.next().await;
        let message = arrival.json();
        assert_eq!(slack::faults(&message), [""; 0], "{message}");
        shown += 1;
        arrival.answer(Answer::slack_posted());
    }
    assert_eq!((told, as_events, shown), (wanted.clone(), wanted.clone(), wanted.len()));
    tenant.all_delivered().await;
    assert!(world.sink.waiting().is_none() && world.slack.waiting().is_none(), "something was told twice");
}

async fn labels_workspace_and_evidence_narrow_what_is_announced(world: &World) {
    let tenant = world.tenant().await;
    let (here, there) = (tenant.workspace(None).await, tenant.workspace(None).await);
    let integration = async |name: &str, with| {
        let mut body = json!({ "events": ["stack_created", "deployment_succeeded"], "paused": true });
        body.as_object_mut().unwrap().extend(serde_json::Value::as_object(&with).unwrap().clone());
        tenant.webhook(name, &world.sink, &[], body).await;
    };
    integration("all", json!({})).await;
    integration("team", json!({ "stackLabelSelector": { "team": "platform" } })).await;
    integration("here", json!({ "workspaceId": here })).await;
    integration("changes", json!({ "changesOnly": true })).await;
    integration("both", json!({ "journalTypes": ["stack."] })).await;
    let stack = async |workspace: &str, team: &str| {
        let body = json!({ "name": "network", "workspaceId": workspace, "labels": { "team": team } });
        id(&tenant.post(&tenant.org("/stacks"), &body).await.expect(201))
    };
    let platform = stack(&here, "platform").await;
    let other = stack(&there, "shop").await;
    for stack in [platform, other] {
        let body = json!({ "stackId": stack, "mode": "plan" });
        let deployment = id(&tenant.post(&tenant.org("/deployments"), &body).await.expect(201));
        let path = tenant.org(&format!("/deployments/{deployment}/runs"));
        let run = id(&tenant.post(&path, &json!({ "kind": "plan" })).await.expect(201));
        let plan =
            json!({ "add": 0, "change": 0, "destroy": 0, "hasChanges": false, "complete": true, "gapReasons": [] });
        let done = json!({ "status": "succeeded", "planSummary": plan });
        tenant.post(&tenant.org(&format!("/runs/{run}:complete")), &done).await.expect(200);
    }
    world.announced(world.app.store.journal_horizon().await.unwrap()).await;
    let deliveries = tenant.deliveries().await;
    let of = |name: &str, kind: &str| {
        deliveries.iter().filter(|d| d["integrationName"] == name && d["eventType"] == kind).count()
    };
    for (name, stacks, ends, journal) in
        [("all", 2, 2, 0), ("team", 1, 1, 0), ("here", 1, 1, 0), ("changes", 2, 0, 0), ("both", 2, 2, 0)]
    {
        let told = [of(name, "stack_created"), of(name, "deployment_succeeded"), of(name, "journal_event")];
        assert_eq!(told, [stacks, ends, journal], "{name}");
    }
    let shown = deliveries.iter().find(|d| d["eventType"] == "deployment_succeeded").unwrap();
    assert_eq!((&shown["stackName"], shown["deploymentId"].is_string()), (&json!("network"), true));
}

on_both_databases! {
    every_announced_type_is_received_through_every_provider,
    labels_workspace_and_evidence_narrow_what_is_announced,
}
