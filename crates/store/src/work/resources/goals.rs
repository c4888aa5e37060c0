//! Goals: what work is for.

use courant_api::events::resources::{GOAL_CREATED, GOAL_UPDATED, GoalChange};
use courant_api::resources::{GoalCreate, GoalPatch, GoalStatus, GoalView};
use courant_api::{Permission, TenantId, WorkspaceId};
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
        "g.id, g.workspace_id, g.title, g.description, g.status, g.version, g.created_at"
    };
}

statements! { "goals":
    GET = concat!("SELECT ", columns!(), " FROM goal g WHERE g.tenant_id = $1 AND g.id = $2");
    LOCK = concat!("SELECT ", columns!(), " FROM goal g WHERE g.tenant_id = $1 AND g.id = $2 {for update}");
    SAVE = "INSERT INTO goal (tenant_id, id, workspace_id, title, description, status, version, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (id) DO UPDATE SET workspace_id = excluded.workspace_id, title = excluded.title,
            description = excluded.description, status = excluded.status, version = excluded.version";
    LIST = concat!(
        "WITH RECURSIVE ", subtree!("$5"), " SELECT ", columns!(), " FROM goal g WHERE g.tenant_id = $1 AND g.id < $2
            AND (NOT $4 OR g.workspace_id IN (SELECT s.id FROM subtree s))
            AND (NOT $6 OR g.status IN {texts $7})
        ORDER BY g.id DESC LIMIT $3");
}

fn told_of(goal: &GoalView) -> GoalChange {
    GoalChange { title: told(&goal.title), status: goal.status, version: goal.version }
}

impl Resource for GoalView {
    type New = GoalCreate;
    const KIND: &'static Kind = &Kind {
        name: "goal",
        read: Permission::GoalsRead,
        create: Permission::GoalsManage,
        get: &GET,
        save: &SAVE,
        list: &LIST,
        unique: "a goal with this id exists",
    };

    async fn make(_: &mut Tx, change: &Change, new: &GoalCreate) -> Result<(Self, Lies), Error> {
        let goal = Self {
            id: fresh_id().into(),
            title: new.title.clone(),
            description: new.description.clone(),
            workspace_id: new.workspace_id,
            status: GoalStatus::Active,
            version: 1,
            created_at: change.now,
        };
        Ok((goal, Lies::own(new.workspace_id)))
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn workspace(&self) -> Option<WorkspaceId> {
        self.workspace_id
    }

    fn row(&self, tenant: TenantId) -> Result<Vec<Value>, Error> {
        let Self { id, title, description, workspace_id, status, version, created_at } = self;
        let description = description.as_deref();
        Ok(params![tenant, *id, *workspace_id, title, description, status.as_str(), *version, *created_at].to_vec())
    }

    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.get(0)?,
            workspace_id: row.get(1)?,
            title: row.get(2)?,
            description: row.get(3)?,
            status: parsed(row.get(4)?, "goal.status")?,
            version: row.get(5)?,
            created_at: row.get(6)?,
        })
    }

    fn created(&self, change: &Change, lies: Lies) -> Result<NewEvent, Error> {
        change.event(&GOAL_CREATED, self.id, lies, &told_of(self))
    }
}

impl Editable for GoalView {
    type Edit = GoalPatch;
    const MANAGE: Permission = Permission::GoalsManage;
    const LOCK: &'static Statement = &LOCK;

    fn edit(&mut self, patch: &GoalPatch) -> Result<(), Error> {
        let GoalPatch { title, description, workspace_id, status } = patch.clone();
        self.title = title.unwrap_or_else(|| self.title.clone());
        self.description = description.unwrap_or_else(|| self.description.clone());
        self.workspace_id = workspace_id.unwrap_or(self.workspace_id);
        self.status = status.unwrap_or(self.status);
        Ok(())
    }

    fn version(&mut self) -> &mut i64 {
        &mut self.version
    }

    fn edited(&self, change: &Change, _: &GoalPatch, lies: Lies) -> Result<NewEvent, Error> {
        change.event(&GOAL_UPDATED, self.id, lies, &told_of(self))
    }
}
