//! Verifications: rounds of checks on a task. Too many that fail in a row leave the task to a person.

use courant_api::events::work::{
    TASK_VERIFICATION_FAILED, TASK_VERIFICATION_STARTED, TASK_VERIFIED, TaskVerified, VerificationFailed,
    VerificationStarted,
};
use courant_api::work::{
    CheckResult, FAILURES_THAT_BLOCK, TaskStatus, TaskView, VerificationStart, VerificationStatus, VerificationView,
};
use courant_api::{ArtifactId, Permission, TaskId, TenantId, VerificationId};
use courant_core::lifecycle::{self, TaskWish, VerificationWish};
use courant_core::place::Lies;

use super::claims;
use super::resources;
use super::tasks::{self, lock_for};
use crate::access::{before, parsed};
use crate::change::{Change, Changed, fresh_id, to_json, told};
use crate::db::{Row, Tx, params, statements};
use crate::{Error, Page, PageKey, Store};

macro_rules! columns {
    () => {
        "id, task_id, attempt, status, trigger_name, checks, results, failed_check, reason, artifact_id, started_at,
            finished_at"
    };
}

statements! { "verifications":
    INSERT = "INSERT INTO verification (id, tenant_id, task_id, attempt, status, trigger_name, checks, results,
            started_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    GET = concat!("SELECT ", columns!(), " FROM verification WHERE tenant_id = $1 AND id = $2");
    LIST = concat!("SELECT ", columns!(), " FROM verification
        WHERE tenant_id = $1 AND task_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4");
    END = "UPDATE verification SET status = $3, results = $4, failed_check = $5, reason = $6, artifact_id = $7,
            finished_at = $8
        WHERE tenant_id = $1 AND id = $2";
}

/// What a verification starts with when nobody says what made it start.
const BY_HAND: &str = "manual";

/// How a verification ends.
#[derive(Clone, Debug)]
pub enum VerificationEnd {
    /// All checks passed.
    Passed {
        /// An artifact that shows it.
        artifact_id: Option<ArtifactId>,
    },
    /// One did not.
    Failed {
        /// Which.
        check: String,
        /// Why.
        reason: Option<String>,
    },
}

fn list_of<T: serde::de::DeserializeOwned>(text: &str, column: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|e| Error::Corrupt(format!("{column}: {e}")))
}

fn view(row: &Row) -> Result<VerificationView, Error> {
    Ok(VerificationView {
        id: row.get(0)?,
        task_id: row.get(1)?,
        attempt: row.get(2)?,
        status: parsed(row.get(3)?, "verification.status")?,
        trigger: row.get(4)?,
        checks: list_of(&row.get::<String>(5)?, "verification.checks")?,
        results: list_of(&row.get::<String>(6)?, "verification.results")?,
        failed_check: row.get(7)?,
        reason: row.get(8)?,
        artifact_id: row.get(9)?,
        started_at: row.get(10)?,
        finished_at: row.get(11)?,
    })
}

async fn get(tx: &mut Tx, tenant: TenantId, id: VerificationId) -> Result<VerificationView, Error> {
    view(&tx.query_opt(&GET, params![tenant, id]).await?.ok_or(Error::NotFound("verification"))?)
}

fn told_all(names: &[String]) -> Vec<String> {
    names.iter().map(|name| told(name)).collect()
}

fn told_results(results: &[CheckResult]) -> Vec<CheckResult> {
    results.iter().map(|result| CheckResult { check: told(&result.check), passed: result.passed }).collect()
}

