//! Where JSON Schema 2020-12 keeps schemas inside schemas. It must never judge them.

use serde_json::Value;

use crate::pointer;

/// What stands under a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// One schema.
    Schema,
    /// A list of schemas.
    List,
    /// Schemas by name.
    Map,
    /// A value that is no schema.
    Value,
}

/// What stands under this keyword.
pub(super) fn holds(keyword: &str) -> Holds {
    match keyword {
        "additionalProperties"
        | "propertyNames"
        | "unevaluatedProperties"
        | "unevaluatedItems"
        | "items"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contentSchema" => Holds::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::List,
        // `dependencies` may hold lists of names too; those are no schemas, and no code here takes a list for one.
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" | "dependencies" => {
            Holds::Map
        }
        _ => Holds::Value,
    }
}

/// The pointers of the schemas under a keyword that stands at `under`.
pub(super) fn inner(under: &str, keyword: &str, value: &Value) -> impl Iterator<Item = String> {
    let mut pointers = Vec::new();
    match (holds(keyword), value) {
        (Holds::Schema, _) => pointers.push(under.to_owned()),
        (Holds::List, Value::Array(inner)) => {
            pointers.extend((0..inner.len()).map(|i| pointer::join(under, i)));
        }
        (Holds::Map, Value::Object(inner)) => {
            pointers.extend(inner.keys().map(|name| pointer::join(under, name)));
        }
        _ => {}
    }
    pointers.into_iter()
}

/// Calls `see` with a schema and with every schema inside it, each with its pointer.
pub(super) fn visit<'v>(document: &'v Value, see: &mut impl FnMut(&str, &'v Value)) {
    let mut open = vec![String::new()];
    while let Some(at) = open.pop() {
        let Some(schema) = document.pointer(&at) else {
            continue;
        };
        see(&at, schema);
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            open.extend(inner(&pointer::join(&at, keyword), keyword, value));
        }
    }
}

/// How many levels a value has: 1 for a scalar or an empty container.
pub(super) fn depth(value: &Value) -> usize {
    values(value).map(|(level, _)| level).max().unwrap_or(0)
}

/// How many values a value consists of.
pub(super) fn size(value: &Value) -> usize {
    values(value).count()
}

/// A value and everything in it, each with its level.
fn values(value: &Value) -> impl Iterator<Item = (usize, &Value)> {
    let mut open = vec![(1, value)];
    std::iter::from_fn(move || {
        let (level, value) = open.pop()?;
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (level + 1, item))),
            Value::Object(members) => {
                open.extend(members.values().map(|member| (level + 1, member)));
            }
            _ => {}
        }
        Some((level, value))
    })
}
