//! The contract: what Courant and the outside say to each other.
//!
//! Wire types, identifiers, the event catalogue, the filter grammar, the text of a cursor, CloudEvents and the
//! error codes. Values only: nothing here opens a socket, reads a clock or knows a database.

#![warn(missing_docs)]

pub mod access;
pub mod announced;
pub mod approvals;
pub mod catalog;
pub mod cloudevent;
pub mod cursor;
pub mod deployments;
pub mod error;
pub mod event;
pub mod events;
pub mod filter;
pub mod ids;
pub mod notify;
pub mod operations;
pub mod page;
mod patch;
pub mod permission;
pub mod resources;
pub mod time;
pub mod work;

pub use cursor::{Cursor, CursorError};
pub use error::{ErrorBody, ErrorCode};
pub use event::{Event, EventAppend};
pub use ids::{
    ApiKeyId, ApprovalId, ArtifactId, ClaimId, CommentId, DeliveryId, DeploymentId, DeploymentRunId, EventId, GoalId,
    GrantId, IdentityBindingId, IntegrationId, PrincipalId, ProjectId, RoleAssignmentId, RoleId, RuleId, RunId,
    SkillInvocationId, StackId, TaskId, TenantId, VerificationId, WorkspaceId,
};
pub use page::Page;
pub use permission::{Permission, Resource, Scope};
pub use time::Timestamp;
