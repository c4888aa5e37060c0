//! The OpenAPI document of the small application, and the mistakes that a router refuses.

use std::collections::BTreeSet;
use std::sync::Arc;

use courant_api::ErrorCode;
use http::Method;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::{App, endpoints};
use crate::http::openapi::document;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Open, Reply, router};

fn operation(document: &Value, method: &str, path: &str) -> Value {
    let operation = document["paths"][path][method].clone();
    assert!(operation.is_object(), "{method} {path}");
    operation
}

fn each<'a>(value: &'a Value, see: &mut dyn FnMut(&str, &'a Value)) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, field)| {
            see(key, field);
            each(field, see);
        }),
        Value::Array(items) => items.iter().for_each(|item| each(item, see)),
        _ => {}
    }
}

#[test]
fn every_route_has_one_operation_in_its_public_form() {
    let endpoints = endpoints();
    let document = document(&endpoints);
    assert_eq!(document["openapi"], "3.1.0");
    let operations: usize = document["paths"].as_object().unwrap().values().map(|p| p.as_object().unwrap().len()).sum();
    assert_eq!(operations, endpoints.len());
    let mut ids = BTreeSet::new();
    for endpoint in &endpoints {
        let operation = operation(&document, &endpoint.method().as_str().to_lowercase(), endpoint.path());
        assert_eq!(operation["operationId"], endpoint.operation_id());
        assert!(ids.insert(endpoint.operation_id()));
    }
    assert!(ids.contains("getThings"));
    assert!(ids.contains("postThingsByIdClaim"));
    assert!(ids.contains("getEventTypesByTypeVersionsByN"));
}

#[test]
fn the_document_is_the_same_text_each_time() {
    assert_eq!(document(&endpoints()).to_string(), document(&endpoints()).to_string());
}

#[test]
fn every_reference_resolves_and_every_component_is_used() {
    let document = document(&endpoints());
    let mut targets = BTreeSet::new();
    each(&document, &mut |key, field| {
        if key == "$ref" {
            let target = field.as_str().unwrap();
            assert!(document.pointer(target.trim_start_matches('#')).is_some(), "{target}");
            targets.insert(target);
        }
    });
    for kind in ["schemas", "parameters", "headers"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)), "{name}");
            let target = format!("#/components/{kind}/{name}");
            // The error table is reached from the envelope, 429 from routes that limit their callers.
            assert!(targets.contains(target.as_str()), "{target} is not used");
        }
    }
}

#[test]
fn every_schema_is_json_schema_2020_12() {
    let document = document(&endpoints());
    let mut count = 0;
    let mut check = |schema: &Value| {
        count += 1;
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{schema}");
    };
    document["components"]["schemas"].as_object().unwrap().values().for_each(&mut check);
    each(&document["paths"], &mut |key, field| {
        if key == "schema" {
            check(field);
        }
    });
    assert!(count > 20, "{count}");
}

#[test]
fn parameters_come_from_the_types() {
    let list = operation(&document(&endpoints()), "get", "/api/v1/things");
    let parameters = list["parameters"].as_array().unwrap();
    assert_eq!(
        parameters[0],
        json!({
            "name": "types", "in": "query", "required": false, "description": "Type prefixes.",
            "style": "form", "explode": true,
            "schema": { "type": "array", "items": { "type": "string", "minLength": 1 }, "default": [] },
        })
    );
    assert_eq!(
        parameters[1],
        json!({
            "name": "workspaceId", "in": "query", "required": false,
            "description": "Only things of this workspace.",
            "schema": { "$ref": "#/components/schemas/WorkspaceId" },
        })
    );
    assert_eq!(parameters[2]["schema"], json!({ "type": "integer", "format": "uint16", "minimum": 1, "maximum": 200 }));
    let get = operation(&document(&endpoints()), "get", "/api/v1/things/{id}");
    assert_eq!(
        get["parameters"][0],
        json!({
            "name": "id", "in": "path", "required": true, "description": "The thing.",
            "schema": { "type": "string", "format": "uuid" },
        })
    );
}

#[test]
fn shared_headers_stand_where_they_are_honoured() {
    let document = document(&endpoints());
    let honours = |method: &str, path: &str, name: &str| {
        let reference = json!({ "$ref": format!("#/components/parameters/{name}") });
        operation(&document, method, path)["parameters"].as_array().unwrap().contains(&reference)
    };
    assert!(honours("post", "/api/v1/things", "Idempotency-Key"));
    assert!(!honours("post", "/api/v1/things:retry", "Idempotency-Key"));
    assert!(!honours("get", "/api/v1/things", "Idempotency-Key"));
    assert!(honours("patch", "/api/v1/things/{id}", "If-Match"));
    assert!(!honours("post", "/api/v1/things", "If-Match"));
    assert!(honours("get", "/healthz", "X-Request-ID"));
    let answers = |method: &str, path: &str, name: &str| {
        operation(&document, method, path)["responses"]["200"]["headers"].get(name).is_some()
    };
    assert!(answers("get", "/api/v1/things/{id}", "ETag"));
    assert!(!answers("get", "/api/v1/things", "ETag"));
}

