//! The core event types, a file a family: name, entity, one struct a payload version, an example.
//!
//! A type is declared in exactly one place. Its JSON Schema, the reference in `docs/events/` and the check of what
//! the server appends are all made from that declaration. Types and versions are only ever added.

use std::marker::PhantomData;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

pub mod access;
pub mod approvals;
pub mod catalogue;
pub mod consumer;
pub mod deployments;
pub mod journal;
pub mod notify;
pub mod resources;
pub mod tenant;
pub mod work;
pub mod workspace;

/// The payload of some version of some type.
pub trait Payload: Serialize + JsonSchema {
    /// A plausible value, for documentation and tests.
    fn example() -> Self;
}

/// A core event type at its current version, with the payload it takes.
#[derive(Debug)]
pub struct EventType<P> {
    /// `workspace.created`.
    pub name: &'static str,
    /// The entity that events of this type are about.
    pub entity_type: &'static str,
    /// Version of the schema.
    pub version: u32,
    payload: PhantomData<fn(P)>,
}

/// What the catalogue knows of a core type.
#[derive(Debug)]
pub struct CoreType {
    /// `workspace.created`.
    pub name: &'static str,
    /// The entity that events of this type are about.
    pub entity_type: &'static str,
    /// When it is appended, in one sentence.
    pub description: &'static str,
    /// Every version, oldest first.
    pub versions: &'static [CoreVersion],
}

/// One payload version of a core type.
#[derive(Debug)]
pub struct CoreVersion {
    /// 1, 2, …
    pub version: u32,
    schema: fn() -> Value,
    example: fn() -> Value,
}

impl CoreVersion {
    /// JSON Schema 2020-12 of the payload. Unknown properties are allowed; every named one is always present.
    pub fn schema(&self) -> Value {
        (self.schema)()
    }

    /// A payload of this version.
    pub fn example(&self) -> Value {
        (self.example)()
    }
}

impl CoreType {
    /// The version that is appended today.
    pub fn current(&self) -> &'static CoreVersion {
        &self.versions[self.versions.len() - 1]
    }
}

fn schema_of<P: Payload>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<P>().to_value()
}

fn example_of<P: Payload>() -> Value {
    serde_json::to_value(P::example()).unwrap_or_default()
}

/// Declares the types of one family: `CONSTANT = "type.name" on "entity", v1 Payload, "description";`.
macro_rules! event_types {
    ($($constant:ident = $name:literal on $entity:literal, $(v $version:literal $payload:ty),+, $description:literal;)+) => {
        $(event_types!(@constant $constant $name $entity [$($version $payload),+] $description);)+

        /// The types of this family.
        pub(super) static TYPES: &[$crate::events::CoreType] = &[$($crate::events::CoreType {
            name: $name,
            entity_type: $entity,
            description: $description,
            versions: &[$($crate::events::CoreVersion {
                version: $version,
                schema: $crate::events::schema_of::<$payload>,
                example: $crate::events::example_of::<$payload>,
            }),+],
        }),+];
    };
    (@constant $constant:ident $name:literal $entity:literal [$version:literal $payload:ty] $description:literal) => {
        #[doc = $description]
        pub const $constant: $crate::events::EventType<$payload> = $crate::events::EventType::new($name, $entity, $version);
    };
    (@constant $constant:ident $name:literal $entity:literal [$old:literal $older:ty, $($rest:tt)+] $description:literal) => {
        event_types!(@constant $constant $name $entity [$($rest)+] $description);
    };
}
pub(crate) use event_types;

impl<P> EventType<P> {
    const fn new(name: &'static str, entity_type: &'static str, version: u32) -> Self {
        Self { name, entity_type, version, payload: PhantomData }
    }
}

/// Every core type, by family.
pub fn core_types() -> impl Iterator<Item = &'static CoreType> {
    [
        tenant::TYPES,
        access::TYPES,
        workspace::TYPES,
        work::TYPES,
        approvals::TYPES,
        resources::TYPES,
        notify::TYPES,
        catalogue::TYPES,
        consumer::TYPES,
        deployments::TYPES,
        journal::TYPES,
    ]
    .into_iter()
    .flatten()
}

/// The core type of this name.
pub fn core_type(name: &str) -> Option<&'static CoreType> {
    core_types().find(|t| t.name == name)
}

/// First segments that custom types may not use: those of the core types, and those that the platform's own
/// entities are going to have.
pub const RESERVED_SEGMENTS: &[&str] = &[
    "tenant",
    "principal",
    "api_key",
    "grant",
    "identity_binding",
    "workspace",
    "role",
    "task",
    "claim",
    "run",
    "approval",
    "artifact",
    "goal",
    "rule",
    "project",
    "skill",
    "skill_invocation",
    "stack",
    "deployment",
    "preview",
    "run_command",
    "pull_request",
    "dependent_trigger",
    "consumer",
    "channel_link",
    "notification_integration",
    "notification_delivery",
    "event_type",
    "event_journal",
    "explore",
];

/// Whether a custom type of this name would intrude on the core catalogue.
pub fn is_reserved(name: &str) -> bool {
    name.split('.').next().is_some_and(|segment| RESERVED_SEGMENTS.contains(&segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_type_is_named_described_and_unique() {
        let mut names = std::collections::HashSet::new();
        for t in core_types() {
            assert!(crate::filter::is_type_name(t.name), "{}", t.name);
            assert!(is_reserved(t.name), "{}: add its first segment to RESERVED_SEGMENTS", t.name);
            assert!(t.description.ends_with('.'), "{}", t.name);
            assert!(names.insert(t.name), "{} is declared twice", t.name);
            let versions: Vec<u32> = t.versions.iter().map(|v| v.version).collect();
            assert_eq!(versions, (1..=versions.len().try_into().unwrap()).collect::<Vec<u32>>(), "{}", t.name);
        }
    }

    #[test]
    fn every_example_is_valid_and_names_nothing_beyond_its_schema() {
        for t in core_types() {
            for version in t.versions {
                let (schema, example) = (version.schema(), version.example());
                let validator = jsonschema::draft202012::new(&schema).unwrap();
                assert!(validator.is_valid(&example), "{} v{}", t.name, version.version);
                let named = schema["properties"].as_object().unwrap();
                let required = schema["required"].as_array().unwrap();
                for field in example.as_object().unwrap().keys() {
                    assert!(named.contains_key(field), "{}: {field}", t.name);
                    assert!(required.iter().any(|r| r == field), "{}: {field} must always be present", t.name);
                }
                assert_ne!(schema.get("additionalProperties"), Some(&Value::Bool(false)), "{}", t.name);
            }
        }
    }
}
