use proptest::prelude::*;
use serde_json::json;

use super::super::PayloadValidator;
use super::*;

fn breaks(old: &Value, new: &Value) -> Vec<String> {
    incompatibilities(old, new).into_iter().map(|fault| fault.pointer).collect()
}

#[track_caller]
fn assert_fits(old: &Value, new: &Value) {
    assert_eq!(incompatibilities(old, new), [], "{old} -> {new}");
}

fn parcel() -> Value {
    json!({
        "type": "object",
        "title": "Parcel",
        "properties": {
            "id": { "type": "string", "description": "Its id." },
            "from": { "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] },
            "stops": { "type": "array", "items": { "type": "object", "properties": { "at": { "type": "string" } } } },
            "weight": { "$ref": "#/$defs/weight" },
        },
        "required": ["id", "from"],
        "additionalProperties": false,
        "$defs": { "weight": { "type": "object", "properties": { "grams": { "type": "integer" } } } },
    })
}

/// The parcel after `change` at a pointer: a value sets it, none removes it.
fn changed(pointer: &str, value: Option<Value>) -> Value {
    let mut schema = parcel();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = schema.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => parent.insert(name.to_owned(), value),
        None => parent.remove(name),
    };
    schema
}

#[test]
fn the_same_schema_fits() {
    assert_fits(&parcel(), &parcel());
}

#[test]
fn optional_fields_may_be_added_at_every_level() {
    for pointer in [
        "/properties/colour",
        "/properties/from/properties/street",
        "/properties/stops/items/properties/until",
        "/$defs/weight/properties/pounds",
    ] {
        assert_fits(&parcel(), &changed(pointer, Some(json!({ "type": "string" }))));
    }
    assert_fits(&parcel(), &changed("/$defs/colour", Some(json!({ "type": "string" }))));
    assert_fits(
        &json!({ "type": "object" }),
        &json!({ "type": "object", "properties": { "a": {} }, "$defs": { "b": {} } }),
    );
}

#[test]
fn what_is_for_people_may_change() {
    for (pointer, value) in [
        ("/title", None),
        ("/description", Some(json!("A parcel."))),
        ("/examples", Some(json!([{}]))),
        ("/$comment", Some(json!("…"))),
        ("/$id", Some(json!("https://example.com/v2"))),
        ("/properties/id/description", Some(json!("The id."))),
        ("/properties/stops/items/title", Some(json!("Stop"))),
    ] {
        assert_fits(&parcel(), &changed(pointer, value));
    }
}

#[test]
fn the_order_of_required_names_may_change() {
    assert_fits(&parcel(), &changed("/required", Some(json!(["from", "id"]))));
}

#[test]
fn every_other_change_is_named() {
    for (pointer, value, at) in [
        ("/properties/id", None, "/properties/id"),
        ("/properties", None, "/properties"),
        ("/properties/id/type", Some(json!("integer")), "/properties/id/type"),
        ("/properties/id/type", Some(json!(["string", "null"])), "/properties/id/type"),
        ("/properties/id/type", None, "/properties/id/type"),
        ("/properties/id/maxLength", Some(json!(5)), "/properties/id/maxLength"),
        ("/properties/id/default", Some(json!("x")), "/properties/id/default"),
        ("/properties/id", Some(json!(true)), "/properties/id"),
        ("/properties/from/properties/city", None, "/properties/from/properties/city"),
        ("/properties/from/required", Some(json!(["city", "street"])), "/properties/from/required"),
        ("/properties/from/additionalProperties", Some(json!(false)), "/properties/from/additionalProperties"),
        ("/properties/stops/items", Some(json!(false)), "/properties/stops/items"),
        ("/properties/weight/$ref", Some(json!("#")), "/properties/weight/$ref"),
        ("/required", Some(json!(["id", "from", "stops"])), "/required"),
        ("/required", Some(json!(["id"])), "/required"),
        ("/required", None, "/required"),
        ("/additionalProperties", None, "/additionalProperties"),
        ("/additionalProperties", Some(json!({})), "/additionalProperties"),
        ("/minProperties", Some(json!(1)), "/minProperties"),
        ("/allOf", Some(json!([{}])), "/allOf"),
        ("/x-unknown", Some(json!(1)), "/x-unknown"),
        ("/$defs/weight", None, "/$defs/weight"),
        ("/$defs", None, "/$defs"),
        ("/$defs/weight/properties/grams/type", Some(json!("number")), "/$defs/weight/properties/grams/type"),
    ] {
        let found = breaks(&parcel(), &changed(pointer, value.clone()));
        assert!(!found.is_empty() && found.iter().all(|found| found == at), "{pointer} {value:?}: {found:?}");
    }
}

