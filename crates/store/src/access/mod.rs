//! Tenants, principals, keys, workspaces and grants.

pub(crate) mod grants;
mod keys;
mod principals;
pub(crate) mod tenants;
pub(crate) mod workspaces;

use courant_api::{Permission, PrincipalId, Resource, TenantId, Timestamp, WorkspaceId};
use courant_core::access::{Grant, allows};
use std::sync::Arc;
use uuid::Uuid;

use crate::change::Change;
use crate::db::Row;
#[cfg(feature = "testing")]
use crate::db::Statement;
use crate::{Error, bound};

pub use keys::KeyDraft;

#[cfg(feature = "testing")]
pub(crate) fn statements() -> impl Iterator<Item = &'static Statement> {
    [grants::STATEMENTS, keys::STATEMENTS, principals::STATEMENTS, tenants::STATEMENTS, workspaces::STATEMENTS]
        .into_iter()
        .flatten()
        .copied()
}

/// Who makes a request, and what they may do.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Their tenant.
    pub tenant_id: TenantId,
    /// Who.
    pub principal_id: PrincipalId,
    /// Their grants.
    pub grants: Arc<[Grant]>,
    /// The hash of the key that they came with, to look again whether it still counts.
    pub key_hash: [u8; 32],
    /// When that key ends by itself.
    pub expires_at: Option<Timestamp>,
}

impl Caller {
    /// Whether they hold `permission` on `resource`.
    pub fn may(&self, permission: Permission, resource: &Resource) -> bool {
        allows(&self.grants, permission, resource)
    }
}

/// Where a list goes on: before this id, newest first.
pub type PageKey = Option<Uuid>;

/// Some rows of a list, newest first.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where the next page begins, if rows are left.
    pub next: PageKey,
}

impl<T> Page<T> {
    /// A page from up to `limit + 1` rows.
    pub(crate) fn cut(
        rows: &[Row],
        limit: i64,
        read: impl Fn(&Row) -> Result<T, Error>,
        id: impl Fn(&T) -> Uuid,
    ) -> Result<Self, Error> {
        let items = rows.iter().take(bound(limit)).map(read).collect::<Result<Vec<_>, _>>()?;
        let next = if rows.len() > items.len() { items.last().map(id) } else { None };
        Ok(Self { items, next })
    }
}

/// The id below which a page begins.
fn before(key: PageKey) -> Uuid {
    key.unwrap_or(Uuid::max())
}

/// Refuses what the actor may not do to a row of their tenant.
fn guard(change: &Change, permission: Permission, resource: &Resource) -> Result<(), Error> {
    if allows(&change.grants, permission, resource) { Ok(()) } else { Err(Error::Denied) }
}

/// Refuses to hand out what the actor does not hold. The server itself, and a command on the database, hold everything.
fn hands_out(change: &Change, grant: &Grant) -> Result<(), Error> {
    if change.actor_id.is_none() { Ok(()) } else { guard(change, grant.permission, &grant.resource) }
}

/// The workspace's resource, or the tenant's without one.
fn place(workspace: Option<WorkspaceId>) -> Resource {
    workspace.map_or(Resource::Tenant, Resource::Workspace)
}

/// Reads a text column into one of the contract's closed sets.
fn parsed<T: serde::de::DeserializeOwned>(text: String, what: &str) -> Result<T, Error> {
    serde_json::from_value(serde_json::Value::String(text)).map_err(|_| Error::Corrupt(what.to_owned()))
}

/// The text of a value of one of the contract's closed sets.
fn text_of<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => Ok(text),
        _ => Err(Error::Corrupt("not a text".into())),
    }
}
