//! What holds for every exchange, whatever its route: rates, proxies, pages of other origins, headers.

use http::Method;

use crate::support::world::{BOOTSTRAP_SECRET, Setup};
use crate::support::{Api, Reply, Socket, World, json, no_such_id, on_both_databases};

const ORIGIN: &str = "https://app.example.com";

/// Runs one case on a second server with these settings.
async fn with(world: &World, setup: Setup<'_>, case: impl AsyncFn(&World)) {
    let world = World::start(world.engine, setup).await;
    case(&world).await;
    world.finish().await;
}

/// What a browser asks before a page's request.
async fn preflight(api: &Api, path: &str, origin: &str) -> Reply {
    let call = api.anonymous().call(Method::OPTIONS, path).header("origin", origin);
    let call = call.header("access-control-request-method", "PATCH");
    call.header("access-control-request-headers", "authorization,content-type,if-match").await
}

fn cors_headers(reply: &Reply) -> Vec<&str> {
    reply
        .headers
        .keys()
        .map(http::HeaderName::as_str)
        .filter(|n| n.starts_with("access-control") || *n == "vary")
        .collect()
}

async fn a_key_over_its_rate_is_told_when_to_come_back_and_others_are_not_slowed(world: &World) {
    with(world, &[("COURANT_RATE_LIMIT", "1")], async |world| {
        let tenant = world.tenant().await;
        let other = world.tenant().await;
        let mut refused = None;
        for _ in 0..100 {
            let reply = tenant.get("/workspaces?what=%zz").await;
            if reply.status == 429 {
                refused = Some(reply);
                break;
            }
            reply.refused(400, "invalid_request");
        }
        let refused = refused.expect("a refusal before anything is parsed");
        refused.refused(429, "rate_limited");
        assert_eq!(refused.header("retry-after"), Some("1"));
        other.get("/workspaces").await.expect(200);
        world.api.get("/healthz").await.expect(200);
    })
    .await;
}

async fn a_socket_over_the_rate_of_its_key_is_closed_with_1013(world: &World) {
    with(world, &[("COURANT_RATE_LIMIT", "1")], async |world| {
        let tenant = world.tenant().await;
        let mut closes = Vec::new();
        for _ in 0..100 {
            let mut socket = Socket::events(&tenant, "colour=red").await;
            closes.push(socket.closed().await);
            if closes.last().unwrap().0 == 1013 {
                break;
            }
        }
        assert_eq!(closes.pop(), Some((1013, "rate_limited".to_owned())));
        assert!(closes.iter().all(|close| close.0 == 4400), "{closes:?}");
    })
    .await;
}

async fn without_a_rate_nobody_is_slowed(world: &World) {
    let tenant = world.tenant().await;
    for _ in 0..100 {
        tenant.get("/workspaces").await.expect(200);
    }
}

async fn guesses_at_the_bootstrap_secret_are_slowed_for_each_client(world: &World) {
    with(world, &[("COURANT_TRUSTED_PROXIES", "127.0.0.0/8")], async |world| {
        let body = json!({ "name": "umbrella" });
        let from = |secret: &str, client: &str| {
            world.api.with(secret).post("/bootstrap", &body).header("x-forwarded-for", client)
        };
        for _ in 0..30 {
            from(BOOTSTRAP_SECRET, "198.51.100.1").await.expect(201);
        }
        let mut last = from("wrong", "198.51.100.1").await;
        for _ in 0..100 {
            if last.status == 429 {
                break;
            }
            last.refused(401, "unauthenticated");
            last = from("wrong", "198.51.100.1").await;
        }
        last.refused(429, "rate_limited");
        assert_eq!(last.header("retry-after"), Some("1"));
        from("wrong", "198.51.100.2").await.refused(401, "unauthenticated");
        from(BOOTSTRAP_SECRET, "198.51.100.2").await.expect(201);
    })
    .await;
}

