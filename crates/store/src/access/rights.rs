//! What somebody may do: the grants they hold, or what an external decision point has said of them.
//!
//! A unit of work cannot wait for somebody else's service. Where the answer is not known yet, it ends with
//! [`Error::Undecided`] and changes nothing; whoever began it has the questions answered and begins again.

use std::fmt::Debug;
use std::sync::Arc;

use courant_api::access::{AuthzAnswer, AuthzChecked};
use courant_api::{Permission, PrincipalId, Resource, TenantId, WorkspaceId};
use courant_core::access::{Ceiling, Grant, Question, Reach, Target, allows, allows_any, hands_out_subtree};

use super::{place, workspaces};
use crate::change::{Change, Changed};
use crate::db::Tx;
use crate::{Error, Store};

/// What an external decision point has said lately.
pub trait Decisions: Debug + Send + Sync {
    /// Its answer, while that may still be used.
    fn decided(&self, question: &Question) -> Option<bool>;
}

/// Who decides what a principal may do.
#[derive(Clone, Debug)]
pub enum Authority {
    /// The grants that they hold.
    Grants(Reach),
    /// An external decision point, which alone decides.
    DecisionPoint(Arc<dyn Decisions>),
}

/// What one principal may do.
#[derive(Clone, Debug)]
pub struct Rights {
    tenant_id: TenantId,
    principal_id: PrincipalId,
    grants: Arc<[Grant]>,
    ceiling: Ceiling,
    authority: Authority,
}

impl Rights {
    /// The rights of a principal with these grants.
    pub fn new(authority: &Authority, tenant_id: TenantId, principal_id: PrincipalId, grants: Vec<Grant>) -> Self {
        Self { tenant_id, principal_id, grants: grants.into(), ceiling: Ceiling::None, authority: authority.clone() }
    }

    /// No rights at all: those of the server itself, which asks nobody.
    pub fn none() -> Self {
        let nobody = (TenantId(uuid::Uuid::nil()), PrincipalId(uuid::Uuid::nil()));
        Self::new(&Authority::Grants(Reach::Exact), nobody.0, nobody.1, Vec::new())
    }

    /// The same under a credential's ceiling.
    pub fn below(self, ceiling: Ceiling) -> Self {
        Self { ceiling, ..self }
    }

    /// Whose tenant's.
    pub fn tenant_id(&self) -> TenantId {
        self.tenant_id
    }

    /// Whose.
    pub fn principal_id(&self) -> PrincipalId {
        self.principal_id
    }

    /// The grants.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// Whether the credential reaches this permission, whatever its principal holds.
    pub fn reaches(&self, permission: Permission) -> bool {
        self.ceiling.admits(permission)
    }

    /// Why what is needed is not had: it is not held, or the credential does not reach it.
    pub fn denied(&self, permission: Permission, resource: Resource) -> Error {
        if self.reaches(permission) { Error::Denied { permission, resource } } else { Error::BeyondScope(permission) }
    }

    /// Whether `permission` may be held on something: none when only an external decision point could say.
    pub fn on_anything(&self, permission: Permission) -> Option<bool> {
        match &self.authority {
            _ if !self.ceiling.admits(permission) => Some(false),
            Authority::Grants(_) => Some(allows_any(&self.grants, permission)),
            Authority::DecisionPoint(_) => None,
        }
    }

    /// Whether `permission` is held on the target. Every check ends here.
    pub fn allows(&self, permission: Permission, target: Target<'_>) -> Result<bool, Error> {
        if !self.ceiling.admits(permission) {
            return Ok(false);
        }
        match &self.authority {
            Authority::Grants(reach) => Ok(allows(&self.grants, *reach, permission, target)),
            Authority::DecisionPoint(point) => {
                let question = Question {
                    tenant_id: self.tenant_id,
                    principal_id: self.principal_id,
                    permission,
                    resource: target.resource.clone(),
                    path: target.path.to_vec(),
                };
                point.decided(&question).ok_or_else(|| Error::Undecided(vec![question]))
            }
        }
    }

    /// The same about something that lies in no workspace.
    pub fn allows_on(&self, permission: Permission, resource: &Resource) -> Result<bool, Error> {
        self.allows(permission, Target::new(resource, &[]))
    }

    /// The answer, if it is the same wherever the resource lies in the tree.
    fn without_place(&self, permission: Permission, resource: &Resource) -> Option<Result<bool, Error>> {
        let Resource::Workspace(id) = resource else { return Some(self.allows_on(permission, resource)) };
        let Authority::Grants(reach) = &self.authority else { return None };
        // A longer path only ever allows more, and only to those who hold something that counts in a subtree.
        let counts_below = |g: &Grant| g.within.is_some() || *reach == Reach::Subtree;
        match self.allows(permission, Target::new(resource, &[*id])) {
            Ok(false) if self.ceiling.admits(permission) && self.grants.iter().any(counts_below) => None,
            settled => Some(settled),
        }
    }

