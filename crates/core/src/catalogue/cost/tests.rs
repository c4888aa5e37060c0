use serde_json::{Map, json};

use super::*;

fn refused(schema: &Value) -> (String, String) {
    let mut faults = visits(schema).unwrap_err();
    assert_eq!(faults.len(), 1);
    let fault = faults.remove(0);
    (fault.pointer, fault.message)
}

/// Definitions `d0` to `d<length>`, each applying `times` the next, in what holds `wrap`.
fn chain(length: usize, times: usize, wrap: impl Fn(Vec<Value>) -> Value) -> Value {
    let mut definitions = Map::new();
    for i in 0..length {
        let next = json!({ "$ref": format!("#/$defs/d{}", i + 1) });
        definitions.insert(format!("d{i}"), wrap(vec![next; times]));
    }
    definitions.insert(format!("d{length}"), json!({}));
    json!({ "type": "object", "$ref": "#/$defs/d0", "$defs": definitions })
}

#[test]
fn fields_side_by_side_do_not_add_up() {
    let fields: Map<String, Value> = (0..1500).map(|i| (format!("f{i}"), json!({ "type": "string" }))).collect();
    assert_eq!(visits(&json!({ "type": "object", "properties": fields })).unwrap(), 1);
}

#[test]
fn alternatives_for_one_place_add_up() {
    // The place itself, three alternatives, and what two of them apply one level below.
    let schema = json!({ "anyOf": [{}, { "items": {} }, { "items": {}, "contains": {} }] });
    assert_eq!(visits(&schema).unwrap(), 4);
    let below = json!({ "anyOf": [{ "items": { "not": {} } }, { "items": {}, "contains": { "not": {} } }] });
    assert_eq!(visits(&below).unwrap(), 5);
}

#[test]
fn a_tree_may_refer_to_itself_as_deep_as_payloads_go() {
    let tree = json!({
        "$ref": "#/$defs/node",
        "$defs": { "node": {
            "properties": { "left": { "$ref": "#/$defs/node" }, "right": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/node" }] } },
            "additionalProperties": false,
        } },
    });
    assert!(visits(&tree).unwrap() < 10);
}

#[test]
fn doubling_at_every_reference_is_refused() {
    assert!(visits(&chain(7, 2, |next| json!({ "allOf": next }))).is_ok());
    let (pointer, message) = refused(&chain(20, 2, |next| json!({ "allOf": next })));
    assert_eq!(pointer, "");
    assert!(message.contains("multiply"), "{message}");
}

#[test]
fn doubling_at_every_level_of_the_payload_is_refused() {
    for twice in [
        json!({ "properties": { "a": { "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] } } }),
        json!({ "items": { "$ref": "#" }, "contains": { "$ref": "#" } }),
        json!({ "patternProperties": { "a": { "$dynamicRef": "#again" }, "b": { "$ref": "#again" } }, "$dynamicAnchor": "again" }),
    ] {
        assert!(refused(&twice).1.contains("multiply"), "{twice}");
    }
}

#[test]
fn what_decides_leftovers_is_counted_more_than_once() {
    let nested = |depth: usize| {
        (0..depth).fold(
            json!({ "properties": { "a": {} } }),
            |inner, _| json!({ "allOf": [inner], "unevaluatedProperties": false }),
        )
    };
    assert!(visits(&nested(3)).is_ok());
    assert!(visits(&nested(5)).is_err());
    let again = json!({ "allOf": [{ "properties": { "a": { "$ref": "#" } } }], "unevaluatedProperties": false });
    assert!(visits(&again).is_err());
    assert!(visits(&json!({ "properties": { "a": { "$ref": "#" } }, "unevaluatedProperties": false })).is_ok());
}

#[test]
fn long_chains_are_refused_even_where_nothing_doubles() {
    assert!(visits(&chain(400, 1, |next| json!({ "allOf": next }))).is_err());
    assert!(visits(&chain(100, 1, |next| json!({ "allOf": next }))).is_ok());
    // Five steps at each of 64 levels are as many as there may be.
    let again = |steps: usize| {
        let mut schema = json!({ "items": { "$ref": "#" } });
        for _ in 0..steps {
            schema = json!({ "not": schema });
        }
        schema
    };
    assert!(visits(&again(3)).is_ok());
    assert!(visits(&again(4)).is_err());
}

#[test]
fn a_circle_without_a_step_into_the_payload_is_named() {
    for (schema, pointer) in [
        (json!({ "$ref": "#" }), ""),
        (json!({ "allOf": [{ "$ref": "#" }] }), ""),
        (
            json!({ "properties": { "a": { "$ref": "#/$defs/x" } }, "$defs": { "x": { "not": { "$ref": "#/$defs/y" } }, "y": { "$ref": "#/$defs/x" } } }),
            "/$defs/x",
        ),
    ] {
        let (at, message) = refused(&schema);
        assert!(message.starts_with("refers to itself"), "{message}");
        assert!(at.starts_with(pointer), "{at}");
    }
}

#[test]
fn a_reference_that_leads_nowhere_is_named() {
    for reference in ["#/$defs/none", "#none", "#%zz", "#/$defs/a/1", "elsewhere"] {
        let schema = json!({ "$defs": { "a": {} }, "properties": { "x": { "$ref": reference } } });
        assert_eq!(
            refused(&schema),
            ("/properties/x/$ref".into(), "leads to nothing in this schema".into()),
            "{reference}"
        );
    }
}

#[test]
fn references_are_followed_through_escapes_and_anchors_and_beside_the_keywords() {
    for reference in ["#/$defs/a~1%25b%20c", "#here", "#/examples/0", "#"] {
        let schema = json!({
            "$defs": { "a/%b c": { "$anchor": "here", "not": {} } },
            "properties": { "x": { "$ref": reference } },
            "examples": [{ "not": {} }],
        });
        assert!(visits(&schema).is_ok(), "{reference}");
    }
    // What is not where schemas are kept counts all the same.
    let hidden = json!({ "properties": { "x": { "$ref": "#/examples/0" } }, "examples": [{ "$ref": "#/examples/0" }] });
    assert_eq!(refused(&hidden).0, "/examples/0");
}
