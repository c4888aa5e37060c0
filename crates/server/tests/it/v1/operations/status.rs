//! `GET /operations/journal`

use super::{announced, in_seconds};
use crate::support::tenant::order;
use crate::support::{Value, World, json, on_both_databases};

const PATH: &str = "/operations/journal";

async fn the_state_of_a_journal_is_shown(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    tenant.append(order("order.made", "o_1")).await;
    let first = &tenant.events("").await[0];
    let stands = async |name: &str, cursor: &Value| {
        let lease = json!({ "cursor": cursor, "expiresAt": in_seconds(3600) });
        tenant.put(&format!("/consumers/{name}"), &lease).await.expect(200);
    };
    // That they came is in the journal, too.
    stands("behind", &first["cursor"]).await;
    stands("caught-up", &first["cursor"]).await;
    announced(world).await;
    let events = tenant.events("").await;
    let last = &events[events.len() - 1];
    stands("caught-up", &last["cursor"]).await;
    let status = tenant.get(PATH).await.expect(200);
    assert_eq!(status["head"], json!({ "sequence": last["sequence"], "cursor": last["cursor"] }));
    assert_eq!(status["horizon"], status["head"]);
    assert_eq!((&status["distance"], &status["holders"]), (&json!(0), &json!([])));
    assert_eq!(status["oldestEventAt"], first["occurredAt"]);
    assert_eq!((&status["retentionSeconds"], &status["pruning"]), (&json!(null), &json!(false)));
    assert_eq!(status["appendsWaiting"], 0);
    let consumers = status["consumers"].as_array().unwrap();
    let names: Vec<_> = consumers.iter().map(|c| (c["kind"].as_str().unwrap(), c["name"].as_str().unwrap())).collect();
    assert_eq!(names, [("announcer", "announcer"), ("lease", "behind"), ("lease", "caught-up")]);
    assert_eq!((&consumers[0]["lagSeconds"], &consumers[2]["lagSeconds"]), (&json!(0), &json!(0)));
    assert!(consumers[1]["lagSeconds"].as_i64().unwrap() >= 1, "{}", consumers[1]);
    assert_eq!(consumers[1]["cursor"], first["cursor"]);
    assert_eq!((&consumers[0]["expiresAt"], &consumers[1]["blocksRetention"]), (&json!(null), &json!(false)));
}

async fn another_tenants_consumers_are_not_shown(world: &World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let theirs = json!({ "cursor": other.end().await, "expiresAt": in_seconds(3600) });
    other.put("/consumers/theirs", &theirs).await.expect(200);
    let reply = tenant.get(PATH).await;
    assert_eq!(reply.expect(200)["consumers"].as_array().unwrap().len(), 1);
    assert!(!reply.text().contains("theirs"), "{}", reply.text());
}

on_both_databases! {
    the_state_of_a_journal_is_shown,
    another_tenants_consumers_are_not_shown,
}
