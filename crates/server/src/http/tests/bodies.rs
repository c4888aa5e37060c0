//! Bodies: size, media type, JSON that cannot be kept, fields that are wrong.

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{Method, Request};
use serde_json::json;

use super::app::{ID, Server, bearer};

const GOOD: &str = r#"{"parts":[]}"#;

#[tokio::test]
async fn a_payload_comes_back_as_the_text_that_was_sent() {
    let body = r#"{"parts":[{"name":"a","payload":{"b" : 1.00,"a":1e2}}]}"#;
    let answer = Server::new().post("/api/v1/things", body).await;
    assert_eq!(answer.status, 201);
    assert!(answer.text.contains(r#""payload":{"b" : 1.00,"a":1e2}"#), "{}", answer.text);
}

#[tokio::test]
async fn what_is_wrong_in_a_body_is_named_by_its_pointer() {
    let server = Server::new();
    for (body, pointer, problem) in [
        (r#"{"parts":[{"name":5,"payload":1}]}"#, "/parts/0/name", "invalid type: integer `5`, expected a string"),
        (
            r#"{"parts":[{"name":"a","payload":1},{"name":"b","size":256,"payload":1}]}"#,
            "/parts/1/size",
            "invalid value: integer `256`, expected u8",
        ),
        (r#"{"parts":[{"name":"a"}]}"#, "/parts/0", "missing field `payload`"),
        (r#"{"parts":{}}"#, "/parts", "invalid type: map, expected a sequence"),
        (r"{}", "", "missing field `parts`"),
        ("null", "", "invalid type: null, expected struct ThingCreate"),
    ] {
        let answer = server.post("/api/v1/things", body).await;
        let (status, code, message) = answer.refusal();
        assert_eq!((status, code.as_str()), (400, "invalid_request"), "{body}");
        let place = if pointer.is_empty() { "the body" } else { pointer };
        assert_eq!(message, format!("{place}: {problem}"));
        assert_eq!(answer.json()["error"]["details"]["pointer"], pointer);
    }
}

#[tokio::test]
async fn an_unknown_field_is_named() {
    let server = Server::new();
    let body = r#"{"parts":[{"name":"a","siz/e":1,"payload":1}]}"#;
    let (status, code, message) = server.post("/api/v1/things", body).await.refusal();
    assert_eq!((status, code.as_str()), (400, "invalid_request"));
    assert_eq!(message, "/parts/0/siz~1e: unknown field `siz/e`, expected one of `name`, `size`, `payload`");
    let (.., message) = server.post("/api/v1/things", r#"{"parts":[],"extra":1}"#).await.refusal();
    assert_eq!(message, "/extra: unknown field `extra`, expected `parts`");
}

#[tokio::test]
async fn what_is_no_json_text_is_an_invalid_request() {
    let server = Server::new();
    for body in [&b"{"[..], b"{}x", b"\xff", b"{\"parts\":\"\xff\"}", b"{\"parts\":[]}\0", b"{\"a\0\":1}", b"nul"] {
        let request = Request::post("/api/v1/things")
            .header("authorization", bearer())
            .header("content-type", "application/json")
            .body(Body::from(body))
            .unwrap();
        let (status, code, message) = server.send(request).await.refusal();
        assert_eq!((status, code.as_str()), (400, "invalid_request"), "{body:?}");
        assert!(message.starts_with("the body is not "), "{message}");
    }
}

#[tokio::test]
async fn json_that_cannot_be_kept_is_refused_with_a_pointer_for_each_fault() {
    let answer = Server::new().post(&format!("/api/v1/things/{ID}:claim"), r#"{"comment":"a\u0000","x":1e999}"#).await;
    let (status, code, message) = answer.refusal();
    assert_eq!((status, code.as_str()), (422, "invalid_body"));
    assert!(message.starts_with("/comment: "), "{message}");
    let errors = answer.json()["error"]["details"]["errors"].clone();
    let pointers: Vec<_> = errors.as_array().unwrap().iter().map(|e| e["pointer"].clone()).collect();
    assert_eq!(pointers, ["/comment", "/x"]);
    assert!(errors[0]["message"].as_str().is_some_and(|m| !m.is_empty()));
}

#[tokio::test]
async fn a_route_may_have_its_own_code_for_faults_in_a_payload() {
    let server = Server::new();
    let inside = server.post("/api/v1/things", r#"{"parts":[{"name":"a","payload":{"k":1,"k":2}}]}"#).await;
    assert_eq!((inside.refusal().0, inside.refusal().1.as_str()), (422, "invalid_event_payload"));
    let outside = server.post("/api/v1/things", r#"{"parts":[],"parts":[]}"#).await;
    assert_eq!((outside.refusal().0, outside.refusal().1.as_str()), (422, "invalid_body"));
}

#[tokio::test]
async fn nesting_has_an_end() {
    let nested = |depth: usize| {
        let payload = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"parts":[{{"name":"a","payload":{payload}}}]}}"#)
    };
    let server = Server::new();
    assert_eq!(server.post("/api/v1/things", &nested(64)).await.status, 201);
    assert_eq!(server.post("/api/v1/things", &nested(65)).await.refusal().1, "invalid_event_payload");
    assert_eq!(server.post("/api/v1/things", &nested(900)).await.refusal().0, 422);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_and_without_a_content_length() {
    let server = Server::new();
    let of = |length: usize| format!("{GOOD}{}", " ".repeat(length - GOOD.len()));
    assert_eq!(server.post("/api/v1/things", &of(2000)).await.status, 201);
    let answer = server.post("/api/v1/things", &of(2001)).await;
    assert_eq!((answer.refusal().0, answer.refusal().1.as_str()), (413, "payload_too_large"));
    assert_eq!(answer.json()["error"]["details"], json!({ "limitBytes": 2000 }));

    // An endless body: it is cut off rather than read.
    let chunks = stream::repeat_with(|| Ok::<_, std::convert::Infallible>(Bytes::from_static(&[b' '; 100])));
    let request = Request::post("/api/v1/things")
        .header("authorization", bearer())
        .header("content-type", "application/json")
        .body(Body::from_stream(chunks))
        .unwrap();
    assert_eq!(server.send(request).await.refusal().0, 413);
}

#[tokio::test]
async fn the_default_limit_is_one_mebibyte() {
    let server = Server::new();
    let target = format!("/api/v1/things/{ID}:claim");
    let of = |length: usize| format!("{{}}{}", " ".repeat(length - 2));
    assert_eq!(server.post(&target, &of(1024 * 1024)).await.status, 200);
    assert_eq!(server.post(&target, &of(1024 * 1024 + 1)).await.refusal().0, 413);
}

#[tokio::test]
async fn only_json_in_utf_8_is_taken() {
    let server = Server::new();
    let send = async |media_type: &str, body: &str| {
        server.ask(Method::POST, "/api/v1/things", &[("content-type", media_type)], body).await
    };
    for good in ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\""] {
        assert_eq!(send(good, GOOD).await.status, 201, "{good}");
    }
    for bad in ["text/plain", "application/json; charset=latin1", "application/x-www-form-urlencoded", "", "json"] {
        let (status, code, _) = send(bad, GOOD).await.refusal();
        assert_eq!((status, code.as_str()), (415, "unsupported_media_type"), "{bad}");
    }
    let untyped = Request::post("/api/v1/things").header("authorization", bearer()).body(Body::from(GOOD)).unwrap();
    assert_eq!(server.send(untyped).await.refusal().0, 415);
}

#[tokio::test]
async fn a_missing_body_is_refused_unless_it_is_optional() {
    let server = Server::new();
    let (status, code, message) = server.post("/api/v1/things", "").await.refusal();
    assert_eq!((status, code.as_str(), message.as_str()), (400, "invalid_request", "a JSON body is required"));
    assert_eq!(server.post(&format!("/api/v1/things/{ID}:claim"), "").await.status, 200);
}

#[tokio::test]
async fn a_route_without_a_body_takes_an_empty_one_only() {
    let server = Server::new();
    let typed = [("content-type", "application/json")];
    assert_eq!(server.ask(Method::POST, "/api/v1/things:retry", &typed, "").await.status, 200);
    let (status, code, message) = server.post("/api/v1/things:retry", "{}").await.refusal();
    assert_eq!((status, code.as_str(), message.as_str()), (400, "invalid_request", "this route takes no body"));
}

#[tokio::test]
async fn a_long_value_is_not_repeated_in_full() {
    let body = format!(r#"{{"parts":"{}"}}"#, "x".repeat(1500));
    let (.., message) = Server::new().post("/api/v1/things", &body).await.refusal();
    assert!(message.starts_with("/parts: invalid type") && message.chars().count() < 400, "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_arrive_in_time_is_refused() {
    let server = Server::new();
    let begun = || stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]).chain(stream::pending());
    let patched = format!("/api/v1/things/{ID}");
    for (method, path) in [(Method::POST, "/api/v1/things"), (Method::PATCH, &patched)] {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", bearer())
            .header("content-type", "application/json")
            .body(Body::from_stream(begun()))
            .unwrap();
        let (status, code, message) = server.send(request).await.refusal();
        assert_eq!((status, code.as_str()), (408, "request_timeout"), "{path}");
        assert_eq!(message, "the body did not arrive in time");
    }
}