#[test]
fn bodies_and_answers_refer_to_named_schemas() {
    let document = document(&endpoints());
    let create = operation(&document, "post", "/api/v1/things");
    assert_eq!(create["requestBody"]["required"], true);
    let body = &create["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(body["$ref"], "#/components/schemas/ThingCreate");
    let answer = &create["responses"]["201"]["content"]["application/json"]["schema"];
    assert_eq!(answer["$ref"], "#/components/schemas/ThingView");
    assert_eq!(operation(&document, "post", "/api/v1/things/{id}:claim")["requestBody"]["required"], false);
    assert!(operation(&document, "delete", "/api/v1/things/{id}")["responses"]["204"].get("content").is_none());
    assert!(operation(&document, "get", "/healthz")["responses"]["200"]["content"]["text/plain"].is_object());
}

#[test]
fn a_type_that_is_sent_and_answered_has_a_name_for_each_contract() {
    let schemas = document(&endpoints())["components"]["schemas"].clone();
    // In an answer the size is always there, if only as null; in a request it may be left out.
    assert_eq!(schemas["Part"]["required"], json!(["name", "size", "payload"]));
    assert_eq!(schemas["PartInput"]["required"], json!(["name", "payload"]));
    let items = &schemas["ThingCreate"]["properties"]["parts"]["items"];
    assert_eq!(items["$ref"], "#/components/schemas/PartInput");
}

#[test]
fn refusals_are_grouped_by_status_and_complete() {
    let document = document(&endpoints());
    let statuses = |method: &str, path: &str| -> Vec<String> {
        operation(&document, method, path)["responses"].as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(statuses("get", "/healthz"), ["200", "400", "500", "503"]);
    assert_eq!(statuses("get", "/api/v1/things"), ["200", "400", "401", "403", "429", "500", "503"]);
    assert_eq!(
        statuses("post", "/api/v1/things"),
        ["201", "400", "401", "403", "408", "409", "413", "415", "422", "429", "500", "503"]
    );
    assert_eq!(
        statuses("patch", "/api/v1/things/{id}"),
        ["200", "400", "401", "403", "404", "408", "412", "413", "415", "422", "429", "500", "503"]
    );
    let create = operation(&document, "post", "/api/v1/things");
    assert_eq!(create["responses"]["422"]["x-error-codes"], json!(["invalid_body", "invalid_event_payload"]));
    assert_eq!(create["responses"]["503"]["headers"]["Retry-After"]["$ref"], "#/components/headers/Retry-After");
}

#[test]
fn access_is_part_of_the_document() {
    let document = document(&endpoints());
    assert_eq!(
        operation(&document, "get", "/api/v1/things")["x-permission"],
        json!({ "permissions": ["events.read"], "on": "the workspace given, else the tenant" })
    );
    assert_eq!(operation(&document, "get", "/healthz")["security"], json!([]));
    assert_eq!(document["security"], json!([{ "bearer": [] }]));
}

#[test]
fn the_list_tells_tests_what_each_route_needs() {
    let endpoints = endpoints();
    let create = endpoints.iter().find(|e| e.method() == Method::POST && e.path() == "/api/v1/things").unwrap();
    assert!(matches!(create.required_access(), Some(Access::On(..))));
    assert!(create.error_codes().contains(&ErrorCode::IdempotencyInFlight));
    let health = endpoints.iter().find(|e| e.path() == "/healthz").unwrap();
    assert_eq!(health.required_access(), Some(Access::Public));
}

#[derive(Deserialize, JsonSchema)]
struct Lax {
    #[expect(dead_code, reason = "only its schema matters")]
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Outer {
    #[expect(dead_code, reason = "only its schema matters")]
    inner: Lax,
}

async fn lax_query(_: Cx<App>, _: Input<(), Lax, ()>) -> Result<Reply<()>, ApiError> {
    Ok(Reply::no_content())
}

async fn lax_body(_: Cx<App>, _: Input<(), (), Outer>) -> Result<Reply<()>, ApiError> {
    Ok(Reply::no_content())
}

async fn plain(_: Cx<App>, _: Input<(), (), ()>) -> Result<Reply<()>, ApiError> {
    Ok(Reply::no_content())
}

async fn open(_: Cx<App, Open>, _: Input<(), (), ()>) -> Result<Reply<()>, ApiError> {
    Ok(Reply::no_content())
}

#[test]
fn a_router_refuses_what_only_the_code_can_have_wrong() {
    let told = |endpoint: Endpoint<App>| {
        let endpoint = endpoint.summary("Does it").tag("t");
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(router(vec![endpoint], &Arc::new(App::default())));
        }));
        refused.err().map(|panic| *panic.downcast::<String>().unwrap()).unwrap_or_default()
    };
    let with = |endpoint: Endpoint<App>| told(endpoint.access(Access::Caller));
    assert!(with(Endpoint::get("/a", lax_query)).contains("query lets unknown fields pass"));
    assert!(with(Endpoint::post("/a", lax_body)).contains("body/properties/inner lets unknown fields pass"));
    assert!(with(Endpoint::get("/a/{id}", plain)).contains("path fields differ"));
    assert!(told(Endpoint::get("/a", plain)).contains("does not say who may use it"));
    assert!(with(Endpoint::get("/a", open)).contains("gate differ"));
    assert_eq!(with(Endpoint::get("/a", plain)), "");
}
