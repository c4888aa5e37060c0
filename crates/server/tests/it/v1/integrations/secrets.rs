//! Secrets go in and never come out, but the one that the server has made, once.

use crate::support::tenant::{BOT_TOKEN, WEBHOOK_SECRET, id, order};
use crate::support::{Answer, Engine, World, json, on_both_databases};

const OTHER_SECRET: &str = "whsec_YW5vdGhlciBzZWNyZXQgb2YgdGhlIHRlc3RzJyBob29r";

async fn no_answer_and_no_event_ever_holds_a_secret(world: &World) {
    let tenant = world.tenant().await;
    let (_, dead) = tenant.dead_delivery(world).await;
    let chat = id(&tenant.slack("chat", &["order."]).await);
    let list = tenant.org("/notification-integrations");
    let path = format!("{list}/{chat}");
    tenant.get(&list).await.expect(200);
    tenant.get(&path).await.expect(200);
    tenant.edit(&chat, json!({ "authConfig": { "botToken": format!("{BOT_TOKEN}-2") } })).await;
    tenant.edit(&chat, json!({ "authConfig": {}, "paused": true })).await;
    tenant.patch(&path, &json!({ "authConfig": { "nonsense": BOT_TOKEN } })).await.refused(400, "invalid_request");
    tenant.get(&tenant.org("/notification-deliveries")).await.expect(200);
    tenant.retry(&id(&dead)).await.expect(200);
    world.sink.next().await.answer(Answer::status(204));
    tenant.all_delivered().await;
    tenant.events("").await;
    tenant.delete(&path).await;
    world.api.get("/metrics").await;
    world.api.get("/openapi.json").await;
    for secret in [BOT_TOKEN, WEBHOOK_SECRET, WEBHOOK_SECRET.trim_start_matches("whsec_")] {
        let told = world.heard().into_iter().find(|answer| answer.contains(secret));
        assert_eq!(told, None);
    }
}

async fn a_secret_that_is_left_out_is_made_and_shown_once(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let made = tenant.webhook("hooks", &world.sink, &["order."], json!({ "authConfig": {} })).await;
    let secret = made["generatedSecret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"), "{secret}");
    let path = tenant.org(&format!("/notification-integrations/{}", id(&made)));
    tenant.get(&path).await.expect(200);
    tenant.edit(&id(&made), json!({ "providerConfig": made["providerConfig"], "name": "hooks 2" })).await;
    tenant.get(&tenant.org("/notification-integrations")).await.expect(200);
    tenant.events("").await;
    assert_eq!(world.heard().iter().filter(|answer| answer.contains(&secret)).count(), 1);

    tenant.append(order("order.made", "o_1")).await;
    let arrival = world.sink.next().await;
    arrival.verified(&secret);
    arrival.answer(Answer::status(200));
    let given = tenant.webhook("other", &world.sink, &[], json!({})).await;
    assert!(given["generatedSecret"].is_null());
}

async fn a_secret_stays_until_another_is_given(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let hooks = id(&tenant.webhook("hooks", &world.sink, &["order."], json!({})).await);
    for (change, secret) in [
        (json!({ "name": "renamed" }), WEBHOOK_SECRET),
        (json!({ "authConfig": {} }), WEBHOOK_SECRET),
        (json!({ "providerConfig": { "url": world.sink.url("/other") } }), WEBHOOK_SECRET),
        (json!({ "authConfig": { "secret": OTHER_SECRET } }), OTHER_SECRET),
        (json!({ "paused": false }), OTHER_SECRET),
    ] {
        assert_eq!(tenant.edit(&hooks, change).await["hasAuthConfig"], true);
        tenant.append(order("order.made", "o_1")).await;
        let arrival = world.sink.next().await;
        arrival.verified(secret);
        arrival.answer(Answer::status(200));
    }
    tenant.all_delivered().await;
}

on_both_databases! {
    no_answer_and_no_event_ever_holds_a_secret,
    a_secret_that_is_left_out_is_made_and_shown_once,
    a_secret_stays_until_another_is_given,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_file_holds_no_secret_as_text() {
    let world = World::start(Engine::Sqlite, &[]).await;
    let tenant = world.tenant().await;
    tenant.slack("chat-in-the-file", &[]).await;
    tenant.webhook("hooks", &world.sink, &[], json!({})).await;
    let files: Vec<u8> = std::fs::read_dir(world.sqlite_dir().unwrap())
        .unwrap()
        .flat_map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect();
    let holds = |text: &str| files.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(holds("chat-in-the-file"), "the file is not where the rows are");
    for secret in [BOT_TOKEN, WEBHOOK_SECRET.trim_start_matches("whsec_"), tenant.key.as_str()] {
        assert!(!holds(secret));
    }
    world.finish().await;
}
