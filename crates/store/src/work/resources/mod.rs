//! Plain versioned resources: created, read, listed, changed and moved by one slice. A kind of them says what its columns are,
//! what a change makes of it and what is told.

mod artifacts;
mod goals;
mod projects;
mod rules;

use std::future::Future;

use courant_api::{Permission, TaskId, TenantId, WorkspaceId};
use courant_core::place::{Lies, workspace_of};
use uuid::Uuid;

use crate::access::{before, guard, place, workspaces};
use crate::change::{Change, Changed, Replayable};
use crate::db::{NewEvent, Row, Statement, Tx, Value, params};
use crate::{Error, Page, PageKey, Store};

pub(super) use artifacts::get as artifact;
pub use projects::ProjectEdit;
pub use rules::RuleEdit;

/// The statements of every kind.
#[cfg(feature = "testing")]
pub(super) const STATEMENTS: [&[&Statement]; 4] =
    [artifacts::STATEMENTS, goals::STATEMENTS, projects::STATEMENTS, rules::STATEMENTS];

/// What the slice has to know of a kind before it has one.
#[derive(Debug)]
pub struct Kind {
    /// The entity that its events are about, as people name it too: `goal`.
    pub name: &'static str,
    /// Who may read them.
    pub read: Permission,
    /// Who may create them.
    pub create: Permission,
    /// One by tenant (`$1`) and id (`$2`).
    get: &'static Statement,
    /// As [`Resource::row`] has it, new or changed.
    save: &'static Statement,
    /// Those of a tenant (`$1`) before an id (`$2`), at most `$3`; in the subtree of `$5` if `$4`; and what
    /// [`Resource::filter`] gives.
    list: &'static Statement,
    /// What it means that one like it exists.
    unique: &'static str,
}

/// Which resources a list has.
#[derive(Clone, Debug, Default)]
pub struct ResourceQuery {
    /// Only those of this workspace and all below it.
    pub workspace_id: Option<WorkspaceId>,
    /// Only those in one of these states; empty: in any.
    pub statuses: Vec<String>,
    /// Only those of this task.
    pub task_id: Option<TaskId>,
}

/// A resource of some kind.
pub trait Resource: Replayable + Clone + PartialEq + Send + Sync + 'static {
    /// What one is made of.
    type New: Send + Sync + 'static;
    /// Its kind.
    const KIND: &'static Kind;

    /// The first version. What it names, besides its own workspace, must exist.
    fn make(tx: &mut Tx, change: &Change, new: &Self::New) -> impl Future<Output = Result<(Self, Lies), Error>> + Send;
    /// Its id.
    fn id(&self) -> Uuid;
    /// The workspace that it names itself.
    fn workspace(&self) -> Option<WorkspaceId>;
    /// Its columns for `Kind::save`.
    fn row(&self, tenant: TenantId) -> Result<Vec<Value>, Error>;
    /// What a row holds.
    fn read(row: &Row) -> Result<Self, Error>;
    /// The workspace of what the one in this row belongs to.
    fn owner(_: &Row) -> Result<Option<WorkspaceId>, Error> {
        Ok(None)
    }
    /// The parameters of a list beyond the fifth.
    fn filter(query: &ResourceQuery) -> Vec<Value> {
        vec![(!query.statuses.is_empty()).into(), query.statuses.clone().into()]
    }
    /// What is told of a new one.
    fn created(&self, change: &Change, lies: Lies) -> Result<NewEvent, Error>;
}

/// A resource that changes.
pub trait Editable: Resource {
    /// What may be made of it.
    type Edit: Send + Sync + 'static;
    /// Who may change it.
    const MANAGE: Permission;
    /// One by tenant (`$1`) and id (`$2`), locked, as `Kind::get` has it.
    const LOCK: &'static Statement;

    /// Makes that of it.
    fn edit(&mut self, edit: &Self::Edit) -> Result<(), Error>;
    /// Its version.
    fn version(&mut self) -> &mut i64;
    /// What is told of it afterwards.
    fn edited(&self, change: &Change, edit: &Self::Edit, lies: Lies) -> Result<NewEvent, Error>;
}

/// One resource, and where it lies.
async fn find<R: Resource>(tx: &mut Tx, tenant: TenantId, id: Uuid) -> Result<(R, Option<WorkspaceId>), Error> {
    let row = tx.query_opt(R::KIND.get, params![tenant, id]).await?.ok_or(Error::NotFound(R::KIND.name))?;
    let resource = R::read(&row)?;
    let lies = Lies::own(resource.workspace()).or_with(R::owner(&row)?);
    Ok((resource, workspace_of(R::KIND.name, lies)))
}

