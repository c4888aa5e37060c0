//! Tokens with which one principal decides one approval: their hashes, never themselves.

use courant_api::approvals::DecisionToken;
use courant_api::{ApprovalId, Permission, PrincipalId, Timestamp};
use courant_core::access::{Ceiling, Purpose};

use super::approvals::{check_pending, is_eligible, lock};
use crate::access::{grants, guard, place, principals};
use crate::change::{Change, Changed};
use crate::db::{params, statements};
use crate::{Caller, Credential, Error, Rights, Store};

statements! { "decision_tokens":
    INSERT = "INSERT INTO decision_token (hash, tenant_id, approval_id, principal_id, channel, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    CALLER = "SELECT d.tenant_id, d.principal_id, d.approval_id, d.channel, d.expires_at FROM decision_token d
        JOIN principal p ON p.tenant_id = d.tenant_id AND p.id = d.principal_id
        WHERE d.hash = $1 AND d.expires_at > $2 AND p.status = 'active'";
    FORGET = "DELETE FROM decision_token WHERE expires_at <= $1";
}

/// A token that is about to be stored: the secret goes back to who asked for it and nowhere else.
#[derive(Clone)]
pub struct DecisionTokenDraft {
    /// Shown once.
    pub secret: String,
    /// SHA-256 of the secret.
    pub hash: [u8; 32],
    /// Who decides with it.
    pub principal_id: PrincipalId,
    /// Through which channel.
    pub channel: String,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl std::fmt::Debug for DecisionTokenDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecisionTokenDraft").field("principal_id", &self.principal_id).finish_non_exhaustive()
    }
}

impl Store {
    /// Makes a token for somebody whom the approval asks; needs `approvals.manage` where the approval lies.
    pub async fn decision_token_create(
        &self,
        change: Change,
        id: ApprovalId,
        token: DecisionTokenDraft,
    ) -> Result<Changed<DecisionToken>, Error> {
        self.db
            .change(change, (id, token), |tx, (change, (id, token))| {
                Box::pin(async move {
                    let approval = lock(tx, change.tenant_id, *id).await?;
                    guard(tx, change, Permission::ApprovalsManage, &place(approval.workspace_id)).await?;
                    principals::exists(tx, change.tenant_id, token.principal_id).await?;
                    if !is_eligible(tx, change.tenant_id, &approval, token.principal_id).await? {
                        return Err(Error::Conflict("the principal is not one whom the approval asks".into()));
                    }
                    check_pending(&approval, change.now)?;
                    let row = params![
                        token.hash.as_slice(),
                        change.tenant_id,
                        *id,
                        token.principal_id,
                        &token.channel,
                        token.expires_at
                    ];
                    tx.execute(&INSERT, row).await?;
                    Ok(DecisionToken {
                        approval_id: *id,
                        principal_id: token.principal_id,
                        expires_at: token.expires_at,
                        token: Some(token.secret.clone()),
                    })
                })
            })
            .await
    }

    /// Who decides with the token of this hash, unless it is over or its principal is disabled.
    pub async fn caller_by_decision_token(&self, hash: [u8; 32], now: Timestamp) -> Result<Option<Caller>, Error> {
        self.db
            .read((hash, now, self.authority.clone()), |tx, (hash, now, authority)| {
                Box::pin(async move {
                    let Some(row) = tx.query_opt(&CALLER, params![hash.as_slice(), *now]).await? else {
                        return Ok(None);
                    };
                    let (tenant_id, principal_id) = (row.get(0)?, row.get(1)?);
                    let grants = grants::of(tx, tenant_id, principal_id).await?;
                    Ok(Some(Caller {
                        tenant_id,
                        principal_id,
                        rights: Rights::new(authority, tenant_id, principal_id, grants).below(Ceiling::Decision),
                        credential: Credential::DecisionToken(*hash),
                        expires_at: Some(row.get(4)?),
                        purpose: Some(Purpose::Approval(row.get(2)?)),
                        channel: Some(row.get(3)?),
                    }))
                })
            })
            .await
    }

    /// Forgets tokens that ended by `until`.
    pub async fn decision_tokens_forget(&self, until: Timestamp) -> Result<(), Error> {
        self.db
            .write(until, |tx, until| Box::pin(async move { tx.execute(&FORGET, params![*until]).await.map(|_| ()) }))
            .await
            .map(|_| ())
    }
}
