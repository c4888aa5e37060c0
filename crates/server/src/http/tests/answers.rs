//! What goes well: typed input, verbs, replies and the headers around them.

use http::Method;
use serde_json::json;

use super::app::{ID, Server};

#[tokio::test]
async fn a_handler_gets_caller_and_query_and_answers_json() {
    let server = Server::new();
    let answer = server.get("/api/v1/things?types=a.&types=b.&limit=5").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.json(),
        json!({ "items": [{ "name": "Ada", "part": null }], "nextCursor": null, "hasMore": false })
    );
    assert_eq!(server.seen(), [r#"["a.", "b."] None Some(5)"#]);
}

#[tokio::test]
async fn verbs_are_reached_in_their_public_form_only() {
    let server = Server::new();
    let claimed = server.post(&format!("/api/v1/things/{ID}:claim"), r#"{"comment":"mine"}"#).await;
    assert_eq!((claimed.status, claimed.json()["name"].as_str()), (200, Some("mine")));
    let retried = server.post("/api/v1/things:retry", "").await;
    assert_eq!((retried.status, retried.json()["name"].as_str()), (200, Some("all retried")));
    for inner in [format!("/api/v1/things/{ID}/~claim"), "/api/v1/things/~retry".to_owned()] {
        assert_eq!(server.post(&inner, "").await.refusal().1, "not_found");
    }
    assert_eq!(server.post(&format!("/api/v1/things/{ID}:explode"), "").await.status, 404);
    assert_eq!(server.post(&format!("/api/v1/things/{ID}%3Aclaim"), "").await.status, 405);
}

#[tokio::test]
async fn path_parameters_are_typed_and_decoded() {
    let server = Server::new();
    let answer = server.get("/api/v1/event-types/order%2Epaid/versions/3").await;
    assert_eq!(answer.json()["name"], "order.paid 3");
}

#[tokio::test]
async fn a_version_travels_as_etag_and_if_match() {
    let server = Server::new();
    let thing = format!("/api/v1/things/{ID}");
    assert_eq!(server.get(&thing).await.header("etag"), Some("\"7\""));

    let patch = async |tag: &str| server.ask(Method::PATCH, &thing, &[("if-match", tag)], "{}").await;
    assert_eq!(patch("\"7\"").await.status, 200);
    assert_eq!(patch("*").await.status, 200);
    assert_eq!(patch("\"1\"").await.refusal().0, 412);
    assert_eq!(patch("7").await.refusal().1, "invalid_request");
    assert_eq!(patch("\"1\", \"7\"").await.status, 200);
    assert_eq!(server.seen(), ["Some([7]) None", "None None", "Some([1]) None", "Some([1, 7]) None"]);
}

#[tokio::test]
async fn who_has_the_version_is_not_sent_it_again() {
    let server = Server::new();
    let thing = format!("/api/v1/things/{ID}");
    let get = async |method: Method, tag: &str| server.ask(method, &thing, &[("if-none-match", tag)], "").await;
    for method in [Method::GET, Method::HEAD] {
        let answer = get(method.clone(), "\"7\"").await;
        assert_eq!((answer.status, answer.text.as_str(), answer.header("etag")), (304, "", Some("\"7\"")));
        assert_eq!(get(method, "\"6\"").await.status, 200);
    }
}

#[tokio::test]
async fn an_answer_without_a_body_has_no_media_type() {
    let answer = Server::new().ask(Method::DELETE, &format!("/api/v1/things/{ID}"), &[], "").await;
    assert_eq!((answer.status, answer.text.as_str(), answer.header("content-type")), (204, "", None));
}

#[tokio::test]
async fn a_stored_answer_is_replayed_as_it_was() {
    let answer =
        Server::new().ask(Method::POST, "/api/v1/things", &[("idempotency-key", "again")], r#"{"parts":[]}"#).await;
    assert_eq!((answer.status, answer.text.as_str()), (201, r#"{"name": "stored"}"#));
    assert_eq!(answer.header("idempotency-replayed"), Some("true"));
    assert_eq!(answer.header("etag"), Some("\"1\""));
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn the_fingerprint_covers_the_body() {
    let server = Server::new();
    for body in [r#"{"parts":[]}"#, r#"{"parts":[]}"#, r#"{"parts": []}"#] {
        let answer = server.ask(Method::POST, "/api/v1/things", &[("idempotency-key", "k1")], body).await;
        assert_eq!((answer.status, answer.header("idempotency-replayed")), (201, None));
    }
    let seen = server.seen();
    assert!(seen[0].starts_with("k1 ["));
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[1], seen[2]);
}

#[tokio::test]
async fn an_idempotency_key_is_checked_where_it_is_honoured() {
    let server = Server::new();
    let bad = [("idempotency-key", "a b")];
    let refused = server.ask(Method::POST, "/api/v1/things", &bad, r#"{"parts":[]}"#).await.refusal();
    assert_eq!((refused.0, refused.1.as_str()), (400, "invalid_request"));
    assert!(refused.2.starts_with("Idempotency-Key must be"), "{}", refused.2);
    assert_eq!(server.ask(Method::POST, "/api/v1/things:retry", &bad, "").await.status, 200);
}

#[tokio::test]
async fn a_public_route_needs_no_credential_and_may_answer_text() {
    let server = Server::new();
    let request = http::Request::get("/healthz").body(axum::body::Body::empty()).unwrap();
    let answer = server.send(request).await;
    assert_eq!((answer.status, answer.text.as_str()), (200, "alive\n"));
    assert_eq!(answer.header("content-type"), Some("text/plain"));
}

#[tokio::test]
async fn head_is_get_without_its_body() {
    let answer = Server::new().ask(Method::HEAD, "/api/v1/things", &[], "").await;
    assert_eq!((answer.status, answer.text.as_str()), (200, ""));
}

#[tokio::test]
async fn ids_are_accepted_or_made_and_echoed_on_every_answer() {
    let server = Server::new();
    let given = [("x-request-id", "req-1"), ("x-correlation-id", "deploy:7")];
    for target in ["/api/v1/things", "/api/v1/nothing", "/api/v1/fail", "/api/v1/explode"] {
        let answer = server.ask(Method::GET, target, &given, "").await;
        assert_eq!(answer.header("x-request-id"), Some("req-1"), "{target}");
        assert_eq!(answer.header("x-correlation-id"), Some("deploy:7"), "{target}");
    }
    let made = server.ask(Method::GET, "/api/v1/things", &[("x-request-id", "not an id")], "").await;
    let id = made.header("x-request-id").unwrap();
    assert!(id.parse::<uuid::Uuid>().is_ok());
    assert_eq!(made.header("x-correlation-id"), Some(id));
}

#[tokio::test]
async fn a_handler_sees_where_the_request_comes_from() {
    let server = Server::new();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [("x-request-id", "r"), ("traceparent", trace)];
    server.ask(Method::POST, &format!("/api/v1/things/{ID}:claim"), &headers, "").await;
    let expected = format!(
        r#"RequestMeta {{ request_id: "r", correlation_id: "r", traceparent: Some("{trace}"), client: None }}"#
    );
    assert_eq!(server.seen(), [expected]);
}

#[tokio::test]
async fn every_answer_forbids_sniffing_and_storing_and_names_no_server() {
    let server = Server::new();
    for target in ["/api/v1/things", "/api/v1/nothing", "/api/v1/explode", "/healthz"] {
        let answer = server.get(target).await;
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{target}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{target}");
        assert_eq!(answer.header("server"), None, "{target}");
    }
}

#[test]
fn requests_are_counted_under_their_public_route() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let server = Server::new();
            server.post(&format!("/api/v1/things/{ID}:claim"), "").await;
            server.get("/api/v1/explode").await;
            server.get("/some/path").await;
            server.ask(Method::from_bytes(b"BREW").unwrap(), "/other/path", &[], "").await;
        });
    });
    let text = handle.render();
    for (method, route, status) in [
        ("POST", "/api/v1/things/{id}:claim", 200),
        ("GET", "/api/v1/explode", 500),
        ("GET", "unmatched", 404),
        ("OTHER", "unmatched", 404),
    ] {
        let labels = format!(r#"method="{method}",route="{route}""#);
        let count = format!(r#"courant_http_requests_total{{{labels},status="{status}"}} 1"#);
        assert!(text.contains(&count), "{count} in {text}");
        assert!(text.contains(&format!("courant_http_request_seconds_count{{{labels}}} 1")), "{labels} in {text}");
    }
}
