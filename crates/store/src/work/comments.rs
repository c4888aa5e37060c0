//! Comments on tasks. Their text is in no event.

use courant_api::events::work::{CommentAdded, TASK_COMMENT_ADDED};
use courant_api::work::{CommentCreate, CommentView};
use courant_api::{Permission, TaskId, TenantId};
use courant_core::place::Lies;

use super::tasks;
use crate::access::before;
use crate::change::{Change, Changed, fresh_id};
use crate::db::{Row, params, statements};
use crate::{Error, Page, PageKey, Store};

statements! { "comments":
    INSERT = "INSERT INTO task_comment (id, tenant_id, task_id, author_id, body, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    LIST = "SELECT id, task_id, author_id, body, created_at FROM task_comment
        WHERE tenant_id = $1 AND task_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4";
}

fn view(row: &Row) -> Result<CommentView, Error> {
    Ok(CommentView {
        id: row.get(0)?,
        task_id: row.get(1)?,
        author_id: row.get(2)?,
        body: row.get(3)?,
        created_at: row.get(4)?,
    })
}

impl Store {
    /// Comments on a task; needs `tasks.update` where it lies.
    pub async fn comment_add(
        &self,
        change: Change,
        task: TaskId,
        new: CommentCreate,
    ) -> Result<Changed<CommentView>, Error> {
        self.db
            .change(change, (task, new), |tx, (change, (task, new))| {
                Box::pin(async move {
                    let task = tasks::lock_for(tx, change, *task, Permission::TasksUpdate).await?;
                    let comment = CommentView {
                        id: fresh_id().into(),
                        task_id: task.id,
                        author_id: change.actor()?,
                        body: new.body.clone(),
                        created_at: change.now,
                    };
                    let row = params![
                        comment.id,
                        change.tenant_id,
                        comment.task_id,
                        comment.author_id,
                        &comment.body,
                        comment.created_at
                    ];
                    tx.execute(&INSERT, row).await?;
                    let told = CommentAdded {
                        comment_id: comment.id,
                        author_principal_id: comment.author_id,
                        body_length: i64::try_from(comment.body.chars().count()).unwrap_or(i64::MAX),
                    };
                    tx.append(change.event(&TASK_COMMENT_ADDED, task.id, Lies::own(task.workspace_id), &told)?);
                    Ok(comment)
                })
            })
            .await
    }

    /// The comments on a task, newest first.
    pub async fn comment_list(
        &self,
        tenant: TenantId,
        task: TaskId,
        key: PageKey,
        limit: i64,
    ) -> Result<Page<CommentView>, Error> {
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
