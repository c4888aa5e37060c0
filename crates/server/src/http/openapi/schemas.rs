//! The schemas of the document: one name for one schema.
//!
//! What is sent and what is answered follow different contracts (a field with a default may be left out of a request
//! and is always in an answer), so each has its generator. A type that both use and that differs gets the suffix
//! `Input` where it is sent.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

const PLACE: &str = "#/components/schemas/";
/// Marks references of requests until it is known which of them need a name of their own.
const INPUT_PLACE: &str = "#/components/inputs/";

pub(super) struct Schemas {
    pub(super) inputs: SchemaGenerator,
    pub(super) answers: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let at = |path: &'static str| {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = path.into();
                settings.meta_schema = None;
            })
        };
        Self {
            inputs: at("/components/inputs").for_deserialize().into_generator(),
            answers: at("/components/schemas").for_serialize().into_generator(),
        }
    }

    /// Puts the schemas into the document and makes every reference point to them.
    pub(super) fn finish(mut self, mut document: Value) -> Value {
        let inputs = self.inputs.take_definitions(true);
        let answers = self.answers.take_definitions(true);
        let mut names: BTreeMap<String, String> = inputs.keys().map(|name| (name.clone(), name.clone())).collect();
        // A type that differs makes the types that hold it differ too, so this is repeated until nothing changes.
        loop {
            let renamed = |name: &str| names.get(name).is_some_and(|new| new != name);
            let differs: Vec<_> = inputs
                .iter()
                .filter(|(name, _)| !renamed(name))
                .filter(|(name, schema)| {
                    answers.get(*name).is_some_and(|answer| *answer != pointed((*schema).clone(), &names))
                })
                .map(|(name, _)| name.clone())
                .collect();
            if differs.is_empty() {
                break;
            }
            for name in differs {
                let mut new = format!("{name}Input");
                while inputs.contains_key(&new) || answers.contains_key(&new) {
                    new.push('_');
                }
                names.insert(name, new);
            }
        }
        let inputs = inputs.into_iter().map(|(name, schema)| {
            let new = names.get(&name).cloned().unwrap_or(name);
            (new, pointed(schema, &names))
        });
        let all: BTreeMap<_, _> = inputs.chain(answers).collect();
        document = pointed(document, &names);
        document["components"]["schemas"] = Value::Object(all.into_iter().collect::<Map<_, _>>());
        document
    }
}

/// A value whose references to inputs point to where these end up.
fn pointed(mut value: Value, names: &BTreeMap<String, String>) -> Value {
    point(&mut value, names);
    value
}

fn point(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let target = field.as_str().filter(|_| key == "$ref").and_then(|text| text.strip_prefix(INPUT_PLACE));
                match target {
                    Some(name) => {
                        let name = names.get(name).map_or(name, String::as_str);
                        *field = Value::String(format!("{PLACE}{name}"));
                    }
                    None => point(field, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| point(item, names)),
        _ => {}
    }
}
