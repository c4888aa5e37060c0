//! Custom event types: which schemas are accepted, what a next version may change, and whether a payload fits.
//!
//! A schema comes from a tenant, so it is never trusted: it must never make the server fetch a document, recurse
//! without end or match a pattern in more than linear time.

use jsonschema::{PatternOptions, ValidationOptions, Validator, draft202012};
use serde::Serialize;
use serde_json::Value;

mod compatible;
mod cost;
mod keywords;

pub use compatible::incompatibilities;

use crate::pointer;

/// Largest schema, in bytes of compact JSON.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Deepest nesting of a schema, the outermost level included.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// Most faults that are told of one schema or payload.
pub const MAX_FAULTS: usize = 20;
/// Longest message of a fault, in characters.
const MAX_MESSAGE: usize = 300;
/// Largest compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;
/// Most looks at places of a payload for which every fault is told.
const MAX_WORK: usize = 50_000;
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// One thing that is wrong with a schema or a payload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SchemaFault {
    /// Where, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What, for people.
    pub message: String,
}

impl SchemaFault {
    fn new(pointer: impl Into<String>, message: impl AsRef<str>) -> Self {
        Self { pointer: pointer.into(), message: message.as_ref().chars().take(MAX_MESSAGE).collect() }
    }

    /// Never repeats the value that is wrong: it may be long or private.
    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        Self::new(error.instance_path().as_str(), error.masked().to_string())
    }
}

/// Whether a schema can be registered: JSON Schema 2020-12 of an object, complete in itself, of bounded size.
pub fn check_schema(schema: &Value) -> Result<(), Vec<SchemaFault>> {
    if keywords::depth(schema) > MAX_SCHEMA_DEPTH {
        return Err(vec![SchemaFault::new("", format!("nested deeper than {MAX_SCHEMA_DEPTH} levels"))]);
    }
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(vec![SchemaFault::new("", format!("longer than {MAX_SCHEMA_BYTES} bytes"))]);
    }
    let mut faults = Vec::new();
    if !only_objects(schema) {
        faults.push(SchemaFault::new("/type", r#"must be "object": payloads are objects"#));
    }
    keywords::visit(schema, &mut |pointer, schema| {
        own_rules(pointer, schema, &mut faults);
    });
    faults.extend(
        draft202012::meta::validator().iter_errors(schema).take(MAX_FAULTS).map(|error| SchemaFault::of(&error)),
    );
    faults.truncate(MAX_FAULTS);
    if !faults.is_empty() {
        return Err(faults);
    }
    compile(schema).map(|_| ())
}

fn only_objects(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.len() == 1 && names[0] == "object",
        _ => false,
    }
}

/// What is asked of a schema, and of each one inside it, beyond the metaschema.
fn own_rules(at: &str, schema: &Value, faults: &mut Vec<SchemaFault>) {
    for keyword in ["$ref", "$dynamicRef"] {
        if schema.get(keyword).and_then(Value::as_str).is_some_and(|target| !target.starts_with('#')) {
            faults.push(SchemaFault::new(pointer::join(at, keyword), "must not refer to another document: only #…"));
        }
    }
    if schema.get("$schema").is_some_and(|dialect| dialect != DIALECT && dialect != &format!("{DIALECT}#")) {
        faults.push(SchemaFault::new(pointer::join(at, "$schema"), format!("must be {DIALECT}")));
    }
    if !at.is_empty() && schema.get("$id").is_some() {
        faults.push(SchemaFault::new(pointer::join(at, "$id"), "is allowed at the root only"));
    }
}

/// The compiled schema of a payload.
#[derive(Debug)]
pub struct PayloadValidator {
    schema: Validator,
    /// How often one place of a payload may be looked at.
    visits: usize,
}

impl PayloadValidator {
    /// Compiles a schema that is in the catalogue.
    pub fn compile(schema: &Value) -> Result<Self, Vec<SchemaFault>> {
        compile(schema)
    }

    /// What is wrong with a payload: at most [`MAX_FAULTS`] faults, none if it fits. Of a large payload under an
    /// intricate schema it is only the first one. The payload must be no deeper than
    /// [`MAX_PAYLOAD_DEPTH`](courant_api::event::MAX_PAYLOAD_DEPTH): the bounds of a schema are reckoned for that.
    pub fn check(&self, payload: &Value) -> Vec<SchemaFault> {
        // Most payloads fit, and finding that out is quicker than looking for faults.
        if self.schema.is_valid(payload) {
            return Vec::new();
        }
        // Every fault is made before the first is handed out.
        if keywords::size(payload).saturating_mul(self.visits) > MAX_WORK {
            return self.schema.validate(payload).err().iter().map(SchemaFault::of).collect();
        }
        self.schema.iter_errors(payload).take(MAX_FAULTS).map(|error| SchemaFault::of(&error)).collect()
    }
}

fn compile(schema: &Value) -> Result<PayloadValidator, Vec<SchemaFault>> {
    // First: what it refuses could exhaust the compiler too.
    let visits = cost::visits(schema)?;
    let schema = options().build(schema).map_err(|error| vec![SchemaFault::of(&error)])?;
    Ok(PayloadValidator { schema, visits })
}

/// Offline, and with patterns that match in linear time: no look-around, no back-references.
fn options() -> ValidationOptions<'static> {
    draft202012::options()
        .offline()
        .with_pattern_options(PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES))
}

#[cfg(test)]
mod tests;
