//! Differs because with one writer whatever is committed is settled.

use crate::db::{Dialect, Statement};

pub(crate) static STATE: Statement = Statement::only(
    "horizon.sqlite",
    Dialect::Sqlite,
    "SELECT j.id, j.incarnation, max(j.deleted_seq, (SELECT coalesce(max(e.seq), 0) FROM event e)), NULL FROM journal j",
);
