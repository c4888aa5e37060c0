//! One operation of the document: parameters, body, answers, refusals.

use std::collections::BTreeMap;

use courant_api::ErrorCode;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::schemas::Schemas;
use crate::http::endpoint::{Access, Route};
use crate::http::shape::properties;
use crate::http::socket::{BEARER, CLOSE_CODES, PROTOCOL};

/// A list of entity tags, or a star.
const TAGS: &str = r#"^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$"#;

/// The operation of a route.
pub(super) fn describe(route: &Route, schemas: &mut Schemas) -> Value {
    let mut operation = Map::new();
    let mut put = |key: &str, value: Value| operation.insert(key.to_owned(), value);
    put("operationId", json!(route.operation_id()));
    put("summary", json!(route.summary));
    if !route.description.is_empty() {
        put("description", json!(route.description));
    }
    put("tags", json!([route.tag]));
    if route.shape.public {
        put("security", json!([]));
    }
    match route.access {
        Some(Access::On(permissions, on)) => put("x-permission", json!({ "permissions": permissions, "on": on })),
        Some(Access::OneOf(permissions, on)) => put("x-permission", json!({ "oneOf": permissions, "on": on })),
        Some(Access::Public | Access::Caller) | None => None,
    };
    put("parameters", Value::Array(parameters(route, schemas)));
    if let Some(body) = route.shape.body {
        let schema = body(&mut schemas.inputs);
        let content = json!({ "application/json": { "schema": schema } });
        put("requestBody", json!({ "required": !route.body_optional, "content": content }));
    }
    put("responses", responses(route, schemas));
    if route.socket {
        put("x-websocket", socket());
    }
    Value::Object(operation)
}

/// What OpenAPI has no words for: subprotocols and close codes.
fn socket() -> Value {
    let closes = CLOSE_CODES.iter().map(|(code, when, again)| json!({ "code": code, "when": when, "tryAgain": again }));
    json!({ "subprotocol": PROTOCOL, "credentialSubprotocol": format!("{BEARER}<key>"), "closeCodes": closes.collect::<Vec<_>>() })
}

fn parameters(route: &Route, schemas: &mut Schemas) -> Vec<Value> {
    let mut list = Vec::new();
    for (place, describe) in [("path", route.shape.path), ("query", route.shape.query)] {
        let schema = describe(&mut schemas.inputs);
        let required: Vec<_> = schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
        for (name, field) in properties(&schema) {
            let is_required = place == "path" || required.iter().any(|r| *r == name);
            list.push(parameter(name, place, is_required, field.clone()));
        }
    }
    let mut share = |name: &str| list.push(json!({ "$ref": format!("#/components/parameters/{name}") }));
    if route.idempotent {
        share("Idempotency-Key");
    }
    if route.versioned {
        share("If-Match");
    }
    if route.conditional() {
        share("If-None-Match");
    }
    share("X-Request-ID");
    share("X-Correlation-ID");
    share("traceparent");
    list
}

fn parameter(name: &str, place: &str, required: bool, field: Value) -> Value {
    let mut schema = without_null(field);
    never_empty(&mut schema);
    schema.get_mut("items").into_iter().for_each(never_empty);
    let description = schema.as_object_mut().and_then(|fields| fields.shift_remove("description"));
    let mut parameter = json!({ "name": name, "in": place, "required": required });
    if let Some(text) = description {
        parameter["description"] = text;
    }
    if schema["type"] == "array" {
        parameter["style"] = json!("form");
        parameter["explode"] = json!(true);
    }
    parameter["schema"] = schema;
    parameter
}

/// A text in a path or query is never empty: no path has an empty segment, and an empty value is refused.
fn never_empty(schema: &mut Value) {
    if schema["type"] == "string"
        && schema["format"].is_null()
        && let Some(fields) = schema.as_object_mut()
    {
        fields.entry("minLength").or_insert(json!(1));
    }
}

/// A parameter is absent rather than null.
fn without_null(mut schema: Value) -> Value {
    let Some(fields) = schema.as_object_mut() else {
        return schema;
    };
    if fields.get("default").is_some_and(Value::is_null) {
        fields.shift_remove("default");
    }
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|t| t != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            fields.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(options)) = fields.get_mut("anyOf") {
        options.retain(|option| option["type"] != "null");
        if let [Value::Object(one)] = options.as_slice() {
            let one = one.clone();
            fields.shift_remove("anyOf");
            // What the field says goes before what its type says.
            one.into_iter().for_each(|(key, value)| {
                fields.entry(key).or_insert(value);
            });
        }
    }
    schema
}

