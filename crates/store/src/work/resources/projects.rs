//! Projects: sets of work.

use courant_api::events::resources::{PROJECT_ARCHIVED, PROJECT_CREATED, PROJECT_UPDATED, ProjectChange};
use courant_api::resources::{ProjectCreate, ProjectPatch, ProjectStatus, ProjectView};
use courant_api::{Permission, TenantId, WorkspaceId};
use courant_core::lifecycle::{self, ProjectWish};
use courant_core::place::Lies;
use uuid::Uuid;

use super::{Editable, Kind, Resource};
use crate::Error;
use crate::access::parsed;
use crate::change::{Change, fresh_id, told};
use crate::db::{NewEvent, Row, Statement, Tx, Value, params, statements};
use crate::journal::texts::subtree;

macro_rules! columns {
    () => {
        "p.id, p.workspace_id, p.key, p.name, p.status, p.version, p.created_at"
    };
}

statements! { "projects":
    GET = concat!("SELECT ", columns!(), " FROM project p WHERE p.tenant_id = $1 AND p.id = $2");
    LOCK = concat!("SELECT ", columns!(), " FROM project p WHERE p.tenant_id = $1 AND p.id = $2 {for update}");
    SAVE = "INSERT INTO project (tenant_id, id, workspace_id, key, name, status, version, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (id) DO UPDATE SET workspace_id = excluded.workspace_id, name = excluded.name,
            status = excluded.status, version = excluded.version";
    LIST = concat!(
        "WITH RECURSIVE ", subtree!("$5"), " SELECT ", columns!(), " FROM project p WHERE p.tenant_id = $1 AND p.id < $2
            AND (NOT $4 OR p.workspace_id IN (SELECT s.id FROM subtree s))
            AND (NOT $6 OR p.status IN {texts $7})
        ORDER BY p.id DESC LIMIT $3");
}

/// What may be made of a project.
#[derive(Clone, Debug)]
pub enum ProjectEdit {
    /// It is changed or moved.
    Patch(ProjectPatch),
    /// It is over.
    Archive,
}

fn told_of(project: &ProjectView) -> ProjectChange {
    ProjectChange { key: project.key.clone(), name: told(&project.name), version: project.version }
}

impl Resource for ProjectView {
    type New = ProjectCreate;
    const KIND: &'static Kind = &Kind {
        name: "project",
        read: Permission::ProjectsRead,
        create: Permission::ProjectsManage,
        get: &GET,
        save: &SAVE,
        list: &LIST,
        unique: "a project with this key exists",
    };

    async fn make(_: &mut Tx, change: &Change, new: &ProjectCreate) -> Result<(Self, Lies), Error> {
        let project = Self {
            id: fresh_id().into(),
            key: new.key.clone(),
            name: new.name.clone(),
            workspace_id: new.workspace_id,
            status: ProjectStatus::Active,
            version: 1,
            created_at: change.now,
        };
        Ok((project, Lies::own(new.workspace_id)))
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn workspace(&self) -> Option<WorkspaceId> {
        self.workspace_id
    }

    fn row(&self, tenant: TenantId) -> Result<Vec<Value>, Error> {
        let Self { id, key, name, workspace_id, status, version, created_at } = self;
        Ok(params![tenant, *id, *workspace_id, key, name, status.as_str(), *version, *created_at].to_vec())
    }

    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.get(0)?,
            workspace_id: row.get(1)?,
            key: row.get(2)?,
            name: row.get(3)?,
            status: parsed(row.get(4)?, "project.status")?,
            version: row.get(5)?,
            created_at: row.get(6)?,
        })
    }

    fn created(&self, change: &Change, lies: Lies) -> Result<NewEvent, Error> {
        change.event(&PROJECT_CREATED, self.id, lies, &told_of(self))
    }
}

impl Editable for ProjectView {
    type Edit = ProjectEdit;
    const MANAGE: Permission = Permission::ProjectsManage;
    const LOCK: &'static Statement = &LOCK;

    fn edit(&mut self, edit: &ProjectEdit) -> Result<(), Error> {
        match edit {
            ProjectEdit::Patch(patch) => {
                self.status = lifecycle::project(self.status, ProjectWish::Update)?;
                let ProjectPatch { name, workspace_id } = patch.clone();
                self.name = name.unwrap_or_else(|| self.name.clone());
                self.workspace_id = workspace_id.unwrap_or(self.workspace_id);
            }
            ProjectEdit::Archive => self.status = lifecycle::project(self.status, ProjectWish::Archive)?,
        }
        Ok(())
    }

    fn version(&mut self) -> &mut i64 {
        &mut self.version
    }

    fn edited(&self, change: &Change, edit: &ProjectEdit, lies: Lies) -> Result<NewEvent, Error> {
        let kind = match edit {
            ProjectEdit::Patch(_) => &PROJECT_UPDATED,
            ProjectEdit::Archive => &PROJECT_ARCHIVED,
        };
        change.event(kind, self.id, lies, &told_of(self))
    }
}
