//! Tenants, principals, keys, workspaces, roles and grants.

pub(crate) mod grants;
mod keys;
mod principals;
mod rights;
mod roles;
pub(crate) mod tenants;
pub(crate) mod workspaces;

use courant_api::{PrincipalId, Resource, TenantId, Timestamp, WorkspaceId};
use uuid::Uuid;

use crate::db::Row;
#[cfg(feature = "testing")]
use crate::db::Statement;
use crate::{Error, bound};
use rights::guard_handing_out;

pub use keys::KeyDraft;
pub use rights::{Authority, Decisions, Rights};
pub(crate) use rights::{Unknown, allows_names, guard};

#[cfg(feature = "testing")]
pub(crate) fn statements() -> impl Iterator<Item = &'static Statement> {
    [
        grants::STATEMENTS,
        keys::STATEMENTS,
        principals::STATEMENTS,
        roles::STATEMENTS,
        tenants::STATEMENTS,
        workspaces::STATEMENTS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// What a caller came with, to look again whether it still counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Credential {
    /// The hash of an API key.
    ApiKey([u8; 32]),
}

/// Who makes a request, and what they may do.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Their tenant.
    pub tenant_id: TenantId,
    /// Who.
    pub principal_id: PrincipalId,
    /// What they may do.
    pub rights: Rights,
    /// What they came with.
    pub credential: Credential,
    /// When that ends by itself.
    pub expires_at: Option<Timestamp>,
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

/// The workspace's resource, or the tenant's without one.
pub(crate) fn place(workspace: Option<WorkspaceId>) -> Resource {
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