async fn without_origins_nothing_is_said_to_pages(world: &World) {
    let tenant = world.tenant().await;
    for path in ["/workspaces", "/nothing", "/healthz", "/api/v1/openapi.json"] {
        let read = tenant.get(path).header("origin", ORIGIN).await;
        assert_eq!(cors_headers(&read), [""; 0], "{path}");
        let asked = preflight(&tenant, path, ORIGIN).await;
        assert!([404, 405].contains(&asked.status), "{path}");
        assert_eq!(cors_headers(&asked), [""; 0], "{path}");
    }
}

async fn pages_of_listed_origins_may_ask_and_read_and_no_others(world: &World) {
    with(world, &[("COURANT_CORS_ORIGINS", "https://app.example.com,http://localhost:5173")], async |world| {
        let tenant = world.tenant().await;
        for origin in [ORIGIN, "http://localhost:5173"] {
            let asked = preflight(&tenant, &format!("/workspaces/{}", no_such_id()), origin).await;
            assert_eq!((asked.status, asked.bytes.len()), (200, 0));
            assert_eq!(asked.header("access-control-allow-origin"), Some(origin));
            assert!(asked.header("access-control-allow-methods").unwrap().contains("PATCH"));
            for name in ["authorization", "content-type", "if-match", "idempotency-key"] {
                assert!(asked.header("access-control-allow-headers").unwrap().contains(name), "{name}");
            }
            for reply in [
                tenant.get("/workspaces").header("origin", origin).await,
                tenant.get("/nothing").header("origin", origin).await,
                world.api.anonymous().get("/workspaces").header("origin", origin).await,
            ] {
                assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
                assert_eq!(
                    reply.header("access-control-expose-headers"),
                    Some("etag,retry-after,x-request-id,x-correlation-id,idempotency-replayed")
                );
                assert_eq!(reply.header("access-control-allow-credentials"), None);
            }
        }
        for origin in ["https://evil.example.com", "http://app.example.com", "https://app.example.com:8443", "null"] {
            assert_eq!(preflight(&tenant, "/workspaces", origin).await.header("access-control-allow-origin"), None);
            let read = tenant.get("/workspaces").header("origin", origin).await;
            assert_eq!(read.header("access-control-allow-origin"), None);
        }
    })
    .await;
}

async fn every_answer_has_its_security_headers(world: &World) {
    let tenant = world.tenant().await;
    for reply in [
        tenant.get("/workspaces").await,
        tenant.get("/nothing").await,
        tenant.delete("/workspaces").await,
        world.api.anonymous().get("/workspaces").await,
        world.api.get("/healthz").await,
    ] {
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{}", reply.status);
        }
        assert_eq!(reply.header("strict-transport-security"), None);
    }
}

async fn browsers_are_to_insist_on_tls_where_people_come_by_it(world: &World) {
    let told = async |base: &str| {
        let world = World::start(world.engine, &[("COURANT_PUBLIC_BASE_URL", base)]).await;
        let replies = [world.api.get("/healthz").await, world.api.get("/nothing").await];
        world.finish().await;
        replies.map(|reply| reply.header("strict-transport-security").map(str::to_owned))
    };
    let year = || Some("max-age=31536000".to_owned());
    assert_eq!(told("https://courant.example.com").await, [year(), year()]);
    assert_eq!(told("http://courant.example.com").await, [None, None]);
}

async fn what_has_a_version_is_read_and_changed_by_its_etag(world: &World) {
    let tenant = world.tenant().await;
    let path = format!("/workspaces/{}", tenant.workspace(None).await);
    let rename = |tag: &str| tenant.patch(&path, &json!({ "name": format!("was {tag}") })).header("if-match", tag);
    rename("\"7\", W/\"1\"").await.refused(412, "version_conflict");
    rename("\"x\"").await.refused(412, "version_conflict");
    rename("1").await.refused(400, "invalid_request");
    assert_eq!(rename("\"7\", \"1\"").await.etag(), "\"2\"");
    assert_eq!(rename("*").await.etag(), "\"3\"");
    let unchanged = tenant.get(&path).header("if-none-match", "W/\"3\"").await;
    assert_eq!((unchanged.status, unchanged.etag(), unchanged.bytes.len()), (304, "\"3\"", 0));
    tenant.get(&path).header("if-none-match", "\"2\"").await.expect(200);
}

