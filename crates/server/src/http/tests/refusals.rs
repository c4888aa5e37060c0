//! What is refused before a handler runs, and what becomes of a handler that fails.

use axum::body::Body;
use http::{Method, Request};

use super::app::{ID, Server};

fn triple(status: u16, code: &str, message: &str) -> (u16, String, String) {
    (status, code.to_owned(), message.to_owned())
}

#[tokio::test]
async fn a_bad_credential_is_refused_before_anything_is_parsed() {
    let server = Server::new();
    for credential in [None, Some("Bearer cak_bad"), Some("Basic cak_good"), Some("cak_good")] {
        let mut request = Request::builder().method("POST").uri("/api/v1/things?what=%zz");
        if let Some(text) = credential {
            request = request.header("authorization", text);
        }
        let answer = server.send(request.body(Body::from("{")).unwrap()).await;
        assert_eq!(answer.refusal(), triple(401, "unauthenticated", "a valid bearer credential is required"));
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
}

#[tokio::test]
async fn a_query_parameter_that_is_wrong_is_named() {
    let server = Server::new();
    for (target, message) in [
        ("/api/v1/things?limt=5", "query parameter \"limt\" is unknown"),
        ("/api/v1/things?limit=201", "query parameter \"limit\" must be a whole number from 1 to 200"),
        ("/api/v1/fail?x=1", "query parameter \"x\" is unknown"),
    ] {
        assert_eq!(server.get(target).await.refusal(), triple(400, "invalid_request", message));
    }
    let answer = server.get("/api/v1/things?limt=5").await;
    assert_eq!(answer.json()["error"]["details"]["parameter"], "limt");
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn an_impossible_id_is_answered_like_a_missing_one() {
    let server = Server::new();
    for id in ["7", "%zz", "%ff", "%00", "not-a-uuid:x", ID.trim_end_matches('1')] {
        let answer = server.get(&format!("/api/v1/things/{id}")).await;
        assert_eq!(answer.status, 404, "{id}");
        if !id.contains(':') {
            assert_eq!(answer.refusal(), triple(404, "not_found", "thing not found"), "{id}");
        }
    }
    for target in ["order%00paid/versions/1", "order.paid/versions/one", "order.paid/versions/-1"] {
        let refusal = server.get(&format!("/api/v1/event-types/{target}")).await.refusal();
        assert_eq!(refusal, triple(404, "not_found", "resource not found"));
    }
}

#[tokio::test]
async fn unknown_paths_and_wrong_methods_are_refused_in_the_envelope() {
    let server = Server::new();
    for target in ["/", "/api/v1/nothing", "/api/v1/things/", "/api/v1//things", "/healthz/x"] {
        let request = Request::get(target).body(Body::empty()).unwrap();
        assert_eq!(server.send(request).await.refusal(), triple(404, "not_found", "path not found"), "{target}");
    }
    let request = Request::put("/api/v1/things").body(Body::empty()).unwrap();
    let answer = server.send(request).await;
    assert_eq!(answer.refusal(), triple(405, "method_not_allowed", "this path takes GET, HEAD, POST"));
    assert_eq!(answer.header("allow"), Some("GET, HEAD, POST"));
    let claim = server.get(&format!("/api/v1/things/{ID}:claim")).await;
    assert_eq!((claim.status, claim.header("allow")), (405, Some("POST")));
}

#[tokio::test]
async fn equal_refusals_are_equal_bytes() {
    let server = Server::new();
    let one = server.get("/api/v1/things/7").await;
    let other = server.get("/api/v1/things/8").await;
    assert_eq!(one.text, other.text);
    assert_ne!(one.header("x-request-id"), other.header("x-request-id"));
}

#[tokio::test]
async fn a_cause_is_never_sent() {
    let answer = Server::new().get("/api/v1/fail").await;
    assert_eq!((answer.refusal().0, answer.refusal().1.as_str()), (500, "internal"));
    assert!(!answer.text.contains("hunter2"));
}

#[tokio::test]
async fn unavailable_says_when_to_come_back() {
    let answer = Server::new().get("/api/v1/busy").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("7")));
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_server_lives_on() {
    let server = Server::new();
    let answer = server.get("/api/v1/explode").await;
    assert_eq!((answer.refusal().0, answer.refusal().1.as_str()), (500, "internal"));
    assert!(!answer.text.contains("bug"));
    assert_eq!(server.get("/api/v1/things").await.status, 200);
}

#[tokio::test]
async fn a_code_that_is_not_documented_is_a_fault_in_development() {
    assert_eq!(Server::new().get("/api/v1/stray").await.refusal().1, "internal");
}

#[tokio::test]
async fn the_absolute_form_of_a_target_is_understood() {
    let answer =
        Server::new().ask(Method::POST, &format!("http://courant.test/api/v1/things/{ID}:claim"), &[], "").await;
    assert_eq!(answer.status, 200);
}
