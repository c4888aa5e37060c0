//! Tenants, principals, keys, workspaces, roles and grants.

mod bindings;
pub(crate) mod grants;
mod keys;
pub(crate) mod principals;
mod rights;
pub(crate) mod roles;
pub(crate) mod tenants;
pub(crate) mod workspaces;

use std::sync::Arc;

use courant_api::{PrincipalId, Resource, TenantId, Timestamp, WorkspaceId};
use courant_core::access::{Ceiling, Purpose};
use sha2::{Digest as _, Sha256};
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
        bindings::STATEMENTS,
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Credential {
    /// The hash of an API key.
    ApiKey([u8; 32]),
    /// A token that was verified.
    Token(Arc<Token>),
    /// The hash of a token for one decision.
    DecisionToken([u8; 32]),
}

/// What a verified token says of its bearer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Who says it.
    pub issuer: String,
    /// Of whom, by the issuer's own name.
    pub subject: String,
    /// Until when it counts.
    pub expires_at: Timestamp,
    /// How far it goes.
    pub ceiling: Ceiling,
    /// The one thing that it is for, if it is for one.
    pub purpose: Option<Purpose>,
    /// The channel through which its bearer acts.
    pub channel: Option<String>,
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
    /// The one thing that it is for, if it is for one.
    pub purpose: Option<Purpose>,
    /// The channel through which they act.
    pub channel: Option<String>,
}

impl Caller {
    /// Whether their credential has not ended by itself.
    pub fn is_good(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|at| now < at)
    }

    /// What their requests are counted under: one value for one credential.
    pub fn throttle_key(&self) -> [u8; 32] {
        match &self.credential {
            Credential::ApiKey(hash) | Credential::DecisionToken(hash) => *hash,
            // One login is one credential, however many tokens it asks its issuer for.
            Credential::Token(token) => {
                let digest = Sha256::new().chain_update(&token.issuer).chain_update([0]).chain_update(&token.subject);
                digest.finalize().into()
            }
        }
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
pub(crate) fn before(key: PageKey) -> Uuid {
    key.unwrap_or(Uuid::max())
}

/// The workspace's resource, or the tenant's without one.
pub(crate) fn place(workspace: Option<WorkspaceId>) -> Resource {
    workspace.map_or(Resource::Tenant, Resource::Workspace)
}

/// Reads a text column into one of the contract's closed sets.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(text: String, what: &str) -> Result<T, Error> {
    serde_json::from_value(serde_json::Value::String(text)).map_err(|_| Error::Corrupt(what.to_owned()))
}

/// The text of a value of one of the contract's closed sets.
fn text_of<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => Ok(text),
        _ => Err(Error::Corrupt("not a text".into())),
    }
}