async fn start(tx: &mut Tx, change: &Change, id: TaskId, new: &VerificationStart) -> Result<VerificationView, Error> {
    let task = lock_for(tx, change, id, Permission::TasksWork).await?;
    lifecycle::task(task.status, TaskWish::Verify)?;
    let verification = VerificationView {
        id: fresh_id().into(),
        task_id: id,
        attempt: tasks::count_verification(tx, change.tenant_id, id).await?,
        status: VerificationStatus::Running,
        trigger: new.trigger.clone().unwrap_or_else(|| BY_HAND.to_owned()),
        checks: new.checks.clone(),
        results: Vec::new(),
        failed_check: None,
        reason: None,
        artifact_id: None,
        started_at: change.now,
        finished_at: None,
    };
    let row = params![
        verification.id,
        change.tenant_id,
        id,
        verification.attempt,
        verification.status.as_str(),
        &verification.trigger,
        to_json(&verification.checks)?,
        to_json(&verification.results)?,
        verification.started_at
    ];
    tx.execute(&INSERT, row).await.map_err(|e| e.unique_means("a verification of the task has not ended"))?;
    let payload = VerificationStarted {
        public_id: task.public_id.clone(),
        verification_id: verification.id,
        attempt: verification.attempt,
        trigger: told(&verification.trigger),
        checks: told_all(&verification.checks),
    };
    tx.append(change.event(&TASK_VERIFICATION_STARTED, id, Lies::own(task.workspace_id), &payload)?);
    Ok(verification)
}

fn invalid(field: String, message: &str) -> Error {
    Error::Invalid { field, message: message.to_owned() }
}

/// The results of a verification that ends so, judged against its checks.
fn results(
    verification: &VerificationView,
    end: &VerificationEnd,
    given: Option<&Vec<CheckResult>>,
) -> Result<Vec<CheckResult>, Error> {
    let is_check = |name: &String| verification.checks.contains(name);
    for (n, result) in given.into_iter().flatten().enumerate() {
        if !is_check(&result.check) {
            return Err(invalid(format!("/results/{n}/check"), "is no check of the verification"));
        }
    }
    match end {
        VerificationEnd::Passed { .. } => {
            let Some(given) = given else {
                let passed = |check: &String| CheckResult { check: check.clone(), passed: true };
                return Ok(verification.checks.iter().map(passed).collect());
            };
            match given.iter().position(|result| !result.passed) {
                Some(n) => Err(invalid(format!("/results/{n}/passed"), "must be true: every check passed")),
                None => Ok(given.clone()),
            }
        }
        VerificationEnd::Failed { check, .. } => {
            if !is_check(check) {
                return Err(invalid("/failedCheck".into(), "is no check of the verification"));
            }
            let Some(given) = given else { return Ok(vec![CheckResult { check: check.clone(), passed: false }]) };
            match given.iter().position(|result| result.check == *check && result.passed) {
                Some(n) => Err(invalid(format!("/results/{n}/passed"), "must be false: this check failed")),
                None => Ok(given.clone()),
            }
        }
    }
}

async fn finish(
    tx: &mut Tx,
    change: &Change,
    id: VerificationId,
    end: &VerificationEnd,
    given: Option<&Vec<CheckResult>>,
) -> Result<VerificationView, Error> {
    let known = get(tx, change.tenant_id, id).await?;
    let mut task = lock_for(tx, change, known.task_id, Permission::TasksWork).await?;
    let mut verification = get(tx, change.tenant_id, id).await?;
    let wish = match end {
        VerificationEnd::Passed { .. } => VerificationWish::Pass,
        VerificationEnd::Failed { .. } => VerificationWish::Fail,
    };
    verification.status = lifecycle::verification(verification.status, wish)?;
    verification.results = results(&verification, end, given)?;
    verification.finished_at = Some(change.now);
    match end {
        VerificationEnd::Passed { artifact_id } => {
            if let Some(artifact) = artifact_id {
                resources::artifact(tx, change.tenant_id, *artifact).await?;
            }
            verification.artifact_id = *artifact_id;
        }
        VerificationEnd::Failed { check, reason } => {
            verification.failed_check = Some(check.clone());
            verification.reason.clone_from(reason);
        }
    }
    write(tx, change, &verification).await?;
    match end {
        VerificationEnd::Passed { .. } => passed(tx, change, &mut task, &verification).await?,
        VerificationEnd::Failed { check, .. } => failed(tx, change, &mut task, &verification, check).await?,
    }
    Ok(verification)
}

