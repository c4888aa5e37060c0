//! Typed identifiers: UUIDs that cannot be taken for one another.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// The plain UUID.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )+};
}

ids! {
    /// A tenant, which the notification routes call an org.
    TenantId,
    /// Somebody or something that acts: a human, a service or an agent.
    PrincipalId,
    /// A node of a tenant's workspace tree.
    WorkspaceId,
    /// An event of the journal; given by its producer or made by the server.
    EventId,
    /// A grant of one permission on one resource to one principal or role.
    GrantId,
    /// A role: grants with a name, for those it is assigned to.
    RoleId,
    /// The assignment of a role to one principal, on the tenant or a workspace.
    RoleAssignmentId,
    /// What binds a login to a principal.
    IdentityBindingId,
    /// An API key (its record, never its secret).
    ApiKeyId,
    /// A notification integration: where notifications of a tenant go.
    IntegrationId,
    /// One notification on its way to one integration.
    DeliveryId,
    /// A piece of work.
    TaskId,
    /// The hold of one principal on a task, for a time.
    ClaimId,
    /// One attempt at a claimed task.
    RunId,
    /// One round of checks on a task.
    VerificationId,
    /// A comment on a task.
    CommentId,
    /// A decision that somebody has to take.
    ApprovalId,
    /// Something that work has made.
    ArtifactId,
    /// What work is for.
    GoalId,
    /// A rule by which work is made.
    RuleId,
    /// A set of work.
    ProjectId,
    /// The use of a skill by a task.
    SkillInvocationId,
    /// Something that is deployed.
    StackId,
    /// One deployment of a stack.
    DeploymentId,
    /// A run of a deployment.
    DeploymentRunId,
}
