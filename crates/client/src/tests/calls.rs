//! Calls: what is sent, what is repeated, what an error says.

use std::time::Duration;

use courant_api::access::{ApiKeyCreate, PrincipalCreate, PrincipalKind, TenantBootstrap, WorkspaceMove};
use courant_api::catalog::EventTypeRegister;
use courant_api::event::Json;
use courant_api::notify::{DeliveryStatus, IntegrationPatch, RetryOutcome};
use courant_api::{ErrorCode, EventAppend, TenantId};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::server::{Answer, KEY, Server};
use crate::{Client, ClientError, EventsQuery, Method, PageQuery};

fn empty_page() -> Answer {
    Answer::ok(&json!({ "items": [], "nextCursor": null, "hasMore": false }))
}

fn principal() -> Value {
    json!({
        "id": Uuid::from_u128(1), "kind": "service", "displayName": "ci", "status": "active", "version": 1,
        "createdAt": "2026-09-01T10:15:04.117Z",
    })
}

fn principal_create() -> PrincipalCreate {
    PrincipalCreate { kind: PrincipalKind::Service, display_name: "ci".into() }
}

fn event(id: Option<u128>) -> EventAppend {
    EventAppend {
        id: id.map(|id| Uuid::from_u128(id).into()),
        event_type: "shop.order_paid".into(),
        entity_type: "order".into(),
        entity_id: "o-1".into(),
        workspace_id: None,
        payload: Json::parse(r#"{ "total": 1.50 }"#).unwrap(),
        correlation_id: None,
        causation_id: None,
    }
}

#[tokio::test]
async fn a_read_is_repeated_three_times_and_no_more() {
    for broken in [503, 502, 504] {
        let server =
            Server::answering((0..3).map(|_| Answer::refused(broken, "unavailable")).chain([empty_page()])).await;
        server.client().principals(&PageQuery::default()).await.unwrap();
        assert_eq!(server.asked().len(), 4);

        let server = Server::answering((0..4).map(|_| Answer::refused(broken, "unavailable"))).await;
        let error = server.client().principals(&PageQuery::default()).await.unwrap_err();
        assert_eq!((error.status(), server.asked().len()), (Some(broken), 4));
    }
}

#[tokio::test]
async fn a_broken_connection_is_repeated() {
    let server = Server::answering([Answer::Breaks, Answer::Breaks, empty_page()]).await;
    server.client().workspaces(&PageQuery::default()).await.unwrap();
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn what_will_not_pass_is_not_repeated() {
    for (status, code) in [
        (400, "invalid_request"),
        (401, "unauthenticated"),
        (404, "not_found"),
        (429, "rate_limited"),
        (500, "internal"),
    ] {
        let server = Server::answering([Answer::refused(status, code), empty_page()]).await;
        let error = server.client().grants(&PageQuery::default()).await.unwrap_err();
        assert_eq!((error.status(), server.asked().len()), (Some(status), 1));
    }
}

#[tokio::test]
async fn a_keyed_write_is_repeated_under_its_key() {
    let server = Server::answering([
        Answer::Breaks,
        Answer::refused(409, "idempotency_in_flight"),
        Answer::refused(503, "outcome_unknown"),
        Answer::ok(&principal()),
    ])
    .await;
    let made = server.client().create_principal(&principal_create()).await.unwrap();
    assert_eq!(made.display_name, "ci");
    let asked = server.asked();
    let keys: Vec<_> = asked.iter().map(|a| a.header("idempotency-key").unwrap().parse::<Uuid>().unwrap()).collect();
    assert_eq!(keys, [keys[0]; 4]);
    assert!(asked.iter().all(|a| a.json() == json!({ "kind": "service", "displayName": "ci" })));
}

#[tokio::test]
async fn two_writes_have_two_keys() {
    let server = Server::answering([Answer::ok(&principal()), Answer::ok(&principal())]).await;
    let client = server.client();
    client.create_principal(&principal_create()).await.unwrap();
    client.create_principal(&principal_create()).await.unwrap();
    let asked = server.asked();
    assert_ne!(asked[0].header("idempotency-key"), asked[1].header("idempotency-key"));
}

#[tokio::test]
async fn a_key_that_somebody_else_holds_is_told_at_once() {
    let server = Server::answering([Answer::refused(409, "idempotency_in_flight"), Answer::ok(&principal())]).await;
    let error = server.client().create_principal(&principal_create()).await.unwrap_err();
    assert_eq!((error.code(), server.asked().len()), (Some(ErrorCode::IdempotencyInFlight), 1));
    assert!(error.is_conflict());
}

#[tokio::test]
async fn a_write_without_a_key_is_sent_once() {
    let org = TenantId(Uuid::from_u128(7));
    let id = Uuid::from_u128(8).into();
    let server = Server::answering((0..4).map(|_| Answer::refused(503, "unavailable"))).await;
    let client = server.client();
    assert!(client.update_integration(org, id, Some(3), &IntegrationPatch::default()).await.is_err());
    assert!(client.delete_integration(org, id, None).await.is_err());
    let schema = EventTypeRegister { entity_type: "order".into(), description: None, schema: json!({}) };
    assert!(client.register_event_type("shop.order_paid", 2, &schema).await.is_err());
    assert!(client.request::<Value>(Method::POST, "/events", &[], Some(&json!({ "events": [] }))).await.is_err());
    let asked = server.asked();
    let sent: Vec<_> =
        asked.iter().map(|a| (a.method.as_str(), a.header("if-match"), a.header("idempotency-key"))).collect();
    assert_eq!(
        sent,
        [("PATCH", Some("\"3\""), None), ("DELETE", None, None), ("PUT", None, None), ("POST", None, None)]
    );
    assert_eq!(asked[2].path, "/api/v1/event-types/shop.order_paid/versions/2");
}

#[tokio::test]
async fn a_repeat_waits_as_long_as_it_is_told_unless_that_is_too_long() {
    let server = Server::answering([Answer::refused(503, "unavailable").with("retry-after", "31"), empty_page()]).await;
    let error = server.client().principals(&PageQuery::default()).await.unwrap_err();
    assert_eq!((error.retry_after(), server.asked().len()), (Some(Duration::from_secs(31)), 1));

    let server = Server::answering([Answer::refused(503, "unavailable").with("retry-after", "0"), empty_page()]).await;
    server.client().principals(&PageQuery::default()).await.unwrap();
}

#[tokio::test]
async fn retries_can_be_switched_off() {
    let server = Server::answering([Answer::refused(503, "unavailable")]).await;
    let client = server.builder().retries(0).build().unwrap();
    assert_eq!(client.principals(&PageQuery::default()).await.unwrap_err().code(), Some(ErrorCode::Unavailable));
}

#[tokio::test]
async fn an_append_gives_every_event_an_id_that_its_repeat_keeps() {
    let appended = json!({ "items": [
        { "id": Uuid::from_u128(5), "sequence": 1, "duplicate": true, "cursor": "ec1_a" },
        { "id": Uuid::from_u128(6), "sequence": 2, "duplicate": false, "cursor": null },
    ] });
    let server = Server::answering([Answer::Breaks, Answer::ok(&appended)]).await;
    let answer = server.client().append(&[event(Some(5)), event(None)], true).await.unwrap();
    assert!(answer.items[0].duplicate && !answer.items[1].duplicate);
    let asked = server.asked();
    assert_eq!((asked[0].path.as_str(), asked[0].query.as_str()), ("/api/v1/events", "until=readable"));
    assert_eq!(asked[0].header("idempotency-key"), None);
    assert_eq!(asked[0].body, asked[1].body);
    let sent = asked[0].json();
    assert_eq!(sent["events"][0]["id"], json!(Uuid::from_u128(5)));
    let made: Uuid = sent["events"][1]["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(made.get_version_num(), 7);
    assert!(
        String::from_utf8_lossy(&asked[0].body).contains(r#""payload":{ "total": 1.50 }"#),
        "the payload is as it was"
    );
}

#[tokio::test]
async fn every_filter_is_in_the_query_and_types_repeat() {
    let page = json!({ "items": [], "nextCursor": "ec1_x", "hasMore": false });
    let server = Server::answering([Answer::ok(&page), Answer::ok(&page)]).await;
    let workspace = Uuid::from_u128(3);
    let query = EventsQuery {
        types: vec!["task.".into(), "run".into()],
        workspace_id: Some(workspace.into()),
        entity_type: Some("order".into()),
        entity_id: Some("a/b&c=d e".into()),
        cursor: Some("ec1_-_".into()),
        tail: None,
        limit: Some(7),
        wait: Some(0),
    };
    assert_eq!(server.client().events(&query).await.unwrap().next_cursor, "ec1_x");
    server.client().events(&EventsQuery { tail: Some(9), ..EventsQuery::default() }).await.unwrap();
    let asked = server.asked();
    assert_eq!(
        asked[0].query,
        format!(
            "types=task.&types=run&workspaceId={workspace}&entityType=order&entityId=a%2Fb%26c%3Dd+e&cursor=ec1_-_&limit=7&wait=0"
        )
    );
    assert_eq!(asked[1].query, "tail=9");
}

#[tokio::test]
async fn routes_are_where_the_contract_has_them() {
    let (org, id) = (TenantId(Uuid::from_u128(7)), Uuid::from_u128(8));
    let workspace = json!({ "id": id, "name": "w", "parentId": null, "archivedAt": null, "version": 2 });
    let key = json!({
        "id": id, "principalId": id, "prefix": "cak_ab", "expiresAt": null, "revokedAt": "2026-09-01T10:15:04.117Z",
        "createdAt": "2026-09-01T10:15:04.117Z", "apiKey": null,
    });
    let server = Server::answering([
        Answer::ok(&workspace),
        Answer::ok(&workspace),
        Answer::ok(&workspace),
        Answer::ok(&principal()),
        Answer::ok(&key),
        Answer::ok(&json!({ "outcome": "already_queued" })),
        empty_page(),
        Answer::no_content(),
        Answer::ok(&json!({ "status": "ok" })),
    ])
    .await;
    let client = server.client();
    client.move_workspace(id.into(), &WorkspaceMove { parent_id: None }).await.unwrap();
    client.archive_workspace(id.into()).await.unwrap();
    client.workspace(id.into()).await.unwrap();
    client.principal(id.into()).await.unwrap();
    client.revoke_api_key(id.into()).await.unwrap();
    assert_eq!(client.retry_delivery(org, id.into()).await.unwrap().outcome, RetryOutcome::AlreadyQueued);
    let next = PageQuery { limit: Some(2), cursor: Some("c".into()) };
    client.deliveries(org, &[DeliveryStatus::Dead, DeliveryStatus::Failed], &next).await.unwrap();
    client.delete_grant(id.into()).await.unwrap();
    let any: Value = client.request(Method::GET, "/operations/journal", &[("a", "b c")], None).await.unwrap();
    assert_eq!(any["status"], "ok");
    let asked: Vec<_> = server.asked().into_iter().map(|a| format!("{} {}?{}", a.method, a.path, a.query)).collect();
    assert_eq!(
        asked,
        [
            format!("POST /api/v1/workspaces/{id}:move?"),
            format!("POST /api/v1/workspaces/{id}:archive?"),
            format!("GET /api/v1/workspaces/{id}?"),
            format!("GET /api/v1/principals/{id}?"),
            format!("POST /api/v1/api-keys/{id}:revoke?"),
            format!("POST /api/v1/orgs/{org}/notification-deliveries/{id}/retry?"),
            format!("GET /api/v1/orgs/{org}/notification-deliveries?status=dead&status=failed&limit=2&cursor=c"),
            format!("DELETE /api/v1/grants/{id}?"),
            "GET /api/v1/operations/journal?a=b+c".into(),
        ]
    );
}

#[tokio::test]
async fn the_key_is_sent_as_a_bearer_and_bootstrap_sends_its_secret_instead() {
    let made = json!({ "tenantId": Uuid::from_u128(1), "principalId": Uuid::from_u128(2), "apiKey": "cak_new" });
    let server = Server::answering([empty_page(), Answer::ok(&made)]).await;
    let client = server.client();
    client.principals(&PageQuery::default()).await.unwrap();
    let body = TenantBootstrap { name: "acme".into() };
    assert_eq!(client.bootstrap("first-secret", &body).await.unwrap().api_key.as_deref(), Some("cak_new"));
    let asked = server.asked();
    assert_eq!(asked[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(asked[1].header("authorization"), Some("Bearer first-secret"));
}

#[tokio::test]
async fn a_refusal_keeps_everything_the_server_said() {
    let body = json!({ "error": {
        "code": "cursor_below_journal_floor", "message": "gone", "details": { "floorCursor": "ec1_f" },
    } });
    let answer = Answer::Is(422, vec![("x-request-id", "r-9"), ("retry-after", "5")], body.to_string());
    let server = Server::answering([answer]).await;
    let error = server.client().events(&EventsQuery::default()).await.unwrap_err();
    assert!(error.is_invalid() && error.is_refusal() && !error.is_not_found());
    assert_eq!(error.to_string(), "GET /events: 422 cursor_below_journal_floor: gone (request r-9)");
    let api = error.api().unwrap();
    assert_eq!(
        (api.code, api.raw_code.as_str()),
        (Some(ErrorCode::CursorBelowJournalFloor), "cursor_below_journal_floor")
    );
    assert_eq!(api.details["floorCursor"], "ec1_f");
    assert_eq!((api.request_id.as_deref(), api.retry_after), (Some("r-9"), Some(Duration::from_secs(5))));
}

#[tokio::test]
async fn a_code_of_a_later_server_is_kept_as_text() {
    let server = Server::answering([Answer::refused(409, "invented_later")]).await;
    let error = server.client().principals(&PageQuery::default()).await.unwrap_err();
    assert_eq!((error.code(), error.api().unwrap().raw_code.as_str()), (None, "invented_later"));
}

#[tokio::test]
async fn an_answer_of_something_else_is_told_from_the_apis() {
    let foreign = Answer::Is(404, vec![], "<html>no such page</html>".into());
    let elsewhere = Answer::Is(308, vec![("location", "http://127.0.0.1:1/secret-place")], String::new());
    let server = Server::answering([foreign, elsewhere, Answer::Is(200, vec![], "<html>".into())]).await;
    let client = server.client();
    let error = client.principals(&PageQuery::default()).await.unwrap_err();
    assert!(error.is_not_found() && error.api().unwrap().raw_code.is_empty());
    let error = client.principals(&PageQuery::default()).await.unwrap_err();
    assert_eq!(error.status(), Some(308));
    assert!(matches!(client.principals(&PageQuery::default()).await, Err(ClientError::Decode { .. })));
    assert_eq!(server.asked().len(), 3, "a redirect is not followed");
}

#[tokio::test]
async fn no_error_and_no_debug_shows_a_secret() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = Client::builder(format!("http://{}", unused.local_addr().unwrap())).api_key(KEY).retries(0);
    drop(unused);
    let mut shown = vec![format!("{nobody:?}")];
    let nobody = nobody.build().unwrap();
    shown.push(format!("{nobody:?}"));
    let query = EventsQuery { entity_id: Some("query-secret".into()), ..EventsQuery::default() };
    let error = nobody.events(&query).await.unwrap_err();
    assert!(matches!(&error, ClientError::Transport(e) if e.connect && !e.timeout), "{error:?}");
    assert!(error.to_string().starts_with("GET /events: "), "{error}");
    shown.push(format!("{error} {error:?}"));

    let echo =
        json!({ "error": { "code": "unauthenticated", "message": format!("unknown key {KEY}"), "details": {} } });
    let leak = json!({ "id": KEY });
    let server =
        Server::answering([Answer::Is(401, vec![], echo.to_string()), Answer::ok(&leak), Answer::Breaks]).await;
    let client = server.builder().retries(0).build().unwrap();
    let create = ApiKeyCreate { principal_id: Uuid::from_u128(1).into(), expires_at: None };
    for _ in 0..3 {
        let error = client.create_api_key(&create).await.unwrap_err();
        shown.push(format!("{error} {error:?}"));
    }
    let error = Client::builder("http://h").api_key("query-secret\n\u{7f}x").build().unwrap_err();
    shown.push(format!("{error} {error:?}"));
    for text in shown {
        assert!(!text.contains(KEY) && !text.contains("query-secret"), "{text}");
    }
}

#[tokio::test]
async fn what_cannot_be_a_path_is_not_sent() {
    let server = Server::answering([]).await;
    let client = server.client();
    for name in ["", "..", "a/b.c", "a.b?c", "a.b#c"] {
        assert!(matches!(client.event_type(name).await, Err(ClientError::Invalid(_))), "{name}");
    }
    for path in ["events", "/events?cursor=1", "/events#x"] {
        let sent = client.request::<Value>(Method::GET, path, &[], None).await;
        assert!(matches!(sent, Err(ClientError::Invalid(_))), "{path}");
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_base_address_may_end_in_the_api_path() {
    let server = Server::answering([empty_page()]).await;
    let client = Client::builder(format!("{}/api/v1/", server.url())).build().unwrap();
    client.event_types(&PageQuery::default()).await.unwrap();
    let asked = server.asked_once();
    assert_eq!((asked.path.as_str(), asked.header("authorization")), ("/api/v1/event-types", None));
}
