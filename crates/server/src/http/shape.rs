//! What a handler's types say about a route: the schemas of its path, query, body and answer.
//!
//! Made from the types alone when the endpoint is made; it never sees a request.

use std::any::TypeId;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::query::QueryShape;

type Describe = fn(&mut SchemaGenerator) -> Schema;

/// The schemas of one handler.
pub(super) struct Shape {
    /// Whether the handler takes requests without a credential.
    pub(super) public: bool,
    pub(super) path: Describe,
    pub(super) query: Describe,
    /// None: the route takes no body.
    pub(super) body: Option<Describe>,
    /// None: the answer has no body.
    pub(super) reply: Option<Describe>,
    pub(super) parameters: QueryShape,
}

impl Shape {
    pub(super) fn of<P, Q, B, R>(public: bool) -> Self
    where
        P: JsonSchema,
        Q: JsonSchema,
        B: JsonSchema + 'static,
        R: JsonSchema + 'static,
    {
        Self {
            public,
            path: |generator| P::json_schema(generator),
            query: |generator| Q::json_schema(generator),
            body: (!is_unit::<B>()).then_some(SchemaGenerator::subschema_for::<B>),
            reply: (!is_unit::<R>()).then_some(SchemaGenerator::subschema_for::<R>),
            parameters: QueryShape::of(&schema_in_full(Q::json_schema)),
        }
    }

    /// The parts of a request in which an unknown field would pass, at any depth: `body/properties/name`.
    pub(super) fn leaks(&self) -> Vec<String> {
        let mut leaks = Vec::new();
        for (part, describe) in [("query", Some(self.query)), ("body", self.body)] {
            if let Some(describe) = describe {
                find_leaks(part, schema_in_full(describe).as_value(), &mut leaks);
            }
        }
        leaks
    }

    /// The names of the path struct's fields.
    pub(super) fn path_fields(&self) -> Vec<String> {
        properties(&schema_in_full(self.path)).map(|(name, _)| name.clone()).collect()
    }
}

fn is_unit<T: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<()>()
}

/// A schema in which nothing is left behind a reference.
fn schema_in_full(describe: impl FnOnce(&mut SchemaGenerator) -> Schema) -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
    describe(&mut settings.into_generator())
}

/// Structs must close themselves with `deny_unknown_fields`; maps have no properties.
fn find_leaks(place: &str, schema: &Value, leaks: &mut Vec<String>) {
    let closed = |key: &str| schema.get(key) == Some(&Value::Bool(false));
    let is_struct = schema.get("properties").is_some_and(Value::is_object);
    if is_struct && !closed("additionalProperties") && !closed("unevaluatedProperties") {
        leaks.push(place.to_owned());
    }
    match schema {
        Value::Object(fields) => fields.iter().for_each(|(k, field)| find_leaks(&format!("{place}/{k}"), field, leaks)),
        Value::Array(items) => items.iter().for_each(|item| find_leaks(place, item, leaks)),
        _ => {}
    }
}

/// The fields of a struct's schema.
pub(super) fn properties(schema: &Schema) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}
