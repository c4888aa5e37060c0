//! Commands: on the database itself, beside a running server too, and against its API.

use courant_api::access::TenantBootstrapped;
use courant_client::PageQuery;

use crate::support::{Place, Value, on_both_databases};

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

on_both_databases! {
    a_tenant_is_made_beside_a_running_server,
    migrate_brings_an_empty_database_up_to_date_and_may_be_repeated,
    tail_shows_the_journal_of_a_running_server,
}
