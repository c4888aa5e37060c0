//! The contract: what Courant and the outside say to each other.
//!
//! Wire types, identifiers, the event catalogue, the filter grammar, the text of a cursor, CloudEvents and the
//! error codes. Values only: nothing here opens a socket, reads a clock or knows a database.

#![warn(missing_docs)]

pub mod access;
pub mod catalog;
pub mod cloudevent;
pub mod cursor;
pub mod error;
pub mod event;
pub mod events;
pub mod filter;
pub mod ids;
pub mod notify;
pub mod operations;
pub mod page;
pub mod permission;
pub mod time;

pub use cursor::{Cursor, CursorError};
pub use error::{ErrorBody, ErrorCode};
pub use event::{Event, EventAppend};
pub use ids::{
    ApiKeyId, ApprovalId, DeliveryId, EventId, GrantId, IdentityBindingId, IntegrationId, PrincipalId,
    RoleAssignmentId, RoleId, TenantId, WorkspaceId,
};
pub use page::Page;
pub use permission::{Permission, Resource, Scope};
pub use time::Timestamp;