fn responses(route: &Route, schemas: &mut Schemas) -> Value {
    let mut responses = BTreeMap::new();
    for status in &route.statuses {
        responses.insert(status.as_u16(), success(route, *status, schemas));
    }
    if route.conditional() {
        let headers = named_headers(&["X-Request-ID", "X-Correlation-ID", "ETag"]);
        let description = "The version that `If-None-Match` names is the current one.";
        responses.insert(304, json!({ "description": description, "headers": headers }));
    }
    let mut refusals: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in route.error_codes() {
        refusals.entry(code.status()).or_default().push(code);
    }
    for (status, codes) in refusals {
        responses.insert(status, refusal(status, &codes));
    }
    let by_text = responses.into_iter().map(|(status, response)| (status.to_string(), response));
    Value::Object(by_text.collect::<Map<_, _>>())
}

fn success(route: &Route, status: StatusCode, schemas: &mut Schemas) -> Value {
    let mut headers = vec!["X-Request-ID", "X-Correlation-ID"];
    if route.idempotent {
        headers.push("Idempotency-Replayed");
    }
    if route.etag {
        headers.push("ETag");
    }
    let mut response = json!({ "description": status.canonical_reason().unwrap_or("Success") });
    response["headers"] = named_headers(&headers);
    if let Some(reply) = route.shape.reply.filter(|_| status != StatusCode::NO_CONTENT) {
        let schema = reply(&mut schemas.answers);
        response["content"] = json!({ route.produces: { "schema": schema } });
    }
    response
}

fn refusal(status: u16, codes: &[ErrorCode]) -> Value {
    let lines: Vec<_> = codes.iter().map(|code| format!("`{}`: {}", code.as_str(), code.meaning())).collect();
    let mut headers = vec!["X-Request-ID", "X-Correlation-ID"];
    match status {
        401 => headers.push("WWW-Authenticate"),
        429 | 503 => headers.push("Retry-After"),
        _ => {}
    }
    json!({
        "description": lines.join("\n\n"),
        "headers": named_headers(&headers),
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/ErrorBody" } } },
        "x-error-codes": codes,
    })
}

fn named_headers(names: &[&str]) -> Value {
    let entry = |name: &&str| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }));
    Value::Object(names.iter().map(entry).collect::<Map<_, _>>())
}

/// Request headers that operations refer to.
pub(super) fn shared_parameters() -> Value {
    let list = [
        (
            "Idempotency-Key",
            "Makes a repeat safe: the same key and request replays the first answer for 24 hours.",
            json!({ "type": "string", "pattern": "^[!-~]{1,200}$" }),
        ),
        (
            "If-Match",
            "The ETags of the versions that are meant, or `*`; another current version is refused. A weak tag never \
             matches.",
            json!({ "type": "string", "pattern": TAGS }),
        ),
        (
            "If-None-Match",
            "The ETags of versions that the client has; when one is current, the answer is `304` without a body. What is no \
             list of tags counts as absent.",
            json!({ "type": "string" }),
        ),
        (
            "X-Request-ID",
            "Identifies the request; made by the server when absent or unacceptable.",
            json!({ "type": "string" }),
        ),
        (
            "X-Correlation-ID",
            "Ties together what one undertaking causes; the request id when absent or unacceptable.",
            json!({ "type": "string" }),
        ),
        ("traceparent", "W3C trace context.", json!({ "type": "string" })),
    ];
    let entry = |(name, description, schema): (&str, &str, Value)| {
        let body = json!({
            "name": name,
            "in": "header",
            "required": false,
            "description": description,
            "schema": schema,
        });
        (name.to_owned(), body)
    };
    Value::Object(list.into_iter().map(entry).collect::<Map<_, _>>())
}

/// Response headers that operations refer to.
pub(super) fn shared_headers() -> Value {
    let text = json!({ "type": "string" });
    let list = [
        ("X-Request-ID", "The request's id.", id_schema()),
        ("X-Correlation-ID", "The request's correlation id.", id_schema()),
        ("Idempotency-Replayed", "`true` on a replayed answer; else absent.", text.clone()),
        ("ETag", "The resource's version, for `If-Match`.", text.clone()),
        ("WWW-Authenticate", "The scheme of credentials.", text),
        ("Retry-After", "Seconds to wait before a repeat.", json!({ "type": "integer", "minimum": 0 })),
    ];
    let entry = |(name, description, schema): (&str, &str, Value)| {
        (name.to_owned(), json!({ "description": description, "schema": schema }))
    };
    Value::Object(list.into_iter().map(entry).collect::<Map<_, _>>())
}

fn id_schema() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9._:-]{1,128}$" })
}
