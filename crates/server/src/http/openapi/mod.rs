//! The OpenAPI 3.1 document, made from the list of endpoints and nothing else.
//!
//! The same list gives the same text, byte for byte: it is committed and compared. It must never say something that
//! the router does not do.

mod operation;
mod schemas;

use courant_api::ErrorBody;
use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use schemas::Schemas;

/// The document of these endpoints, in their order.
pub fn document<A>(endpoints: &[Endpoint<A>]) -> Value {
    let mut schemas = Schemas::new();
    schemas.answers.subschema_for::<ErrorBody>();
    let mut paths = Map::new();
    let mut tags: Vec<&str> = Vec::new();
    for Endpoint { route, .. } in endpoints {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_ascii_lowercase()] = operation::describe(route, &mut schemas);
        if !tags.contains(&route.tag) {
            tags.push(route.tag);
        }
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Courant",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Event journal and notification service.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "jsonSchemaDialect": "https://spec.openapis.org/oas/3.1/dialect/base",
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }],
        "tags": tags.iter().map(|tag| json!({ "name": tag })).collect::<Vec<_>>(),
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key (cak_…) or a JWT of a configured issuer.",
                },
            },
            "parameters": operation::shared_parameters(),
            "headers": operation::shared_headers(),
        },
    });
    schemas.finish(document)
}
