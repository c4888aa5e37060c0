//! What a document breaks of an older one: paths, parameters, bodies, answers.

use serde_json::{Map, Value};

use super::schemas::{Comparison, Side};

/// Every promise of `old` that `new` does not keep, each with its place.
pub(super) fn breaks(old: &Value, new: &Value) -> Vec<String> {
    let mut comparison = Comparison::new(old, new);
    for (path, item) in entries(&old["paths"]) {
        for (method, operation) in entries(item) {
            let at = format!("{} {path}", method.to_ascii_uppercase());
            match &new["paths"][path][method] {
                Value::Null => comparison.fault(&at, "is gone"),
                now => operations(&mut comparison, &at, operation, now),
            }
        }
    }
    comparison.faults
}

fn operations(all: &mut Comparison<'_>, at: &str, old: &Value, new: &Value) {
    let is_public = |operation: &Value| operation["security"].as_array().is_some_and(Vec::is_empty);
    if is_public(old) && !is_public(new) {
        all.fault(at, "needs a credential now");
    }
    for permission in list(&new["x-permission"]["permissions"]) {
        if !list(&old["x-permission"]["permissions"]).any(|known| known == permission) {
            all.fault(at, format!("needs the permission {permission} now"));
        }
    }
    parameters(all, at, old, new);
    body(all, &format!("{at} body"), &old["requestBody"], &new["requestBody"]);
    for (status, response) in entries(&old["responses"]).filter(|(status, _)| status.starts_with('2')) {
        answer(all, &format!("{at} {status}"), response, &new["responses"][status]);
    }
}

fn parameters(all: &mut Comparison<'_>, at: &str, old: &Value, new: &Value) {
    let (was, now) = (resolved(all.old, &old["parameters"]), resolved(all.new, &new["parameters"]));
    let same = |a: &Value, b: &Value| a["name"] == b["name"] && a["in"] == b["in"];
    for old in &was {
        let at = format!("{at} parameter {}", old["name"]);
        match now.iter().find(|new| same(old, new)) {
            None => all.fault(&at, "is gone"),
            Some(new) => {
                if new["required"] == true && old["required"] != true {
                    all.fault(&at, "is required now");
                }
                all.schemas(&at, Side::Sent, &old["schema"], &new["schema"]);
            }
        }
    }
    for new in now.iter().filter(|new| new["required"] == true && !was.iter().any(|old| same(old, new))) {
        all.fault(at, format!("requires a new parameter {}", new["name"]));
    }
}

fn body(all: &mut Comparison<'_>, at: &str, old: &Value, new: &Value) {
    match (old.is_null(), new.is_null()) {
        (true, false) if new["required"] == true => return all.fault(at, "is required now"),
        (false, true) => return all.fault(at, "is refused now"),
        _ => {}
    }
    if old["required"] == false && new["required"] == true {
        all.fault(at, "is required now");
    }
    contents(all, at, Side::Sent, old, new);
}

fn answer(all: &mut Comparison<'_>, at: &str, old: &Value, new: &Value) {
    if new.is_null() {
        return all.fault(at, "is not answered any more");
    }
    for (header, _) in entries(&old["headers"]) {
        if new["headers"].get(header).is_none() {
            all.fault(at, format!("lacks the header {header}"));
        }
    }
    contents(all, at, Side::Answered, old, new);
}

fn contents(all: &mut Comparison<'_>, at: &str, side: Side, old: &Value, new: &Value) {
    for (media, content) in entries(&old["content"]) {
        match &new["content"][media] {
            Value::Null => all.fault(at, format!("is not {media} any more")),
            now => all.schemas(at, side, &content["schema"], &now["schema"]),
        }
    }
}

