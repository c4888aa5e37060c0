//! Who may do what, from what somebody holds. It must never look a grant up or decide without one.
//!
//! One rule places everything in the tree: what is held on a workspace [`covers`] that workspace and all below it. It
//! says who holds a role somewhere, where a role's grants act, and, in the mode `policy`, how far a grant reaches.

use courant_api::permission::{Permission, Resource, Scope};
use courant_api::{ApprovalId, TenantId, WorkspaceId};

/// Where something lies in the tree: its workspace and all above it, nearest first. Empty at tenant level.
pub type Path<'a> = &'a [WorkspaceId];

/// Whether what is held on `held_on` (none: the tenant) counts at a place: there, or on something above it.
pub fn covers(held_on: Option<WorkspaceId>, place: Path<'_>) -> bool {
    held_on.is_none_or(|workspace| place.contains(&workspace))
}

/// How far a grant on a workspace reaches: the modes `local` and `policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// That very workspace.
    Exact,
    /// That workspace and all below it.
    Subtree,
}

/// One permission on one resource, as somebody holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What may be done.
    pub permission: Permission,
    /// On what; integrations by name or pattern.
    pub resource: Resource,
    /// Held by a role that counts in this workspace's subtree only; none: everywhere.
    pub within: Option<WorkspaceId>,
}

/// What is asked about.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The resource.
    pub resource: &'a Resource,
    /// Where it lies: a workspace's own path, empty for everything else.
    pub path: Path<'a>,
    /// Whether all below the workspace is asked for, too.
    pub subtree: bool,
}

impl<'a> Target<'a> {
    /// A resource itself.
    pub fn new(resource: &'a Resource, path: Path<'a>) -> Self {
        Self { resource, path, subtree: false }
    }
}

impl Grant {
    /// A grant that a principal holds itself.
    pub fn new(permission: Permission, resource: Resource) -> Self {
        Self { permission, resource, within: None }
    }

    fn names(&self, permission: Permission) -> bool {
        self.permission == Permission::All || self.permission == permission
    }

    fn reaches(&self, reach: Reach, target: Target<'_>) -> bool {
        covers(self.within, target.path)
            && match (&self.resource, target.resource) {
                (Resource::Tenant, _) => true,
                (Resource::Workspace(held), Resource::Workspace(asked)) => match reach {
                    Reach::Exact => held == asked && !target.subtree,
                    Reach::Subtree => held == asked || covers(Some(*held), target.path),
                },
                (Resource::NotificationIntegration(pattern), Resource::NotificationIntegration(name)) => {
                    fits(name, pattern)
                }
                _ => false,
            }
    }
}

/// Whether the grants allow `permission` on the target.
pub fn allows(grants: &[Grant], reach: Reach, permission: Permission, target: Target<'_>) -> bool {
    grants.iter().any(|grant| grant.names(permission) && grant.reaches(reach, target))
}

/// Whether `permission` is held on anything at all: for lists, which then show only the rows that [`allows`] lets
/// through.
pub fn allows_any(grants: &[Grant], permission: Permission) -> bool {
    grants.iter().any(|grant| grant.names(permission))
}

/// Whether whoever hands this grant out must hold it below its workspace as well: where it would reach there.
pub fn hands_out_subtree(grant: &Grant, reach: Reach) -> bool {
    match grant.resource {
        Resource::Tenant => grant.within.is_some(),
        Resource::Workspace(_) => reach == Reach::Subtree,
        Resource::NotificationIntegration(_) => false,
    }
}

/// Whether a name fits a pattern, in which `*` stands for any characters. A narrower pattern fits a wider one: only a
/// `*` can take the place of a `*`.
pub fn fits(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.as_bytes(), pattern.as_bytes());
    let (mut n, mut p) = (0, 0);
    // After a star: where in the pattern to go on, and how much of the name the star has taken.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                star = Some((p, n));
            }
            Some(byte) if *byte == name[n] => (n, p) = (n + 1, p + 1),
            _ => match &mut star {
                Some((after, taken)) => {
                    *taken += 1;
                    (n, p) = (*taken, *after);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// How far a credential goes, whatever its principal holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ceiling {
    /// As far as its principal: API keys.
    None,
    /// To the one decision that the credential is for, which is confined to it before.
    Decision,
    /// Up to this scope; without one, nowhere: tokens.
    Scope(Option<Scope>),
}

impl Ceiling {
    /// The ceiling of a token with these scopes; scopes of others count for nothing.
    pub fn of<'a>(scopes: impl IntoIterator<Item = &'a str>) -> Self {
        let known = |text| Scope::LIST.iter().copied().find(|scope| scope.as_str() == text);
        Self::Scope(scopes.into_iter().filter_map(known).max())
    }

    /// Whether a permission lies below it.
    pub fn admits(self, permission: Permission) -> bool {
        match self {
            Self::None => true,
            Self::Decision => permission == Permission::ApprovalsDecide,
            Self::Scope(scope) => scope.is_some_and(|scope| permission.scope() <= scope),
        }
    }
}

/// The one thing that a token for one decision is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// It does not say.
    Unnamed,
    /// To approve or reject this approval.
    Approval(ApprovalId),
}

/// A question that only an external decision point answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// Whose data.
    pub tenant_id: TenantId,
    /// Who asks to do it.
    pub principal_id: courant_api::PrincipalId,
    /// What.
    pub permission: Permission,
    /// On what.
    pub resource: Resource,
    /// Where a workspace lies: itself and all above it, nearest first.
    pub path: Vec<WorkspaceId>,
}

#[cfg(test)]
mod tests;
