//! `/operations/journal`, `/operations/journal:prune`, `/consumers`

use courant_api::operations::{ConsumerPut, ConsumerView, JournalPrune, JournalPruned, JournalStatus};
use courant_api::{ErrorCode, Permission};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::changed;
use super::journal::decode;
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::{Actor, retention};

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    vec![
        Endpoint::get("/api/v1/operations/journal", status)
            .tag("retention")
            .summary("Shows how the journal stands: head, horizon and who holds it, floor, consumers and their lag")
            .access(Access::On(&[Permission::OperationsRead], "the tenant")),
        Endpoint::post("/api/v1/operations/journal:prune", prune)
            .tag("retention")
            .summary("Deletes the oldest events for good")
            .description(
                "Deletes from the oldest event on, up to the first that is younger than `beforeSeconds`, in batches, and \
                 raises the floor; cursors below it are refused from then on. A prune that would pass a consumer deletes \
                 nothing and names it. One that was cut off is ended by the server within a minute.",
            )
            .access(Access::On(&[Permission::OperationsManage], "the tenant"))
            .errors(&[E::RetentionBlockedByConsumer, E::Conflict]),
        Endpoint::put("/api/v1/consumers/{name}", put)
            .tag("retention")
            .summary("Has retention wait for a consumer until its lease ends")
            .description(
                "The lease may move forward and backward, but not below the floor. Reading never looks at it: a consumer \
                 without one reads as well, and may find its cursor below the floor one day.",
            )
            .missing("consumer")
            .access(Access::On(&[Permission::EventsRead], "the tenant"))
            .errors(&[
                E::InvalidCursor, E::UnsupportedCursorVersion, E::CursorFromOtherJournal, E::CursorBelowJournalFloor,
                E::Conflict,
            ]),
        Endpoint::delete("/api/v1/consumers/{name}", delete)
            .tag("retention")
            .summary("Has retention wait for a consumer no longer")
            .missing("consumer")
            .versioned(false)
            .access(Access::On(&[Permission::EventsRead], "the tenant")),
    ]
}

async fn status(cx: Cx<App>, _: Input<(), (), ()>) -> Result<Reply<JournalStatus>, ApiError> {
    Ok(Reply::ok(retention::journal_status(&cx.app, &cx.caller).await?))
}

async fn prune(cx: Cx<App>, input: Input<(), (), JournalPrune>) -> Result<Reply<JournalPruned>, ApiError> {
    let done = retention::journal_prune(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(changed(StatusCode::OK, done))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByName {
    /// The consumer's name: 1 to 100 letters, digits, `.`, `_`, `:` and `-`; not `announcer`.
    #[schemars(regex(pattern = "^(?!announcer$)[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$"))]
    name: String,
}

async fn put(cx: Cx<App>, input: Input<ByName, (), ConsumerPut>) -> Result<Reply<ConsumerView>, ApiError> {
    let ConsumerPut { cursor, expires_at } = input.body;
    let cursor = decode(&cursor)?;
    Ok(Reply::ok(retention::consumer_put(&cx.app, Actor::of(&cx), input.path.name, cursor, expires_at).await?))
}

async fn delete(cx: Cx<App>, input: Input<ByName, (), ()>) -> Result<Reply<()>, ApiError> {
    retention::consumer_delete(&cx.app, Actor::of(&cx), input.path.name).await?;
    Ok(Reply::no_content())
}