fn resolved<'a>(document: &'a Value, parameters: &'a Value) -> Vec<&'a Value> {
    let target = |value: &'a Value| {
        let reference = value["$ref"].as_str().and_then(|text| document.pointer(text.trim_start_matches('#')));
        reference.unwrap_or(value)
    };
    list(parameters).map(target).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        json!({
            "paths": {
                "/things": {
                    "get": {
                        "security": [],
                        "parameters": [
                            { "$ref": "#/components/parameters/limit" },
                            { "name": "kind", "in": "query", "required": false, "schema": { "enum": ["a", "b"] } },
                        ],
                        "responses": { "200": {
                            "headers": { "ETag": {} },
                            "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Thing" } } },
                        } },
                    },
                    "post": {
                        "x-permission": { "permissions": ["things.manage"], "on": "the tenant" },
                        "requestBody": { "required": false, "content": { "application/json": { "schema": {
                            "type": "object",
                            "additionalProperties": false,
                            "properties": {
                                "name": { "type": ["string", "null"], "maxLength": 10 },
                                "kind": { "enum": ["a", "b"] },
                            },
                        } } } },
                        "responses": { "201": {} },
                    },
                },
            },
            "components": {
                "parameters": { "limit": {
                    "name": "limit", "in": "query", "required": false,
                    "schema": { "type": "integer", "minimum": 1, "maximum": 200 },
                } },
                "schemas": { "Thing": {
                    "type": "object",
                    "required": ["id"],
                    "properties": {
                        "id": { "type": "string" },
                        "free": { "type": "object", "additionalProperties": true },
                        "state": { "enum": ["on", "off"] },
                        "parts": { "type": "array", "items": { "$ref": "#/components/schemas/Thing" } },
                    },
                } },
            },
        })
    }

    /// The breaks of the document in which `pointer` became `value`; null: was removed.
    fn after(pointer: &str, value: &Value) -> Vec<String> {
        let mut new = document();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let key = &key.replace("~1", "/");
        let parent = new.pointer_mut(parent).expect(pointer);
        match parent {
            Value::Object(fields) if value.is_null() => drop(fields.remove(key)),
            Value::Object(fields) => drop(fields.insert(key.clone(), value.clone())),
            Value::Array(items) if value.is_null() => drop(items.remove(key.parse().unwrap())),
            Value::Array(items) => items.push(value.clone()),
            _ => panic!("{pointer}"),
        }
        breaks(&document(), &new)
    }

    const GET: &str = "/paths/~1things/get";
    const POST: &str = "/paths/~1things/post";
    const BODY: &str = "/paths/~1things/post/requestBody/content/application~1json/schema";
    const THING: &str = "/components/schemas/Thing";
    const LIMIT: &str = "/components/parameters/limit";

    #[test]
    fn what_a_client_may_rely_on_must_stay() {
        for (place, pointer, value, told) in [
            ("/paths/~1things", "/get", json!(null), "GET /things: is gone"),
            (GET, "/security", json!(null), "GET /things: needs a credential now"),
            (GET, "/parameters/0", json!(null), "GET /things parameter \"limit\": is gone"),
            (
                GET,
                "/parameters/-",
                json!({ "name": "x", "in": "query", "required": true }),
                "GET /things: requires a new parameter \"x\"",
            ),
            (LIMIT, "/required", json!(true), "GET /things parameter \"limit\": is required now"),
            (LIMIT, "/schema/maximum", json!(100), "GET /things parameter \"limit\": `maximum` is narrower"),
            (LIMIT, "/schema/minimum", json!(2), "GET /things parameter \"limit\": `minimum` is narrower"),
            (LIMIT, "/schema/pattern", json!("x"), "GET /things parameter \"limit\": `pattern` is narrower"),
            (LIMIT, "/schema/type", json!("string"), "GET /things parameter \"limit\": `type` is narrower"),
            (
                GET,
                "/parameters/1/schema/enum/0",
                json!(null),
                "GET /things parameter \"kind\": does not take \"a\" any more",
            ),
            (GET, "/responses/200", json!(null), "GET /things 200: is not answered any more"),
            (GET, "/responses/200/headers/ETag", json!(null), "GET /things 200: lacks the header ETag"),
            (THING, "/properties/state", json!(null), "GET /things 200/state: is gone"),
            (THING, "/required", json!([]), "GET /things 200/id: may be left out now"),
            (THING, "/properties/id/type", json!(["string", "null"]), "GET /things 200/id: `type` is wider"),
            (POST, "/x-permission/permissions/-", json!("x"), "POST /things: needs the permission \"x\" now"),
            (POST, "/requestBody", json!(null), "POST /things body: is refused now"),
            (POST, "/requestBody/required", json!(true), "POST /things body: is required now"),
            (BODY, "/properties/name", json!(null), "POST /things body/name: is gone"),
            (BODY, "/required", json!(["name"]), "POST /things body/name: is required now"),
            (BODY, "/properties/name/type", json!("string"), "POST /things body/name: `type` is narrower"),
            (BODY, "/properties/name/maxLength", json!(9), "POST /things body/name: `maxLength` is narrower"),
            (BODY, "/properties/kind/enum/1", json!(null), "POST /things body/kind: does not take \"b\" any more"),
            (BODY, "/not", json!({}), "POST /things body: `not` has changed"),
        ] {
            assert_eq!(after(&format!("{place}{pointer}"), &value), [told], "{pointer}");
        }
        assert_eq!(after("/paths/~1things", &json!(null)), ["GET /things: is gone", "POST /things: is gone"]);
    }

    #[test]
    fn what_is_added_or_widened_breaks_nothing() {
        assert_eq!(breaks(&document(), &document()), [""; 0]);
        for (place, pointer, value) in [
            ("/paths", "/~1others", json!({ "get": {} })),
            (GET, "/parameters/-", json!({ "name": "x", "in": "query", "required": false })),
            (GET, "/responses/202", json!({})),
            (LIMIT, "/schema/maximum", json!(500)),
            (LIMIT, "/schema/minimum", json!(null)),
            (LIMIT, "/description", json!("More words.")),
            (GET, "/parameters/1/schema/enum/-", json!("c")),
            (THING, "/properties/more", json!({ "type": "string" })),
            (THING, "/properties/state/enum/-", json!("broken")),
            (THING, "/required", json!(["id", "state"])),
            (BODY, "/properties/more", json!({ "type": "string" })),
            (BODY, "/properties/name/maxLength", json!(null)),
            (BODY, "/properties/kind/enum/-", json!("c")),
            (POST, "/x-permission", json!(null)),
        ] {
            assert_eq!(after(&format!("{place}{pointer}"), &value), [""; 0], "{pointer}");
        }
    }
}
