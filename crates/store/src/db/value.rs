//! Values on their way into and out of a statement, for both drivers.

use std::error::Error as StdError;

use courant_api::{
    ApiKeyId, ApprovalId, ArtifactId, ClaimId, CommentId, DeliveryId, DeploymentId, DeploymentRunId, EventId, GoalId,
    GrantId, IdentityBindingId, IntegrationId, PrincipalId, ProjectId, RoleAssignmentId, RoleId, RuleId, RunId,
    SkillInvocationId, StackId, TaskId, TenantId, Timestamp, VerificationId, WorkspaceId,
};
use rusqlite::types::{Null, ToSql as LiteToSql, ToSqlOutput, ValueRef};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql as PgToSql, Type, to_sql_checked};
use uuid::Uuid;

use crate::Error;

/// One parameter of a statement. Lists are read inside the statement through `{texts $n}` and `{uuids $n}`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    Uuid(Uuid),
    Texts(Vec<Option<String>>),
    Uuids(Vec<Option<Uuid>>),
    Ints(Vec<i64>),
}

macro_rules! value_from {
    ($($from:ty => |$x:ident| $make:expr;)+) => {$(
        impl From<$from> for Value {
            fn from($x: $from) -> Self {
                $make
            }
        }
    )+};
}

value_from! {
    bool => |x| Self::Bool(x);
    i64 => |x| Self::Int(x);
    u32 => |x| Self::Int(i64::from(x));
    String => |x| Self::Text(x);
    &String => |x| Self::Text(x.clone());
    &str => |x| Self::Text(x.to_owned());
    Vec<u8> => |x| Self::Bytes(x);
    &[u8] => |x| Self::Bytes(x.to_vec());
    Uuid => |x| Self::Uuid(x);
    Timestamp => |x| Self::Int(x.micros());
    Vec<Uuid> => |x| Self::Uuids(x.into_iter().map(Some).collect());
    Vec<String> => |x| Self::Texts(x.into_iter().map(Some).collect());
    Vec<Option<String>> => |x| Self::Texts(x);
    Vec<Option<Uuid>> => |x| Self::Uuids(x);
    Vec<i64> => |x| Self::Ints(x);
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(x: Option<T>) -> Self {
        x.map_or(Self::Null, Into::into)
    }
}

/// The parameters of one execution: `params![tenant, seq]`.
macro_rules! params {
    ($($x:expr),* $(,)?) => { &[$($crate::db::Value::from($x)),*] };
}
pub(crate) use params;

impl PgToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Bool(x) => x.to_sql_checked(ty, out),
            Self::Int(x) => x.to_sql_checked(ty, out),
            Self::Text(x) => x.to_sql_checked(ty, out),
            Self::Bytes(x) => x.to_sql_checked(ty, out),
            Self::Uuid(x) => x.to_sql_checked(ty, out),
            Self::Texts(x) => x.to_sql_checked(ty, out),
            Self::Uuids(x) => x.to_sql_checked(ty, out),
            Self::Ints(x) => x.to_sql_checked(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true // Each variant checks its own type above.
    }

    to_sql_checked!();
}

impl LiteToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Null => Null.to_sql(),
            Self::Bool(x) => Ok(ToSqlOutput::from(*x)),
            Self::Int(x) => Ok(ToSqlOutput::from(*x)),
            Self::Text(x) => Ok(ToSqlOutput::from(x.as_str())),
            Self::Bytes(x) => Ok(ToSqlOutput::from(x.as_slice())),
            Self::Uuid(x) => Ok(ToSqlOutput::Borrowed(ValueRef::Blob(x.as_bytes()))),
            Self::Texts(x) => json(x),
            Self::Uuids(x) => json(&x.iter().map(|id| id.map(|id| id.simple().to_string())).collect::<Vec<_>>()),
            Self::Ints(x) => json(x),
        }
    }
}

fn json<T: serde::Serialize>(list: &T) -> rusqlite::Result<ToSqlOutput<'static>> {
    serde_json::to_string(list).map(ToSqlOutput::from).map_err(|e| rusqlite::Error::ToSqlConversionFailure(Box::new(e)))
}

/// One row of an answer.
#[derive(Debug)]
pub enum Row {
    Pg(tokio_postgres::Row),
    Lite(Vec<Cell>),
}

/// What SQLite keeps in a column.
pub type Cell = rusqlite::types::Value;

impl Row {
    /// Column `i`, counted from 0; a value of another type than the code expects is a corrupt row.
    pub fn get<T: Column>(&self, i: usize) -> Result<T, Error> {
        match self {
            Self::Pg(row) => row.try_get(i).map(T::from_pg).map_err(|e| Error::corrupt_column(i, &e.to_string())),
            Self::Lite(cells) => cells
                .get(i)
                .and_then(T::from_cell)
                .ok_or_else(|| Error::corrupt_column(i, &format!("{:?}", cells.get(i).map(Cell::data_type)))),
        }
    }
}

/// A type that a column can be read as.
pub trait Column: Sized {
    type Pg: for<'a> FromSql<'a>;
    fn from_pg(value: Self::Pg) -> Self;
    fn from_cell(cell: &Cell) -> Option<Self>;
}

impl<T: Column> Column for Option<T> {
    type Pg = Option<T::Pg>;

    fn from_pg(value: Self::Pg) -> Self {
        value.map(T::from_pg)
    }

    fn from_cell(cell: &Cell) -> Option<Self> {
        if *cell == Cell::Null { Some(None) } else { T::from_cell(cell).map(Some) }
    }
}

macro_rules! columns {
    ($($t:ty: $cell:pat => $make:expr;)+) => {$(
        impl Column for $t {
            type Pg = Self;

            fn from_pg(value: Self) -> Self {
                value
            }

            fn from_cell(cell: &Cell) -> Option<Self> {
                match cell {
                    $cell => $make,
                    _ => None,
                }
            }
        }
    )+};
}

columns! {
    i64: Cell::Integer(x) => Some(*x);
    bool: Cell::Integer(x) => Some(*x != 0);
    String: Cell::Text(x) => Some(x.clone());
    Vec<u8>: Cell::Blob(x) => Some(x.clone());
    Uuid: Cell::Blob(x) => Uuid::from_slice(x).ok();
}

impl Column for Timestamp {
    type Pg = i64;

    fn from_pg(micros: i64) -> Self {
        Self::from_micros(micros)
    }

    fn from_cell(cell: &Cell) -> Option<Self> {
        i64::from_cell(cell).map(Self::from_micros)
    }
}

/// Typed identifiers travel as their UUID.
macro_rules! ids {
    ($($t:ty),+) => {$(
        impl From<$t> for Value {
            fn from(id: $t) -> Self {
                Self::Uuid(id.uuid())
            }
        }

        impl Column for $t {
            type Pg = Uuid;

            fn from_pg(id: Uuid) -> Self {
                id.into()
            }

            fn from_cell(cell: &Cell) -> Option<Self> {
                Uuid::from_cell(cell).map(Into::into)
            }
        }
    )+};
}

ids!(
    TenantId,
    PrincipalId,
    WorkspaceId,
    EventId,
    GrantId,
    IdentityBindingId,
    RoleId,
    RoleAssignmentId,
    ApiKeyId,
    IntegrationId,
    DeliveryId,
    TaskId,
    ClaimId,
    RunId,
    VerificationId,
    CommentId,
    ApprovalId,
    ArtifactId,
    GoalId,
    RuleId,
    ProjectId,
    SkillInvocationId,
    StackId,
    DeploymentId,
    DeploymentRunId
);