async fn every_answer_with_a_version_has_an_etag_and_every_change_of_it_takes_if_match(world: &World) {
    let document = world.api.get("/openapi.json").await.expect(200);
    let schema = |answer: &serde_json::Value| {
        let name = answer["content"]["application/json"]["schema"]["$ref"].as_str()?.rsplit('/').next()?.to_owned();
        Some(document["components"]["schemas"][name].clone())
    };
    // The version of an event type is that of its schema.
    let is_versioned = |answer: &serde_json::Value| {
        schema(answer).is_some_and(|s| s["properties"].get("version").is_some() && s["properties"].get("id").is_some())
    };
    let mut counted = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let resource = is_versioned(&operations["get"]["responses"]["200"]);
        for (method, operation) in operations.as_object().unwrap() {
            let answers = ["200", "201"].map(|status| &operation["responses"][status]);
            for answer in answers.into_iter().filter(|answer| is_versioned(answer)) {
                assert!(answer["headers"].get("ETag").is_some(), "{method} {path}");
                counted += 1;
            }
            if resource && ["patch", "delete"].contains(&method.as_str()) {
                let reference = json!({ "$ref": "#/components/parameters/If-Match" });
                assert!(operation["parameters"].as_array().unwrap().contains(&reference), "{method} {path}");
            }
        }
    }
    assert!(counted >= 11, "{counted}");
}

async fn the_reference_has_every_operation_schema_error_and_permission_and_loads_nothing(world: &World) {
    let reply = world.api.anonymous().get("/docs").await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let page = reply.text();
    let document = world.api.get("/openapi.json").await.expect(200);
    let mut anchors = Vec::new();
    for operations in document["paths"].as_object().unwrap().values() {
        anchors.extend(operations.as_object().unwrap().values().map(|o| o["operationId"].as_str().unwrap().to_owned()));
    }
    anchors.extend(document["components"]["schemas"].as_object().unwrap().keys().map(|name| format!("schema-{name}")));
    anchors.extend(courant_api::ErrorCode::ALL.iter().map(|code| format!("error-{}", code.as_str())));
    anchors.extend(courant_api::Permission::LIST.iter().map(|permission| format!("permission-{permission}")));
    for anchor in &anchors {
        assert_eq!(page.matches(&format!("id=\"{anchor}\"")).count(), 1, "{anchor}");
    }
    for link in page.split("href=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0) {
        let here = link.strip_prefix('#').is_some_and(|anchor| page.contains(&format!("id=\"{anchor}\"")));
        assert!(here || link == "/api/v1/openapi.json", "{link}");
    }
    for loaded in ["<script", "src=", "<link", "url(", "@import", "style=\""] {
        assert!(!page.contains(loaded), "{loaded}");
    }
}

on_both_databases! {
    the_reference_has_every_operation_schema_error_and_permission_and_loads_nothing,
    a_key_over_its_rate_is_told_when_to_come_back_and_others_are_not_slowed,
    a_socket_over_the_rate_of_its_key_is_closed_with_1013,
    without_a_rate_nobody_is_slowed,
    guesses_at_the_bootstrap_secret_are_slowed_for_each_client,
    without_origins_nothing_is_said_to_pages,
    pages_of_listed_origins_may_ask_and_read_and_no_others,
    every_answer_has_its_security_headers,
    browsers_are_to_insist_on_tls_where_people_come_by_it,
    what_has_a_version_is_read_and_changed_by_its_etag,
    every_answer_with_a_version_has_an_etag_and_every_change_of_it_takes_if_match,
}
