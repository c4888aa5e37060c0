//! The routes of version 1, a file a resource.

mod api_keys;
mod bootstrap;
mod deliveries;
mod event_types;
mod events;
mod grants;
mod idempotency;
mod integrations;
mod principals;
mod workspaces;