#[test]
fn a_field_that_is_called_like_an_annotation_is_a_field() {
    let old = json!({ "type": "object", "properties": { "title": { "type": "string" } } });
    let new = json!({ "type": "object", "properties": { "title": { "type": "integer" } } });
    assert_eq!(breaks(&old, &new), ["/properties/title/type"]);
    let old = json!({ "type": "object", "properties": { "a": { "const": { "title": 1 } } } });
    let new = json!({ "type": "object", "properties": { "a": { "const": { "title": 2 } } } });
    assert_eq!(breaks(&old, &new), ["/properties/a/const"]);
}

#[test]
fn words_for_people_may_change_inside_keywords_that_are_fixed() {
    let of = |title: &str| json!({ "type": "object", "anyOf": [{ "title": title, "properties": { "a": { "title": title } } }] });
    assert_fits(&of("one"), &of("two"));
    let old = json!({ "type": "object", "anyOf": [{ "properties": { "a": {} } }] });
    let new = json!({ "type": "object", "anyOf": [{ "properties": { "a": {}, "b": {} } }] });
    assert_eq!(breaks(&old, &new), ["/anyOf"]);
}

#[test]
fn a_field_cannot_be_added_where_unnamed_fields_have_a_schema() {
    for keyword in ["additionalProperties", "unevaluatedProperties"] {
        let old = json!({ "type": "object", "properties": {}, keyword: { "type": "string" } });
        let new =
            json!({ "type": "object", "properties": { "n": { "type": "integer" } }, keyword: { "type": "string" } });
        assert_eq!(breaks(&old, &new), ["/properties/n"], "{keyword}");
    }
    let old = json!({ "type": "object", "patternProperties": { "^n": { "type": "string" } } });
    let mut new = old.clone();
    new["properties"] = json!({ "n": { "type": "integer" } });
    assert_eq!(breaks(&old, &new), ["/properties/n"]);
}

#[test]
fn fields_cannot_be_named_where_anything_was_allowed() {
    let old = json!({ "type": "object", "properties": { "a": {} } });
    let new = json!({ "type": "object", "properties": { "a": { "properties": { "b": { "type": "string" } } } } });
    assert_eq!(breaks(&old, &new), ["/properties/a/properties"]);
}

#[test]
fn definitions_are_fixed_where_one_may_be_used_to_refuse() {
    let of = |definition: Value| json!({ "type": "object", "properties": { "a": { "not": { "$ref": "#/$defs/x" } } }, "$defs": { "x": definition } });
    let old = of(json!({ "type": "object", "properties": { "k": {} } }));
    assert_eq!(breaks(&old, &of(json!({ "type": "object", "properties": { "k": {}, "l": {} } }))), ["/$defs/x"]);
    assert_fits(&old, &of(json!({ "type": "object", "title": "X", "properties": { "k": {} } })));
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!({ "type": "string" }),
        json!({ "type": "integer" }),
        json!({ "enum": [1, "a"] }),
    ]);
    leaf.prop_recursive(3, 12, 3, |inner| {
        (prop::collection::hash_map("[a-c]", inner, 0..3), prop::sample::subsequence(vec!["a", "b", "c"], 0..2))
            .prop_map(
                |(properties, required)| json!({ "type": "object", "properties": properties, "required": required }),
            )
    })
}

fn payloads() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![json!("a"), json!(1), json!(null)]);
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop::collection::hash_map("[a-c]", inner, 0..3).prop_map(|members| members.into_iter().collect::<Value>())
    })
}

/// The schema with a field `z` in some of its objects.
fn extended(schema: &Value, choices: &mut impl Iterator<Item = bool>) -> Value {
    let mut schema = schema.clone();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut() {
            *property = extended(property, choices);
        }
        if choices.next() == Some(true) {
            properties.insert("z".to_owned(), json!({ "type": "boolean" }));
        }
    }
    schema
}

proptest! {
    #[test]
    fn adding_optional_fields_anywhere_fits(schema in schemas(), choices in prop::collection::vec(any::<bool>(), 12)) {
        let new = extended(&schema, &mut choices.into_iter());
        prop_assert_eq!(incompatibilities(&schema, &new), []);
    }

    /// What the rule is for: a reader of the old version can read every payload of the new one.
    #[test]
    fn readers_of_the_old_version_accept_payloads_of_a_fitting_new_one(
        old in schemas(),
        new in schemas(),
        choices in prop::collection::vec(any::<bool>(), 12),
        payload in payloads(),
    ) {
        for new in [extended(&old, &mut choices.into_iter()), new] {
            if incompatibilities(&old, &new).is_empty() {
                let accepts = |schema: &Value| PayloadValidator::compile(schema).unwrap().check(&payload).is_empty();
                prop_assert!(!accepts(&new) || accepts(&old), "{} -> {}", old, new);
            }
        }
    }
}
