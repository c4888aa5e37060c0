//! `WS /events/ws`

use courant_api::{Permission, WorkspaceId};
use courant_store::{EventQuery, Start};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use super::journal::{PLACE, decode, filter};
use crate::app::App;
use crate::http::socket::{Channel, Ending};
use crate::http::{Access, ApiError, Cx, Endpoint};
use crate::ops::stream;

pub(super) fn endpoint() -> Endpoint<App> {
    Endpoint::socket("/api/v1/events/ws", follow)
        .tag("journal")
        .summary("Follows the journal over a WebSocket")
        .description(
            "Sends the events after `after` and then each as it is committed, a text message an event as in a page. A \
             filtered reader that matches nothing is sent `{\"type\":\"progress\",\"cursor\":…}` now and then, which has no \
             `id`: go on from that cursor. Every failure is told by a close code after the handshake; its reason is the \
             error code. What the client sends is ignored.",
        )
        .access(Access::On(&[Permission::EventsRead], PLACE))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FollowQuery {
    /// Begin after this cursor; absent or `0`: at the first retained event.
    after: Option<String>,
    /// Type prefixes, repeatable and comma-separated, at most 20: `approval.` is every approval event. None: all types.
    #[serde(default)]
    types: Vec<String>,
    /// Only events of this workspace and what lies below it.
    workspace_id: Option<WorkspaceId>,
    /// Only events about this kind of entity.
    entity_type: Option<String>,
    /// Only events about this entity; needs `entityType`.
    entity_id: Option<String>,
}

impl FollowQuery {
    fn read(self) -> Result<EventQuery, ApiError> {
        let start = match self.after.as_deref() {
            None | Some("0") => Start::First,
            Some(cursor) => Start::After(decode(cursor)?),
        };
        filter(&self.types, self.workspace_id, self.entity_type, self.entity_id, start)
    }
}

fn follow(cx: Cx<App>, query: FollowQuery, channel: &mut Channel) -> BoxFuture<'_, Ending> {
    Box::pin(async move {
        match query.read() {
            Ok(query) => stream::events_follow(&cx.app, &cx.caller, query, channel).await,
            Err(refused) => refused.into(),
        }
    })
}
