//! Gates: approvals that hold a task's claim and completion until they are decided, cancelled or expired.

use courant_api::{ApprovalId, TaskId};

use crate::Error;
use crate::change::Change;
use crate::db::{Tx, params, statements};

/// Most pending gates that a refusal names.
const NAMED: i64 = 20;

statements! { "gates":
    PENDING = "SELECT id FROM approval WHERE tenant_id = $1 AND task_id = $2 AND status = 'pending' AND gate
            AND (expires_at IS NULL OR expires_at > $3) ORDER BY id LIMIT $4";
}

/// Refuses while an approval holds the task, whose row is locked. One whose time is over holds nothing, told or not.
pub(super) async fn open(tx: &mut Tx, change: &Change, task: TaskId) -> Result<(), Error> {
    let rows = tx.query(&PENDING, params![change.tenant_id, task, change.now, NAMED]).await?;
    let pending = rows.iter().map(|row| row.get(0)).collect::<Result<Vec<ApprovalId>, _>>()?;
    if pending.is_empty() { Ok(()) } else { Err(Error::Gated(pending)) }
}
