//! What tasks and their runs refer to: that it exists in the tenant.

use courant_api::{ApprovalId, ArtifactId, TenantId};

use crate::Error;
use crate::db::{Tx, params, statements};

statements! { "referred":
    APPROVAL = "SELECT id FROM approval WHERE tenant_id = $1 AND id = $2";
    ARTIFACT = "SELECT id FROM artifact WHERE tenant_id = $1 AND id = $2";
}

/// That the approval exists in the tenant.
pub(super) async fn approval_exists(tx: &mut Tx, tenant: TenantId, id: ApprovalId) -> Result<(), Error> {
    tx.query_opt(&APPROVAL, params![tenant, id]).await?.map(|_| ()).ok_or(Error::NotFound("approval"))
}

/// That the artifact exists in the tenant.
pub(super) async fn artifact_exists(tx: &mut Tx, tenant: TenantId, id: ArtifactId) -> Result<(), Error> {
    tx.query_opt(&ARTIFACT, params![tenant, id]).await?.map(|_| ()).ok_or(Error::NotFound("artifact"))
}
