//! `workspace.*`

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::{Payload, event_types};
use crate::WorkspaceId;

/// A workspace after a change.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceChange {
    /// Its name.
    pub name: String,
    /// Its parent; null at the top.
    pub parent_id: Option<WorkspaceId>,
    /// Its parent before a move; null otherwise.
    pub previous_parent_id: Option<WorkspaceId>,
    /// Its version after the change.
    pub version: i64,
}

impl Payload for WorkspaceChange {
    fn example() -> Self {
        Self { name: "payments".into(), parent_id: None, previous_parent_id: None, version: 1 }
    }
}

/// Something moved out of a workspace; told where it left, so that readers of the old place see it go.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityLeft {
    /// Kind of what left.
    pub left_entity_type: String,
    /// What left.
    pub left_entity_id: String,
    /// Where it went; null for the top.
    pub to_workspace_id: Option<WorkspaceId>,
}

impl Payload for EntityLeft {
    fn example() -> Self {
        Self {
            left_entity_type: "workspace".into(),
            left_entity_id: Uuid::nil().to_string(),
            to_workspace_id: Some(WorkspaceId(Uuid::nil())),
        }
    }
}

event_types! {
    WORKSPACE_CREATED = "workspace.created" on "workspace", v 1 WorkspaceChange, "A workspace was created.";
    WORKSPACE_UPDATED = "workspace.updated" on "workspace", v 1 WorkspaceChange, "A workspace was renamed.";
    WORKSPACE_MOVED = "workspace.moved" on "workspace", v 1 WorkspaceChange, "A workspace got another parent.";
    WORKSPACE_ARCHIVED = "workspace.archived" on "workspace", v 1 WorkspaceChange, "A workspace was archived.";
    WORKSPACE_ENTITY_LEFT = "workspace.entity_left" on "workspace", v 1 EntityLeft, "Something moved out of this workspace.";
}
