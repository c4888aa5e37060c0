//! What the next version of a schema may change: it may add optional fields, and say things differently to people.
//! Whatever is not known to be harmless is a break; this must never try to prove that two keywords mean the same.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::SchemaFault;
use super::keywords::{Holds, holds};
use crate::pointer;

/// Keywords that neither allow nor refuse any payload. `$id` is one of them because references stay in the document.
const FOR_PEOPLE: [&str; 6] = ["title", "description", "examples", "$comment", "$schema", "$id"];
/// Where these occur, a definition may be used to refuse: then adding a field to it could refuse less or more.
const TURNING: [&str; 7] =
    ["not", "if", "oneOf", "contains", "dependentSchemas", "dependencies", "unevaluatedProperties"];

/// What `new` breaks of `old`, both accepted schemas of one event type; nothing if it is a fit next version.
///
/// Every property must stay, with an equal schema or, where objects lie in objects or in arrays, with one that only
/// adds optional fields. `required` and every other keyword must stay as they are.
pub fn incompatibilities(old: &Value, new: &Value) -> Vec<SchemaFault> {
    let mut comparison = Comparison { faults: Vec::new(), definitions_are_fixed: turns(old) || turns(new) };
    comparison.schemas("", old, new);
    comparison.faults
}

fn turns(schema: &Value) -> bool {
    let mut found = false;
    super::keywords::visit(schema, &mut |_, schema| {
        found |= TURNING.iter().any(|keyword| schema.get(keyword).is_some());
    });
    found
}

struct Comparison {
    faults: Vec<SchemaFault>,
    definitions_are_fixed: bool,
}

impl Comparison {
    fn fault(&mut self, pointer: impl Into<String>, message: impl AsRef<str>) {
        self.faults.push(SchemaFault::new(pointer, message));
    }

    fn schemas(&mut self, at: &str, old: &Value, new: &Value) {
        let (Value::Object(old), Value::Object(new)) = (old, new) else {
            if old != new {
                self.fault(at, "must not change");
            }
            return;
        };
        let keywords: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for keyword in keywords {
            self.keyword(&pointer::join(at, keyword), keyword, old, new);
        }
    }

    fn keyword(&mut self, at: &str, keyword: &str, old_schema: &Map<String, Value>, new_schema: &Map<String, Value>) {
        let (old, new) = (old_schema.get(keyword), new_schema.get(keyword));
        let same_in_other_words = match (old, new) {
            (Some(old), Some(new)) => bare_keyword(keyword, old) == bare_keyword(keyword, new),
            _ => false,
        };
        match (keyword, old, new) {
            _ if FOR_PEOPLE.contains(&keyword) || same_in_other_words => {}
            ("properties", Some(Value::Object(old)), Some(Value::Object(new))) => {
                self.properties(at, old, new, old_schema);
            }
            ("properties", None, Some(Value::Object(new))) if takes_objects(old_schema) => {
                self.properties(at, &Map::new(), new, old_schema);
            }
            ("required", old, new) => self.required(at, old, new),
            ("items", Some(old), Some(new)) => self.schemas(at, old, new),
            ("$defs" | "definitions", old, Some(Value::Object(new))) => {
                let nothing = Map::new();
                self.definitions(at, old.and_then(Value::as_object).unwrap_or(&nothing), new);
            }
            (_, Some(_), None) => self.fault(at, "must not be removed"),
            (_, None, Some(_)) => self.fault(at, "must not be added"),
            _ => self.fault(at, "must not change"),
        }
    }

    fn properties(
        &mut self,
        at: &str,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        schema: &Map<String, Value>,
    ) {
        for (name, old) in old {
            let at = pointer::join(at, name);
            match new.get(name) {
                Some(new) => self.schemas(&at, old, new),
                None => self.fault(at, "the field must not be removed"),
            }
        }
        if speaks_of_every_field(schema) {
            for name in new.keys().filter(|name| !old.contains_key(*name)) {
                self.fault(
                    pointer::join(at, name),
                    "must not be added: other keywords already say what unnamed fields are",
                );
            }
        }
    }

    fn required(&mut self, at: &str, old: Option<&Value>, new: Option<&Value>) {
        let names = |required: Option<&Value>| -> BTreeSet<String> {
            let names = required.and_then(Value::as_array).into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (old, new) = (names(old), names(new));
        for name in new.difference(&old) {
            self.fault(at, format!("must not require {name:?}"));
        }
        for name in old.difference(&new) {
            self.fault(at, format!("must still require {name:?}"));
        }
    }

    fn definitions(&mut self, at: &str, old: &Map<String, Value>, new: &Map<String, Value>) {
        for (name, old) in old {
            let at = pointer::join(at, name);
            match new.get(name) {
                Some(new) if self.definitions_are_fixed && bare(old) != bare(new) => {
                    self.fault(at, format!("must not change in a schema that uses one of {}", TURNING.join(", ")));
                }
                Some(new) => self.schemas(&at, old, new),
                None => self.fault(at, "must not be removed"),
            }
        }
    }
}

/// Whether the schema says that it is of objects, so that naming a field narrows nothing else.
fn takes_objects(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => false,
    }
}

/// Whether fields that the schema does not name have a schema already, which a new field could contradict.
fn speaks_of_every_field(schema: &Map<String, Value>) -> bool {
    schema.contains_key("patternProperties")
        || ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|keyword| schema.get(*keyword).is_some_and(Value::is_object))
}

/// A schema without what is only for people, at every level.
fn bare(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else {
        return schema.clone();
    };
    let kept = keywords.iter().filter(|(keyword, _)| !FOR_PEOPLE.contains(&keyword.as_str()));
    kept.map(|(keyword, value)| (keyword.clone(), bare_keyword(keyword, value))).collect()
}

fn bare_keyword(keyword: &str, value: &Value) -> Value {
    match (holds(keyword), value) {
        (Holds::Schema, inner) => bare(inner),
        (Holds::List, Value::Array(inner)) => inner.iter().map(bare).collect(),
        (Holds::Map, Value::Object(inner)) => inner.iter().map(|(name, inner)| (name.clone(), bare(inner))).collect(),
        (_, value) => value.clone(),
    }
}

#[cfg(test)]
mod tests;
