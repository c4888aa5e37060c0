//! Rules by which work is made. They are kept and told of; evaluating them is somebody else's.

use courant_api::events::resources::{
    RULE_ARCHIVED, RULE_CREATED, RULE_DISABLED, RULE_ENABLED, RULE_UPDATED, RuleChange,
};
use courant_api::resources::{RuleCreate, RulePatch, RuleStatus, RuleView};
use courant_api::{Permission, TenantId, WorkspaceId};
use courant_core::lifecycle::{self, RuleWish};
use courant_core::place::Lies;
use uuid::Uuid;

use super::{Editable, Kind, Resource};
use crate::Error;
use crate::access::parsed;
use crate::change::{Change, fresh_id, to_json};
use crate::db::{NewEvent, Row, Statement, Tx, Value, params, statements};
use crate::journal::texts::subtree;

macro_rules! columns {
    () => {
        "r.id, r.workspace_id, r.key, r.definition, r.status, r.version, r.created_at"
    };
}

statements! { "rules":
    GET = concat!("SELECT ", columns!(), " FROM rule r WHERE r.tenant_id = $1 AND r.id = $2");
    LOCK = concat!("SELECT ", columns!(), " FROM rule r WHERE r.tenant_id = $1 AND r.id = $2 {for update}");
    SAVE = "INSERT INTO rule (tenant_id, id, workspace_id, key, definition, status, version, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (id) DO UPDATE SET workspace_id = excluded.workspace_id, definition = excluded.definition,
            status = excluded.status, version = excluded.version";
    LIST = concat!(
        "WITH RECURSIVE ", subtree!("$5"), " SELECT ", columns!(), " FROM rule r WHERE r.tenant_id = $1 AND r.id < $2
            AND (NOT $4 OR r.workspace_id IN (SELECT s.id FROM subtree s))
            AND (NOT $6 OR r.status IN {texts $7})
        ORDER BY r.id DESC LIMIT $3");
}

/// What may be made of a rule.
#[derive(Clone, Debug)]
pub enum RuleEdit {
    /// It is changed or moved.
    Patch(RulePatch),
    /// It counts.
    Enable,
    /// It does not count for now.
    Disable,
    /// It counts no more.
    Archive,
}

impl RuleEdit {
    fn wish(&self) -> RuleWish {
        match self {
            Self::Patch(_) => RuleWish::Update,
            Self::Enable => RuleWish::Enable,
            Self::Disable => RuleWish::Disable,
            Self::Archive => RuleWish::Archive,
        }
    }
}

fn corrupt() -> Error {
    Error::Corrupt("rule.definition".into())
}

fn told_of(rule: &RuleView) -> RuleChange {
    RuleChange { key: rule.key.clone(), version: rule.version }
}

impl Resource for RuleView {
    type New = RuleCreate;
    const KIND: &'static Kind = &Kind {
        name: "rule",
        read: Permission::RulesRead,
        create: Permission::RulesManage,
        get: &GET,
        save: &SAVE,
        list: &LIST,
        unique: "a rule with this key exists",
    };

    async fn make(_: &mut Tx, change: &Change, new: &RuleCreate) -> Result<(Self, Lies), Error> {
        let rule = Self {
            id: fresh_id().into(),
            key: new.key.clone(),
            workspace_id: new.workspace_id,
            definition: new.definition.clone(),
            status: RuleStatus::Disabled,
            version: 1,
            created_at: change.now,
        };
        Ok((rule, Lies::own(new.workspace_id)))
    }

    fn id(&self) -> Uuid {
        self.id.uuid()
    }

    fn workspace(&self) -> Option<WorkspaceId> {
        self.workspace_id
    }

    fn row(&self, tenant: TenantId) -> Result<Vec<Value>, Error> {
        let Self { id, key, workspace_id, definition, status, version, created_at } = self;
        let definition = to_json(definition)?;
        Ok(params![tenant, *id, *workspace_id, key, definition, status.as_str(), *version, *created_at].to_vec())
    }

    fn read(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            id: row.get(0)?,
            workspace_id: row.get(1)?,
            key: row.get(2)?,
            definition: serde_json::from_str(&row.get::<String>(3)?).map_err(|_| corrupt())?,
            status: parsed(row.get(4)?, "rule.status")?,
            version: row.get(5)?,
            created_at: row.get(6)?,
        })
    }

    fn created(&self, change: &Change, lies: Lies) -> Result<NewEvent, Error> {
        change.event(&RULE_CREATED, self.id, lies, &told_of(self))
    }
}

impl Editable for RuleView {
    type Edit = RuleEdit;
    const MANAGE: Permission = Permission::RulesManage;
    const LOCK: &'static Statement = &LOCK;

    fn edit(&mut self, edit: &RuleEdit) -> Result<(), Error> {
        self.status = lifecycle::rule(self.status, edit.wish())?;
        if let RuleEdit::Patch(RulePatch { workspace_id, definition }) = edit {
            self.workspace_id = workspace_id.unwrap_or(self.workspace_id);
            self.definition = definition.as_ref().unwrap_or(&self.definition).clone();
        }
        Ok(())
    }

    fn version(&mut self) -> &mut i64 {
        &mut self.version
    }

    fn edited(&self, change: &Change, edit: &RuleEdit, lies: Lies) -> Result<NewEvent, Error> {
        let kind = match edit.wish() {
            RuleWish::Update => &RULE_UPDATED,
            RuleWish::Enable => &RULE_ENABLED,
            RuleWish::Disable => &RULE_DISABLED,
            RuleWish::Archive => &RULE_ARCHIVED,
        };
        change.event(kind, self.id, lies, &told_of(self))
    }
}
