//! The check that ends every case: each event in the journal is in the catalogue, and its payload in its schema.

use std::collections::HashMap;

use courant_api::{Event, TenantId, events};
use courant_store::Store;
use serde_json::Value;

/// Checks the events of all tenants.
pub async fn check(store: &Store) {
    let mut schemas: HashMap<(TenantId, String, u32), Value> = HashMap::new();
    let mut after = 0;
    loop {
        let batch = store.journal_scan(after, 500).await.unwrap();
        for event in &batch.events {
            let key = (event.tenant_id, event.event_type.clone(), event.schema_version);
            if !schemas.contains_key(&key) {
                let schema = schema(store, event).await;
                schemas.insert(key.clone(), schema);
            }
            let validator = jsonschema::draft202012::new(&schemas[&key]).unwrap();
            let payload: Value = serde_json::from_str(event.payload.text()).unwrap();
            if let Err(fault) = validator.validate(&payload) {
                panic!("{} v{}: {payload} is not in its schema: {fault}", event.event_type, event.schema_version);
            }
        }
        if !batch.has_more {
            return;
        }
        after = batch.next;
    }
}

async fn schema(store: &Store, event: &Event) -> Value {
    let (name, version) = (&event.event_type, event.schema_version);
    let (entity_type, schema) = if let Some(core) = events::core_type(name) {
        let found = core.versions.iter().find(|v| v.version == version);
        (core.entity_type.to_owned(), found.map(events::CoreVersion::schema))
    } else {
        let custom = store.event_type_get(event.tenant_id, name.clone()).await.unwrap();
        let found = custom.versions.into_iter().find(|v| v.version == version);
        (custom.entity_type, found.map(|v| v.schema))
    };
    assert_eq!(event.entity_type, entity_type, "{name}");
    schema.unwrap_or_else(|| panic!("{name} has no version {version}"))
}
