//! Whose workspace it is: where in the tree an entity lies, and so who reads its events.

use courant_api::WorkspaceId;

/// What is known of where an entity lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lies {
    /// The workspace that it names itself.
    pub own: Option<WorkspaceId>,
    /// The workspace of what it belongs to: its task or its stack.
    pub owner: Option<WorkspaceId>,
}

impl Lies {
    /// An entity at the level of the tenant.
    pub const NOWHERE: Self = Self { own: None, owner: None };

    /// An entity with a workspace of its own, or at the level of the tenant.
    pub fn own(own: impl Into<Option<WorkspaceId>>) -> Self {
        Self { own: own.into(), owner: None }
    }

    /// An entity that lies where its task or its stack lies.
    pub fn with(owner: impl Into<Option<WorkspaceId>>) -> Self {
        Self { own: None, owner: owner.into() }
    }

    /// The same, belonging to something that lies there.
    pub fn or_with(self, owner: impl Into<Option<WorkspaceId>>) -> Self {
        Self { owner: owner.into(), ..self }
    }
}

/// The workspace of an entity of this type; none: it lies at the level of the tenant.
pub fn workspace_of(entity_type: &str, lies: Lies) -> Option<WorkspaceId> {
    match entity_type {
        "task" | "goal" | "rule" | "role" | "project" | "stack" | "workspace" => lies.own,
        "approval" | "artifact" => lies.own.or(lies.owner),
        "run" | "claim" | "skill_invocation" | "deployment" => lies.owner,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use courant_api::events::core_types;
    use uuid::Uuid;

    use super::*;

    const OWN: WorkspaceId = WorkspaceId(Uuid::from_u128(1));
    const OWNER: WorkspaceId = WorkspaceId(Uuid::from_u128(2));

    #[test]
    fn every_entity_of_the_catalogue_lies_where_the_rule_says() {
        let mut entities: Vec<_> = core_types().map(|t| t.entity_type).collect();
        entities.sort_unstable();
        entities.dedup();
        for entity in entities {
            let (own, owner) = match entity {
                "task" | "goal" | "rule" | "role" | "project" | "stack" | "workspace" => (Some(OWN), None),
                "approval" | "artifact" => (Some(OWN), Some(OWNER)),
                "run" | "claim" | "skill_invocation" | "deployment" => (None, Some(OWNER)),
                "tenant"
                | "principal"
                | "api_key"
                | "grant"
                | "identity_binding"
                | "consumer"
                | "channel_link"
                | "notification_integration"
                | "notification_delivery"
                | "event_type" => (None, None),
                other => panic!("{other}: say where it lies"),
            };
            let both = workspace_of(entity, Lies::own(OWN).or_with(OWNER));
            assert_eq!(both, own.or(owner), "{entity}");
            assert_eq!(workspace_of(entity, Lies::own(OWN)), own, "{entity}");
            assert_eq!(workspace_of(entity, Lies::with(OWNER)), owner, "{entity}");
            assert_eq!(workspace_of(entity, Lies::NOWHERE), None, "{entity}");
        }
    }
}