async fn write(tx: &mut Tx, change: &Change, verification: &VerificationView) -> Result<(), Error> {
    let row = params![
        change.tenant_id,
        verification.id,
        verification.status.as_str(),
        to_json(&verification.results)?,
        verification.failed_check.clone(),
        verification.reason.clone(),
        verification.artifact_id,
        verification.finished_at
    ];
    tx.execute(&END, row).await.map(|_| ())
}

async fn passed(
    tx: &mut Tx,
    change: &Change,
    task: &mut TaskView,
    verification: &VerificationView,
) -> Result<(), Error> {
    if task.consecutive_failures != 0 {
        task.consecutive_failures = 0;
        tasks::save(tx, change, task).await?;
    }
    let payload = TaskVerified {
        public_id: task.public_id.clone(),
        verification_id: verification.id,
        attempt: verification.attempt,
        results: told_results(&verification.results),
        artifact_id: verification.artifact_id,
    };
    tx.append(change.event(&TASK_VERIFIED, task.id, Lies::own(task.workspace_id), &payload)?);
    Ok(())
}

async fn failed(
    tx: &mut Tx,
    change: &Change,
    task: &mut TaskView,
    verification: &VerificationView,
    check: &str,
) -> Result<(), Error> {
    let from = task.status;
    task.consecutive_failures += 1;
    // What is done, given up or blocked already stays so.
    let at_work = matches!(from, TaskStatus::Open | TaskStatus::InProgress);
    let blocked = at_work && task.consecutive_failures >= FAILURES_THAT_BLOCK;
    if blocked {
        tasks::wish(task, TaskWish::Block)?;
    }
    tasks::save(tx, change, task).await?;
    let payload = VerificationFailed {
        public_id: task.public_id.clone(),
        title: told(&task.title),
        verification_id: verification.id,
        attempt: verification.attempt,
        trigger: told(&verification.trigger),
        checks: told_all(&verification.checks),
        results: told_results(&verification.results),
        failed_check: told(check),
        reason: verification.reason.as_deref().map(told),
        consecutive_failures: task.consecutive_failures,
        blocked,
        from_status: from,
        status: task.status,
        system_status_category: task.system_status_category,
    };
    tx.append(change.event(&TASK_VERIFICATION_FAILED, task.id, Lies::own(task.workspace_id), &payload)?);
    if blocked {
        claims::end_with_task(tx, change, task).await?;
    }
    Ok(())
}

impl Store {
    /// Begins a round of checks on a task; needs `tasks.work` where it lies.
    pub async fn verification_start(
        &self,
        change: Change,
        task: TaskId,
        new: VerificationStart,
    ) -> Result<Changed<VerificationView>, Error> {
        self.db.change(change, (task, new), |tx, (change, (task, new))| Box::pin(start(tx, change, *task, new))).await
    }

    /// Ends a round of checks; needs `tasks.work` where the task lies.
    pub async fn verification_end(
        &self,
        change: Change,
        id: VerificationId,
        end: VerificationEnd,
        results: Option<Vec<CheckResult>>,
    ) -> Result<Changed<VerificationView>, Error> {
        self.db
            .change(change, (id, end, results), |tx, (change, (id, end, results))| {
                Box::pin(finish(tx, change, *id, end, results.as_ref()))
            })
            .await
    }

    /// A task's verifications, newest first.
    pub async fn verification_list(
        &self,
        tenant: TenantId,
        task: TaskId,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<VerificationView>, Error> {
        self.db
            .read((tenant, task, key, limit), |tx, (tenant, task, key, limit)| {
                Box::pin(async move {
                    let rows = tx.query(&LIST, params![*tenant, *task, before(*key), *limit + 1]).await?;
                    Page::cut(&rows, *limit, view, |v| v.id.uuid())
                })
            })
            .await
    }
}
