//! Permissions and the resources they are held on: one closed list.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::WorkspaceId;

/// How far a token may go, whatever its principal holds. Each scope holds those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `control-plane:read`: see.
    Read,
    /// `control-plane:write`: see, and do the platform's work.
    Write,
    /// `control-plane:admin`: everything, who may do what included.
    Admin,
}

impl Scope {
    /// Every scope, the narrowest first.
    pub const LIST: &'static [Self] = &[Self::Read, Self::Write, Self::Admin];
    /// The scope of a token for one decision, which wins over the others.
    pub const DECIDE: &'static str = "control-plane:decide";

    /// As a token has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "control-plane:read",
            Self::Write => "control-plane:write",
            Self::Admin => "control-plane:admin",
        }
    }
}

macro_rules! permissions {
    ($($name:ident = $text:literal, $scope:ident, $meaning:literal;)+) => {
        /// What somebody may do: `<resource>.<verb>`, or `*` for everything.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Permission {
            /// Every permission.
            All,
            $(#[doc = $meaning] $name,)+
        }

        impl Permission {
            /// Every permission that can be granted.
            pub const LIST: &'static [Self] = &[Self::All, $(Self::$name),+];

            /// As it is written: `events.read`.
            pub const fn as_str(self) -> &'static str {
                match self { Self::All => "*", $(Self::$name => $text),+ }
            }

            /// What it allows.
            pub const fn meaning(self) -> &'static str {
                match self { Self::All => "Everything.", $(Self::$name => $meaning),+ }
            }

            /// The narrowest scope of a token that reaches it.
            pub const fn scope(self) -> Scope {
                match self { Self::All => Scope::Admin, $(Self::$name => Scope::$scope),+ }
            }
        }
    };
}

permissions! {
    OrgRead = "org.read", Read, "Read facts about the tenant.";
    EventsRead = "events.read", Read, "Read the journal.";
    EventsAppend = "events.append", Write, "Append events of custom types.";
    EventTypesRead = "event_types.read", Read, "Read the catalogue of event types.";
    EventTypesManage = "event_types.manage", Admin, "Register custom event types and their versions.";
    PrincipalsRead = "principals.read", Read, "Read principals.";
    PrincipalsManage = "principals.manage", Admin, "Create, update and disable principals.";
    ApiKeysRead = "api_keys.read", Read, "Read API keys (never their secrets).";
    ApiKeysManage = "api_keys.manage", Admin, "Revoke API keys, and create them for principals all of whose grants one holds.";
    GrantsRead = "grants.read", Read, "Read grants.";
    GrantsManage = "grants.manage", Admin, "Revoke grants, and create those of permissions that one holds on the same resource.";
    IdentityBindingsRead = "identity_bindings.read", Read, "Read which logins stand for which principals.";
    IdentityBindingsManage = "identity_bindings.manage", Admin, "Revoke identity bindings, and create them for principals all of whose grants one holds.";
    RolesRead = "roles.read", Read, "Read roles and who holds them.";
    RolesManage = "roles.manage", Admin, "Create and rename roles, revoke them, and assign those all of whose grants one holds.";
    WorkspacesRead = "workspaces.read", Read, "Read workspaces.";
    WorkspacesManage = "workspaces.manage", Admin, "Create, update, move and archive workspaces.";
    TasksRead = "tasks.read", Read, "Read tasks, their claims, runs, verifications and comments.";
    TasksCreate = "tasks.create", Write, "Create tasks.";
    TasksUpdate = "tasks.update", Write, "Change, move, cancel and comment on tasks.";
    TasksWork = "tasks.work", Write, "Claim tasks, run, verify and complete them, and use skills for them.";
    ApprovalsRead = "approvals.read", Read, "Read approvals.";
    ApprovalsRequest = "approvals.request", Write, "Request approvals, and cancel those that one requested.";
    ApprovalsDecide = "approvals.decide", Write, "Decide approvals that name one or a role that one holds.";
    ApprovalsManage = "approvals.manage", Admin, "Cancel any approval, and issue tokens for decisions from a channel.";
    ArtifactsRead = "artifacts.read", Read, "Read artifacts.";
    ArtifactsCreate = "artifacts.create", Write, "Record artifacts.";
    GoalsRead = "goals.read", Read, "Read goals.";
    GoalsManage = "goals.manage", Write, "Create and change goals.";
    RulesRead = "rules.read", Read, "Read rules.";
    RulesManage = "rules.manage", Write, "Create, change, enable, disable and archive rules.";
    ProjectsRead = "projects.read", Read, "Read projects.";
    ProjectsManage = "projects.manage", Write, "Create, change and archive projects.";
    StacksRead = "stacks.read", Read, "Read stacks, and what is wrong with them.";
    StacksManage = "stacks.manage", Write, "Create, change, move and delete stacks.";
    DeploymentsRead = "deployments.read", Read, "Read deployments and their runs.";
    DeploymentsRun = "deployments.run", Write, "Create deployments, and start and report their runs.";
    DeploymentsConfirm = "deployments.confirm", Write, "Confirm, cancel, skip and promote deployments.";
    NotificationIntegrationRead = "notification_integration.read", Read, "Read notification integrations and their deliveries.";
    NotificationIntegrationCreate = "notification_integration.create", Write, "Create notification integrations.";
    NotificationIntegrationUpdate = "notification_integration.update", Write, "Change notification integrations and retry their deliveries.";
    NotificationIntegrationDelete = "notification_integration.delete", Write, "Delete notification integrations.";
    OperationsRead = "operations.read", Read, "Read the state of the tenant's journal and its consumers.";
    OperationsManage = "operations.manage", Admin, "Delete old events of the tenant for good.";
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no permission or resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what}: {text:?}")]
pub struct UnknownName {
    what: &'static str,
    text: String,
}

