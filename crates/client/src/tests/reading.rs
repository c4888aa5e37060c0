//! Following the journal and consuming it over HTTP.

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::server::{Answer, Server};
use crate::engine::{Applied, Batch, Cause, DrainError, Engine, Options, Sink, SourceError, Start};
use crate::{ClientError, EventsQuery, JournalSource};

fn event(n: u64) -> Value {
    json!({
        "sequence": n, "id": Uuid::from_u128(n.into()), "tenantId": Uuid::from_u128(1), "type": "shop.order_paid",
        "schemaVersion": 1, "entityType": "order", "entityId": "o-1", "workspaceId": null, "actorId": null,
        "sessionId": null, "correlationId": null, "causationId": null, "requestId": null, "payload": { "n": n },
        "occurredAt": "2026-09-01T10:15:04.117Z", "cursor": format!("ec1_{n}"),
    })
}

fn page(events: &[u64], next: &str, has_more: bool) -> Answer {
    let items: Vec<_> = events.iter().map(|n| event(*n)).collect();
    Answer::ok(&json!({ "items": items, "nextCursor": next, "hasMore": has_more }))
}

fn queries(server: &Server) -> Vec<String> {
    server.asked().into_iter().map(|a| a.query).collect()
}

#[tokio::test]
async fn following_goes_on_from_the_cursor_of_every_page_and_over_empty_ones() {
    let server = Server::answering([
        page(&[1, 2], "ec1_2", true),
        page(&[], "ec1_5", false),
        page(&[], "ec1_6", true),
        page(&[7], "ec1_9", false),
        page(&[10], "ec1_10", false),
    ])
    .await;
    let mut follow = server.client().follow(EventsQuery { types: vec!["shop.".into()], ..EventsQuery::default() });
    let mut seen = vec![];
    for _ in 0..4 {
        let event = follow.next().await.unwrap();
        seen.push((event.sequence, follow.cursor().unwrap().to_owned()));
    }
    assert_eq!(seen, [(1, "ec1_1".into()), (2, "ec1_2".into()), (7, "ec1_9".into()), (10, "ec1_10".into())]);
    assert_eq!(
        queries(&server),
        [
            "types=shop.&wait=20",
            "types=shop.&cursor=ec1_2&wait=20",
            "types=shop.&cursor=ec1_5&wait=20",
            "types=shop.&cursor=ec1_6&wait=20",
            "types=shop.&cursor=ec1_9&wait=20",
        ]
    );
}

#[tokio::test]
async fn following_begins_with_the_tail_and_goes_on_from_its_end() {
    let server = Server::answering([page(&[8, 9], "ec1_9", false), page(&[10], "ec1_10", false)]).await;
    let follow = server.client().follow(EventsQuery { tail: Some(2), wait: Some(5), ..EventsQuery::default() });
    let seen: Vec<_> = follow.into_stream().take(3).map(|event| event.unwrap().sequence).collect().await;
    assert_eq!(seen, [8, 9, 10]);
    assert_eq!(queries(&server), ["tail=2", "cursor=ec1_9&wait=5"]);
}

#[tokio::test]
async fn following_goes_on_after_an_error_without_a_skip() {
    let server = Server::answering([
        page(&[1], "ec1_1", false),
        Answer::Breaks,
        Answer::refused(429, "rate_limited"),
        Answer::refused(503, "unavailable"),
        page(&[2], "ec1_2", false),
    ])
    .await;
    let mut follow = server.builder().retries(0).build().unwrap().follow(EventsQuery::default());
    assert_eq!(follow.next().await.unwrap().sequence, 1);
    assert!(matches!(follow.next().await, Err(ClientError::Transport(_))));
    assert!(follow.next().await.unwrap_err().is_rate_limited());
    assert_eq!(follow.next().await.unwrap_err().status(), Some(503));
    assert_eq!(follow.cursor(), Some("ec1_1"));
    assert_eq!(follow.next().await.unwrap().sequence, 2);
    assert_eq!(queries(&server)[1..], ["cursor=ec1_1&wait=20"; 4]);
}

/// Keeps the sequences it was given.
#[derive(Default)]
struct Kept {
    position: Option<String>,
    sequences: Vec<i64>,
}

impl Sink<courant_api::Event, String> for Kept {
    type Error = Cause;

    async fn load(&mut self) -> Result<Option<String>, Cause> {
        Ok(self.position.clone())
    }

    async fn apply(&mut self, _: Option<&String>, batch: Batch<courant_api::Event, String>) -> Result<Applied, Cause> {
        self.sequences.extend(batch.items.iter().map(|event| event.sequence));
        self.position = Some(batch.next);
        Ok(Applied::Moved)
    }
}

#[tokio::test]
async fn the_engine_consumes_the_journal_over_http() {
    let server = Server::answering([page(&[1, 2], "ec1_2", true), page(&[4], "ec1_5", false)]).await;
    let query = EventsQuery { types: vec!["shop.".into()], tail: Some(3), ..EventsQuery::default() };
    let source = JournalSource::new(server.client(), query);
    let mut engine = Engine::new(source, Kept::default(), Options { page_size: 2, ..Options::default() });
    assert_eq!(engine.drain().await.unwrap(), 3);
    let (_, kept) = engine.into_parts();
    assert_eq!((kept.sequences, kept.position.as_deref()), (vec![1, 2, 4], Some("ec1_5")));
    assert_eq!(queries(&server), ["types=shop.&limit=2", "types=shop.&cursor=ec1_2&limit=2"]);
}

#[tokio::test]
async fn a_consumer_from_latest_stores_the_end_of_the_tail_page() {
    let server = Server::answering([page(&[41], "ec1_50", false), page(&[51], "ec1_51", false)]).await;
    let source = JournalSource::new(server.client(), EventsQuery::default());
    let options = Options { start: Start::Latest, ..Options::default() };
    let mut engine = Engine::new(source, Kept::default(), options);
    assert_eq!(engine.drain().await.unwrap(), 1);
    assert_eq!(engine.into_parts().1.sequences, [51]);
    assert_eq!(queries(&server), ["tail=1", "cursor=ec1_50&limit=200"]);
}

#[tokio::test]
async fn refusals_end_a_consumer_and_other_errors_do_not() {
    for (status, code) in [
        (400, "invalid_request"),
        (401, "unauthenticated"),
        (403, "permission_denied"),
        (404, "not_found"),
        (422, "invalid_cursor"),
    ] {
        let server = Server::answering([Answer::refused(status, code)]).await;
        let mut engine = Engine::new(
            JournalSource::new(server.client(), EventsQuery::default()),
            Kept::default(),
            Options::default(),
        );
        let refused = engine.run(watch::channel(()).1, CancellationToken::new()).await.unwrap_err();
        assert_eq!(refused.0.downcast_ref::<ClientError>().and_then(ClientError::status), Some(status));
    }
    for (status, code) in [(429, "rate_limited"), (500, "internal"), (409, "conflict")] {
        let server = Server::answering([Answer::refused(status, code).with("retry-after", "7")]).await;
        let mut engine = Engine::new(
            JournalSource::new(server.client(), EventsQuery::default()),
            Kept::default(),
            Options::default(),
        );
        let failed = engine.drain().await.unwrap_err();
        assert!(
            matches!(&failed, DrainError::Source(SourceError::Failed { retry_after: Some(t), .. }) if t.as_secs() == 7),
            "{failed:?}"
        );
    }
}