/// That a resource of this kind has this id.
pub(super) async fn exists<R: Resource>(tx: &mut Tx, tenant: TenantId, id: impl Into<Uuid>) -> Result<(), Error> {
    find::<R>(tx, tenant, id.into()).await.map(|_| ())
}

async fn save<R: Resource>(tx: &mut Tx, change: &Change, resource: &R) -> Result<(), Error> {
    let saved = tx.execute(R::KIND.save, &resource.row(change.tenant_id)?).await;
    saved.map(|_| ()).map_err(|error| error.unique_means(R::KIND.unique))
}

async fn create<R: Resource>(tx: &mut Tx, change: &Change, new: &R::New) -> Result<R, Error> {
    let (resource, lies) = R::make(tx, change, new).await?;
    if let Some(workspace) = resource.workspace() {
        workspaces::exists(tx, change.tenant_id, workspace).await?;
    }
    guard(tx, change, R::KIND.create, &place(workspace_of(R::KIND.name, lies))).await?;
    save(tx, change, &resource).await?;
    tx.append(resource.created(change, lies)?);
    Ok(resource)
}

async fn update<R: Editable>(tx: &mut Tx, change: &Change, id: Uuid, edit: &R::Edit) -> Result<R, Error> {
    let row = tx.query_opt(R::LOCK, params![change.tenant_id, id]).await?.ok_or(Error::NotFound(R::KIND.name))?;
    let was = R::read(&row)?;
    guard(tx, change, R::MANAGE, &place(was.workspace())).await?;
    let mut new = was.clone();
    change.check_version(*new.version())?;
    new.edit(edit)?;
    if new == was {
        return Ok(new);
    }
    if new.workspace() != was.workspace() {
        if let Some(workspace) = new.workspace() {
            workspaces::exists(tx, change.tenant_id, workspace).await?;
        }
        guard(tx, change, R::MANAGE, &place(new.workspace())).await?;
    }
    *new.version() += 1;
    save(tx, change, &new).await?;
    tx.append(new.edited(change, edit, Lies::own(new.workspace()))?);
    change.tell_left(tx, R::KIND.name, id, was.workspace(), new.workspace())?;
    Ok(new)
}

impl Store {
    /// Creates a resource; needs its kind's permission where it is to lie.
    pub async fn resource_create<R: Resource>(&self, change: Change, new: R::New) -> Result<Changed<R>, Error> {
        self.db.change(change, new, |tx, (change, new)| Box::pin(create::<R>(tx, change, new))).await
    }

    /// One resource, and where it lies, for the right to read it.
    pub async fn resource_get<R: Resource>(
        &self,
        tenant: TenantId,
        id: impl Into<Uuid>,
    ) -> Result<(R, Option<WorkspaceId>), Error> {
        self.db.read((tenant, id.into()), |tx, (tenant, id)| Box::pin(find::<R>(tx, *tenant, *id))).await
    }

    /// Resources of a kind, newest first.
    pub async fn resource_list<R: Resource>(
        &self,
        tenant: TenantId,
        query: ResourceQuery,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<R>, Error> {
        self.db
            .read((tenant, query, key, limit), |tx, (tenant, query, key, limit)| {
                Box::pin(async move {
                    let mut row = params![
                        *tenant,
                        before(*key),
                        *limit + 1,
                        query.workspace_id.is_some(),
                        query.workspace_id.map_or(Uuid::nil(), WorkspaceId::uuid)
                    ]
                    .to_vec();
                    row.extend(R::filter(query));
                    Page::cut(&tx.query(R::KIND.list, &row).await?, *limit, R::read, R::id)
                })
            })
            .await
    }

    /// Changes or moves a resource; needs its kind's permission where it lies and, when it moves, where it goes. A change
    /// that changes nothing tells nothing.
    pub async fn resource_update<R: Editable>(
        &self,
        change: Change,
        id: impl Into<Uuid>,
        edit: R::Edit,
    ) -> Result<Changed<R>, Error> {
        let input = (id.into(), edit);
        self.db.change(change, input, |tx, (change, (id, edit))| Box::pin(update::<R>(tx, change, *id, edit))).await
    }
}