impl UnknownName {
    fn new(what: &'static str, text: &str) -> Self {
        Self { what, text: text.chars().take(100).collect() }
    }
}

impl FromStr for Permission {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::LIST.iter().copied().find(|p| p.as_str() == text).ok_or_else(|| UnknownName::new("permission", text))
    }
}

impl Serialize for Permission {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Permission {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_name(deserializer)
    }
}

/// A name, or an error that says what was expected and not what was met: it may be a secret in the wrong place.
fn read_name<'de, D: Deserializer<'de>, T: FromStr<Err = UnknownName>>(deserializer: D) -> Result<T, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    text.parse().map_err(|unknown: UnknownName| de::Error::custom(format!("unknown {}", unknown.what)))
}

impl JsonSchema for Permission {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Permission".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<_> = Self::LIST.iter().map(|p| p.as_str()).collect();
        json_schema!({ "type": "string", "enum": names })
    }
}

/// What a permission is held on or asked for: `tenant`, `workspace:<id>`, `notification_integration:<name>`.
///
/// Where it is held, the name may be a pattern: `*` stands for any characters, also none. No name contains one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// The whole tenant.
    Tenant,
    /// One workspace.
    Workspace(WorkspaceId),
    /// The notification integration of this name, or those that fit this pattern.
    NotificationIntegration(String),
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tenant => f.write_str("tenant"),
            Self::Workspace(id) => write!(f, "workspace:{id}"),
            Self::NotificationIntegration(name) => write!(f, "notification_integration:{name}"),
        }
    }
}

impl FromStr for Resource {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownName::new("resource", text);
        if text == "tenant" {
            return Ok(Self::Tenant);
        }
        let (kind, rest) = text.split_once(':').ok_or_else(unknown)?;
        match kind {
            "workspace" => rest.parse().map(Self::Workspace).map_err(|_| unknown()),
            "notification_integration" if crate::notify::is_integration_pattern(rest) => {
                Ok(Self::NotificationIntegration(rest.to_owned()))
            }
            _ => Err(unknown()),
        }
    }
}

impl Serialize for Resource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Resource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read_name(deserializer)
    }
}

impl JsonSchema for Resource {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Resource".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(tenant|workspace:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\
                notification_integration:[A-Za-z0-9._*-]([A-Za-z0-9._* -]{0,98}[A-Za-z0-9._*-])?)$",
            "description": "tenant, workspace:<id> or notification_integration:<name or pattern>; in a pattern, * stands for any characters"
        })
    }
}