    /// Whether `permission` is held on `resource`, wherever that lies now.
    pub(crate) async fn allows_here(
        &self,
        tx: &mut Tx,
        permission: Permission,
        resource: &Resource,
    ) -> Result<bool, Error> {
        match self.without_place(permission, resource) {
            Some(settled) => settled,
            None => self.allows(permission, Target::new(resource, &path(tx, self.tenant_id, resource).await?)),
        }
    }
}

async fn path(tx: &mut Tx, tenant: TenantId, resource: &Resource) -> Result<Vec<WorkspaceId>, Error> {
    match resource {
        Resource::Workspace(id) => workspaces::path(tx, tenant, *id).await,
        _ => Ok(Vec::new()),
    }
}

/// Refuses what the actor may not do.
pub(crate) async fn guard(
    tx: &mut Tx,
    change: &Change,
    permission: Permission,
    resource: &Resource,
) -> Result<(), Error> {
    if change.rights.allows_here(tx, permission, resource).await? {
        return Ok(());
    }
    Err(change.rights.denied(permission, resource.clone()))
}

/// Refuses to hand out what the actor does not hold. The server itself, and a command on the database, hold everything.
pub(super) async fn guard_handing_out(tx: &mut Tx, change: &Change, grant: &Grant) -> Result<(), Error> {
    if change.actor_id.is_none() {
        return Ok(());
    }
    let rights = &change.rights;
    let resource = match (&grant.resource, grant.within) {
        (Resource::Tenant, Some(workspace)) => place(Some(workspace)),
        (resource, _) => resource.clone(),
    };
    let reach = if let Authority::Grants(reach) = rights.authority { reach } else { Reach::Exact };
    let path = path(tx, change.tenant_id, &resource).await?;
    let target = Target { resource: &resource, path: &path, subtree: hands_out_subtree(grant, reach) };
    if rights.allows(grant.permission, target)? {
        return Ok(());
    }
    Err(rights.denied(grant.permission, resource))
}

/// Of each of these integrations, whether the rights reach it.
pub(crate) fn allows_names(
    rights: &Rights,
    permission: Permission,
    names: impl Iterator<Item = Result<String, Error>>,
) -> Result<Vec<bool>, Error> {
    let mut unknown = Unknown::default();
    let answers = names
        .map(|name| unknown.note(rights.allows_on(permission, &Resource::NotificationIntegration(name?))))
        .collect::<Result<_, _>>()?;
    unknown.settled()?;
    Ok(answers)
}

/// Gathers what is undecided, so that it is asked all at once.
#[derive(Debug, Default)]
pub(crate) struct Unknown(Vec<Question>);

impl Unknown {
    /// The answer; a refusal for now where there is none.
    pub(crate) fn note(&mut self, answer: Result<bool, Error>) -> Result<bool, Error> {
        match answer {
            Err(Error::Undecided(questions)) => {
                self.0.extend(questions);
                Ok(false)
            }
            known => known,
        }
    }

    /// That everything was known.
    pub(crate) fn settled(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::Undecided(self.0)) }
    }
}

impl Store {
    /// Whether these rights allow `permission` on `resource`.
    pub async fn allows(&self, rights: &Rights, permission: Permission, resource: &Resource) -> Result<bool, Error> {
        if let Some(settled) = rights.without_place(permission, resource) {
            return settled;
        }
        self.db
            .read((rights.clone(), resource.clone()), move |tx, (rights, resource)| {
                Box::pin(async move { rights.allows_here(tx, permission, resource).await })
            })
            .await
    }

    /// Answers questions about what the actor may do. It changes nothing; only under an idempotency key is the answer kept.
    pub async fn rights_check(
        &self,
        change: Change,
        questions: Vec<(Permission, Resource)>,
    ) -> Result<Changed<AuthzChecked>, Error> {
        if change.idempotency.is_none() {
            let input = (change.rights, questions);
            let answers = self.db.read(input, |tx, (rights, questions)| Box::pin(answers(tx, rights, questions)));
            return answers.await.map(Changed::Now);
        }
        self.db
            .change(change, questions, |tx, (change, questions)| Box::pin(answers(tx, &change.rights, questions)))
            .await
    }
}

/// The answers, in the order of the questions. On a workspace that the tenant does not have nobody may do anything.
async fn answers(tx: &mut Tx, rights: &Rights, questions: &[(Permission, Resource)]) -> Result<AuthzChecked, Error> {
    let (mut items, mut unknown) = (Vec::with_capacity(questions.len()), Unknown::default());
    for (permission, resource) in questions {
        let path = path(tx, rights.tenant_id, resource).await?;
        let exists = !matches!(resource, Resource::Workspace(_)) || !path.is_empty();
        let answer = unknown.note(rights.allows(*permission, Target::new(resource, &path)))?;
        items.push(AuthzAnswer { permission: *permission, resource: resource.clone(), allowed: exists && answer });
    }
    unknown.settled()?;
    Ok(AuthzChecked { items })
}
