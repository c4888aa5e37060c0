//! The stacks of a tenant as they depend on one another, for finding what is wrong with that.

use courant_api::{StackId, TenantId};
use courant_core::findings::Stack;

use crate::db::{params, statements};
use crate::{Error, Store};

statements! { "findings":
    STACKS = "SELECT s.id, s.repository, s.path FROM stack s WHERE s.tenant_id = $1 AND s.deleted_at IS NULL ORDER BY s.id";
    NEEDS = "SELECT n.stack_id, n.depends_on_id FROM stack_dependency n WHERE n.tenant_id = $1
        ORDER BY n.stack_id, n.depends_on_id LIMIT $2";
}

impl Store {
    /// All stacks of a tenant, oldest first, with at most so many dependencies.
    pub async fn stack_graph(&self, tenant: TenantId, dependencies: i64) -> Result<Vec<Stack>, Error> {
        self.db
            .read((tenant, dependencies), |tx, (tenant, dependencies)| {
                Box::pin(async move {
                    let mut stacks = Vec::new();
                    for row in tx.query(&STACKS, params![*tenant]).await? {
                        let (repository, path) = (row.get(1)?, row.get(2)?);
                        stacks.push(Stack { id: row.get(0)?, repository, path, depends_on: Vec::new() });
                    }
                    // Both are in the order of the stacks' ids: one walk joins them.
                    let mut at = 0;
                    for row in tx.query(&NEEDS, params![*tenant, *dependencies]).await? {
                        let owner: StackId = row.get(0)?;
                        while stacks.get(at).is_some_and(|stack| stack.id < owner) {
                            at += 1;
                        }
                        if let Some(stack) = stacks.get_mut(at).filter(|stack| stack.id == owner) {
                            stack.depends_on.push(row.get(1)?);
                        }
                    }
                    Ok(stacks)
                })
            })
            .await
    }
}
