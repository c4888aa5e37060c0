//! Artifacts: what work has made. Courant keeps where it is, never its content.

use courant_api::events::resources::{ARTIFACT_CREATED, ArtifactCreated};
use courant_api::resources::{ArtifactCreate, ArtifactView};
use courant_api::{Permission, TaskId, TenantId, WorkspaceId};
use courant_core::place::Lies;
use uuid::Uuid;

use super::{Kind, Resource, ResourceQuery};
use crate::Error;
use crate::change::{Change, fresh_id, told};
use crate::db::{NewEvent, Row, Tx, Value, params, statements};
use crate::journal::texts::subtree;
use crate::work::{runs, tasks};

macro_rules! columns {
    () => {
        "a.id, a.kind, a.name, a.task_id, a.run_id, a.workspace_id, a.uri, a.supersedes_artifact_id, a.created_by, \
         a.created_at, t.workspace_id FROM artifact a LEFT JOIN task t ON t.tenant_id = a.tenant_id AND t.id = a.task_id"
    };
}

statements! { "artifacts":
    GET = concat!("SELECT ", columns!(), " WHERE a.tenant_id = $1 AND a.id = $2");
    SAVE = "INSERT INTO artifact (tenant_id, id, workspace_id, kind, name, task_id, run_id, uri, supersedes_artifact_id,
            created_by, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    LIST = concat!(
        "WITH RECURSIVE ", subtree!("$5"), " SELECT ", columns!(), " WHERE a.tenant_id = $1 AND a.id < $2
            AND (NOT $4 OR coalesce(a.workspace_id, t.workspace_id) IN (SELECT s.id FROM subtree s))
            AND (NOT $6 OR a.task_id = $7)
        ORDER BY a.id DESC LIMIT $3");
}

/// One artifact, and where it lies.
pub(in crate::work) async fn get(
    tx: &mut Tx,
    tenant: TenantId,
    id: courant_api::ArtifactId,
) -> Result<(ArtifactView, Option<WorkspaceId>), Error> {
    super::find(tx, tenant, id.uuid()).await
}

impl Resource for ArtifactView {
    type New = ArtifactCreate;
    const KIND: &'static Kind = &Kind {
        name: "artifact",
        read: Permission::ArtifactsRead,
        create: Permission::ArtifactsCreate,
        get: &GET,
        save: &SAVE,
        list: &LIST,
        unique: "an artifact with this id exists",
    };

    async fn make(tx: &mut Tx, change: &Change, new: &ArtifactCreate) -> Result<(Self, Lies), Error> {
        let tenant = change.tenant_id;
        let of_run = match new.run_id {
            Some(run) => Some(runs::get(tx, tenant, run).await?.task_id),
            None => None,
        };
        let task_id = new.task_id.or(of_run);
        let owner = match task_id {
            Some(task) => tasks::get(tx, tenant, task).await?.workspace_id,
            None => None,
        };
        if of_run.is_some() && of_run != task_id {
            return Err(Error::Invalid { field: "/runId".into(), message: "is no run of the task".into() });
        }
        if let Some(replaced) = new.supersedes_artifact_id {
            super::exists::<Self>(tx, tenant, replaced).await?;
        }
        let artifact = Self {
            id: fresh_id().into(),
            r#type: new.r#type.clone(),
            name: new.name.clone(),
            task_id,
            run_id: new.run_id,
            workspace_id: new.workspace_id,
            uri: new.uri.clone(),
            supersedes_artifact_id: new.supersedes_artifact_id,
            created_by: change.actor()?,
            created_at: change.now,
            version: 1,
        };
        Ok((artifact, Lies::own(new.workspace_id).or_with(owner)))
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn workspace(&self) -> Option<WorkspaceId> {
        self.workspace_id
    }

    fn row(&self, tenant: TenantId) -> Result<Vec<Value>, Error> {
        let row = params![
            tenant,
            self.id,
            self.workspace_id,
            &self.r#type,
            &self.name,
            self.task_id,
            self.run_id,
            self.uri.as_deref(),
            self.supersedes_artifact_id,
            self.created_by,
            self.created_at
        ];
        Ok(row.to_vec())
    }

    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.get(0)?,
            r#type: row.get(1)?,
            name: row.get(2)?,
            task_id: row.get(3)?,
            run_id: row.get(4)?,
            workspace_id: row.get(5)?,
            uri: row.get(6)?,
            supersedes_artifact_id: row.get(7)?,
            created_by: row.get(8)?,
            created_at: row.get(9)?,
            version: 1,
        })
    }

    fn owner(row: &Row) -> Result<Option<WorkspaceId>, Error> {
        row.get(10)
    }

    fn filter(query: &ResourceQuery) -> Vec<Value> {
        vec![query.task_id.is_some().into(), query.task_id.map_or(Uuid::nil(), TaskId::uuid).into()]
    }

    fn created(&self, change: &Change, lies: Lies) -> Result<NewEvent, Error> {
        let payload = ArtifactCreated {
            r#type: told(&self.r#type),
            name: told(&self.name),
            task_id: self.task_id,
            run_id: self.run_id,
            uri: self.uri.as_deref().map(told),
            supersedes_artifact_id: self.supersedes_artifact_id,
        };
        change.event(&ARTIFACT_CREATED, self.id, lies, &payload)
    }
}
