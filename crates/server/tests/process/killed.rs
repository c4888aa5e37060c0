//! A server that is killed loses nothing, and what it repeats is known by its id.

use std::collections::BTreeSet;

use courant_api::notify::{DeliveryStatus, IntegrationPatch};

use crate::support::{Answer, Place, WEBHOOK_SECRET as SECRET, on_both_databases};

async fn a_server_killed_between_the_event_and_the_send_sends_after_its_restart(place: Place) {
    let server = place.serve().await;
    let org = place.org(&server).await;
    let webhook = org.webhook(&server, &place.sink, true).await;
    org.append(&server, 1..2).await;
    let waiting = org.stored(&server, 1).await.remove(0);
    assert_eq!((waiting.status, waiting.attempt_count), (DeliveryStatus::Pending, 0));
    server.kill();

    let server = place.serve().await;
    assert_eq!(org.deliveries(&server).await, std::slice::from_ref(&waiting));
    assert!(place.sink.waiting().is_none());
    let resume = IntegrationPatch { paused: Some(false), ..IntegrationPatch::default() };
    org.at(&server).update_integration(org.id, webhook.id, None, &resume).await.unwrap();
    let arrival = place.sink.next().await;
    assert_eq!(arrival.verified(SECRET)["event"]["payload"]["n"], 1);
    assert_eq!(arrival.header("webhook-id"), waiting.id.to_string());
    arrival.answer(Answer::status(200));
    org.stored(&server, 0).await;
    assert!(place.sink.waiting().is_none(), "it was sent twice");
}

async fn a_server_killed_between_the_send_and_the_mark_repeats_under_the_same_id(place: Place) {
    let server = place.serve().await;
    let org = place.org(&server).await;
    org.webhook(&server, &place.sink, false).await;
    org.append(&server, 1..2).await;
    let first = place.sink.next().await;
    let (id, body) = (first.header("webhook-id").to_owned(), first.body.clone());
    first.verified(SECRET);
    // The receiver has it, the server does not know.
    server.kill();
    first.answer(Answer::status(200));

    let server = place.serve().await;
    let repeat = place.sink.next().await;
    repeat.verified(SECRET);
    assert_eq!((repeat.header("webhook-id"), &repeat.body), (id.as_str(), &body));
    repeat.answer(Answer::status(200));
    org.stored(&server, 0).await;
    assert!(place.sink.waiting().is_none(), "it was sent a third time");
    // What comes next is sent as ever.
    org.append(&server, 2..3).await;
    let next = place.sink.next().await;
    assert_eq!(next.verified(SECRET)["event"]["payload"]["n"], 2);
    next.answer(Answer::status(200));
    org.stored(&server, 0).await;
}

async fn events_that_were_answered_for_are_sent_wherever_the_kill_falls(place: Place) {
    let mut server = place.serve().await;
    let org = place.org(&server).await;
    org.webhook(&server, &place.sink, false).await;
    // The answer to the append is all that is waited for: the announcer and the worker are met in any state.
    for round in 0..3 {
        org.append(&server, round * 10..(round + 1) * 10).await;
        server.kill();
        server = place.serve().await;
    }
    let mut arrived = BTreeSet::new();
    while arrived.len() < 30 {
        let arrival = place.sink.next().await;
        arrived.insert(arrival.verified(SECRET)["event"]["payload"]["n"].as_i64().unwrap());
        arrival.answer(Answer::status(200));
    }
    // Requests of the killed servers, which nobody waits for any more, may still be among what arrives.
    let empty = org.stored(&server, 0);
    tokio::pin!(empty);
    loop {
        tokio::select! {
            _ = &mut empty => break,
            arrival = place.sink.next() => arrival.answer(Answer::status(200)),
        }
    }
    assert_eq!(arrived, (0..30).collect());
}

on_both_databases! {
    a_server_killed_between_the_event_and_the_send_sends_after_its_restart,
    a_server_killed_between_the_send_and_the_mark_repeats_under_the_same_id,
    events_that_were_answered_for_are_sent_wherever_the_kill_falls,
}
