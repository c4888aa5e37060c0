//! The routes of version 1, a file a resource.

mod api_keys;
mod approvals;
mod bootstrap;
mod consumers;
mod deliveries;
mod deployments;
mod event_types;
mod events;
mod grants;
mod idempotency;
mod identity_bindings;
mod integrations;
mod operations;
mod principals;
mod progress;
mod tasks;
mod workspaces;
