//! Commands: on the database itself, beside a running server too, and against its API.

use courant_api::access::TenantBootstrapped;
use courant_client::PageQuery;

use crate::support::{Answer, Place, Value, WEBHOOK_SECRET, json, on_both_databases};

async fn a_tenant_is_made_beside_a_running_server(place: Place) {
    let server = place.serve().await;
    let ended = place.run(&["bootstrap", "--name", "acme", "--json"]).await;
    let line: Value = serde_json::from_str(ended.well()).unwrap();
    assert_eq!(line.as_object().unwrap().keys().collect::<Vec<_>>(), ["tenantId", "principalId", "apiKey"]);
    let made: TenantBootstrapped = serde_json::from_value(line).unwrap();
    let org = crate::support::Org { id: made.tenant_id, key: made.api_key.unwrap() };
    let principals = org.at(&server).principals(&PageQuery::default()).await.unwrap();
    assert_eq!(principals.items[0].id, made.principal_id);
    let told = place.run(&["bootstrap", "--name", "umbrella"]).await;
    for word in ["tenant", "principal", "key        cak_"] {
        assert!(told.well().contains(word), "{told:?}");
    }
    let nameless = place.run(&["bootstrap", "--name", "", "--json"]).await;
    assert_eq!((nameless.code, nameless.stdout.as_str()), (Some(1), ""), "{nameless:?}");
}

async fn migrate_brings_an_empty_database_up_to_date_and_may_be_repeated(place: Place) {
    let early = place.run(&["bootstrap", "--name", "acme"]).await;
    assert_eq!(early.code, Some(1), "{early:?}");
    for _ in 0..2 {
        assert!(place.run(&["migrate"]).await.well().contains("up to date"));
    }
    let made = place.bootstrap().await;
    let server = place.serve().await;
    assert!(place.run(&["migrate"]).await.well().contains("up to date"));
    let org = crate::support::Org { id: made.tenant_id, key: made.api_key.unwrap() };
    assert_eq!(org.deliveries(&server).await, []);
}

async fn tail_shows_the_journal_of_a_running_server(place: Place) {
    let server = place.serve().await;
    let org = place.org(&server).await;
    org.append(&server, 0..3).await;
    let url = format!("http://{}", server.address);
    let env = [("COURANT_URL", url.as_str()), ("COURANT_API_KEY", org.key.as_str())];
    let tail = ["tail", "--no-follow", "--types", "order.", "--last", "2", "--json"];
    let ended = place.run_with(&tail, &env).await;
    let events: Vec<Value> = ended.well().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.iter().map(|e| &e["entityId"]).collect::<Vec<_>>(), ["o_1", "o_2"]);
    let told = place.run_with(&tail[..6], &env).await;
    assert!(told.well().lines().all(|line| line.contains("order.made") && line.contains("order/o_")), "{told:?}");
    let refused = place.run_with(&tail, &[env[0], ("COURANT_API_KEY", "cak_wrong")]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.starts_with("courant: ") && !refused.stderr.contains("cak_wrong"), "{refused:?}");
    let missing = place.run(&tail).await;
    assert_eq!(missing.code, Some(2), "{missing:?}");
}

/// The key ring of two keys, the newer first, and each alone.
const OLD: &str = "old:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const NEW: &str = "new:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

async fn secrets_are_sealed_anew_beside_a_running_server(mut place: Place) {
    let both = format!("{OLD},{NEW}");
    place.settings.insert("COURANT_ENCRYPTION_KEYS".into(), both);
    let server = place.serve().await;
    let org = place.org(&server).await;
    let config = json!({ "url": place.sink.url("/in") });
    org.integration(&server, "webhook", false, config, json!({ "secret": WEBHOOK_SECRET })).await;

    let newer = format!("{NEW},{OLD}");
    let rotate = async || {
        let ended =
            place.run_with(&["secrets", "rotate", "--json"], &[("COURANT_ENCRYPTION_KEYS", newer.as_str())]).await;
        serde_json::from_str::<Value>(ended.well()).unwrap()
    };
    assert_eq!(rotate().await, json!({ "secrets": 1, "resealed": 1, "key": "new", "forgotten": ["old"] }));
    assert_eq!(rotate().await, json!({ "secrets": 1, "resealed": 0, "key": "new", "forgotten": [] }));
    // The server, which has both keys, opens what was sealed anew.
    org.append(&server, 0..1).await;
    let arrival = place.sink.next().await;
    arrival.verified(WEBHOOK_SECRET);
    arrival.answer(Answer::status(200));
    server.signal("TERM");
    assert!(server.ended().await.success());

    // The old key is needed no more, and the new one is.
    let gone = place.run_with(&["secrets", "rotate"], &[("COURANT_ENCRYPTION_KEYS", OLD)]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stderr.contains("`new`"), "{gone:?}");
    place.settings.insert("COURANT_ENCRYPTION_KEYS".into(), NEW.into());
    let server = place.serve().await;
    org.append(&server, 1..2).await;
    let arrival = place.sink.next().await;
    arrival.verified(WEBHOOK_SECRET);
    arrival.answer(Answer::status(200));
}

async fn a_fresh_key_can_be_used_as_it_is_printed(mut place: Place) {
    let printed = place.run(&["secrets", "key", "--id", "2027-a"]).await;
    let entry = printed.well().trim().to_owned();
    assert!(entry.starts_with("2027-a:"), "{entry}");
    assert_ne!(place.run(&["secrets", "key", "--id", "2027-a"]).await.well().trim(), entry);
    place.settings.insert("COURANT_ENCRYPTION_KEYS".into(), entry);
    place.serve().await;
    let odd = place.run(&["secrets", "key", "--id", "no:name"]).await;
    assert_eq!((odd.code, odd.stdout.as_str()), (Some(1), ""), "{odd:?}");
}

on_both_databases! {
    secrets_are_sealed_anew_beside_a_running_server,
    a_fresh_key_can_be_used_as_it_is_printed,
    a_tenant_is_made_beside_a_running_server,
    migrate_brings_an_empty_database_up_to_date_and_may_be_repeated,
    tail_shows_the_journal_of_a_running_server,
}
