//! `/orgs/{org_id}/notification-integrations`, `/orgs/{org_id}/notification-deliveries`

use courant_api::notify::{
    AttemptView, DeliveriesRetried, DeliveriesRetry, DeliveryStatus, DeliveryView, IntegrationCreate, IntegrationPatch,
    IntegrationTested, IntegrationView, RetryResult,
};
use courant_api::{DeliveryId, ErrorCode, EventId, IntegrationId, Page, Permission, TenantId};
use courant_store::{AttemptQuery, DeliveryQuery};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{List, ListQuery};
use super::{changed, versioned};
use crate::app::App;
use crate::http::{Access, ApiError, Cx, Endpoint, Input, Reply};
use crate::ops::notify::Tested;
use crate::ops::{Actor, notify};

const NAMED: &str = "notification_integration:<its name>";
const ANY: &str = "at least one notification_integration:<name>; the list shows those";
/// This one list clamps its limit instead of refusing it.
const MAX_DELIVERIES: i64 = 200;

const INTEGRATIONS: List = List("notification-integrations");
const DELIVERIES: List = List("notification-deliveries");
const ATTEMPTS: List = List("notification-attempts");

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    use ErrorCode as E;
    vec![
        Endpoint::get("/api/v1/orgs/{org_id}/notification-integrations", integrations)
            .tag("notifications")
            .summary("Lists the integrations that the caller may read")
            .missing("org")
            .access(Access::On(&[Permission::NotificationIntegrationRead], ANY))
            .errors(&[E::InvalidCursor]),
        Endpoint::post("/api/v1/orgs/{org_id}/notification-integrations", create)
            .tag("notifications")
            .summary("Creates an integration")
            .description(
                "It is told of the events that follow its creation. Saving `journalTypes` also needs `events.read`.",
            )
            .missing("org")
            .access(Access::On(&[Permission::NotificationIntegrationCreate, Permission::EventsRead], NAMED))
            .errors(&[E::Conflict])
            .etag()
            .created(),
        Endpoint::get("/api/v1/orgs/{org_id}/notification-integrations/{id}", get)
            .tag("notifications")
            .summary("Reads an integration")
            .missing("notification integration")
            .access(Access::On(&[Permission::NotificationIntegrationRead], NAMED))
            .etag(),
        Endpoint::patch("/api/v1/orgs/{org_id}/notification-integrations/{id}", update)
            .tag("notifications")
            .summary("Changes an integration; secrets that are left out stay")
            .missing("notification integration")
            .access(Access::On(&[Permission::NotificationIntegrationUpdate, Permission::EventsRead], NAMED))
            .errors(&[E::Conflict]),
        Endpoint::delete("/api/v1/orgs/{org_id}/notification-integrations/{id}", delete)
            .tag("notifications")
            .summary("Deletes an integration with its unsent deliveries")
            .missing("notification integration")
            .access(Access::On(&[Permission::NotificationIntegrationDelete], NAMED)),
        Endpoint::get("/api/v1/orgs/{org_id}/notification-deliveries", deliveries)
            .tag("notifications")
            .summary("Lists deliveries that are under way or have failed")
            .description(
                "A delivery that arrived is gone, so an empty list means that nothing is failing. `limit` over 200 is \
                 taken for 200.",
            )
            .missing("org")
            .access(Access::On(&[Permission::NotificationIntegrationRead], ANY))
            .errors(&[E::NotFound, E::InvalidCursor]),
        Endpoint::post("/api/v1/orgs/{org_id}/notification-deliveries/{id}/retry", retry)
            .tag("notifications")
            .summary("Queues a dead delivery again")
            .missing("notification delivery")
            .access(Access::On(&[Permission::NotificationIntegrationUpdate], NAMED)),
        Endpoint::post("/api/v1/orgs/{org_id}/notification-deliveries:retry", retry_all)
            .tag("notifications")
            .summary("Queues all dead deliveries again that match")
            .description(
                "At most `limit` at once, the oldest first; who wants all sends it again until nothing remains. `dryRun` only \
                 counts.",
            )
            .missing("org")
            .access(Access::On(&[Permission::NotificationIntegrationUpdate], ANY))
            .errors(&[E::NotFound]),
        Endpoint::post("/api/v1/orgs/{org_id}/notification-integrations/{id}/test", test)
            .tag("notifications")
            .summary("Tells an integration something made up, now")
            .description(
                "Past the outbox, with the stored secret, also while it is disabled; nothing is stored. Without `eventType` the \
                 first of its `events` is told, so that what is verified is what it will receive.",
            )
            .missing("notification integration")
            .access(Access::On(&[Permission::NotificationIntegrationUpdate], NAMED)),
        Endpoint::get("/api/v1/orgs/{org_id}/notification-attempts", attempts)
            .tag("notifications")
            .summary("Lists what was tried lately")
            .description("One row an attempt, sent or not, newest first; kept for a few days, apart from the deliveries.")
            .missing("org")
            .access(Access::On(&[Permission::NotificationIntegrationRead], ANY))
            .errors(&[E::NotFound, E::InvalidCursor]),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Org {
    /// The org: the tenant's id.
    org_id: TenantId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByIntegration {
    /// The org: the tenant's id.
    org_id: TenantId,
    /// The integration's id.
    id: IntegrationId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ByDelivery {
    /// The org: the tenant's id.
    org_id: TenantId,
    /// The delivery's id.
    id: DeliveryId,
}

async fn integrations(cx: Cx<App>, input: Input<Org, ListQuery, ()>) -> Result<Reply<Page<IntegrationView>>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    let rows =
        notify::integration_list(&cx.app, &cx.caller, input.query.key(INTEGRATIONS)?, input.query.limit()).await?;
    Ok(Reply::ok(INTEGRATIONS.page(rows)))
}

async fn create(cx: Cx<App>, input: Input<Org, (), IntegrationCreate>) -> Result<Reply<IntegrationView>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    let done = notify::integration_create(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(versioned(StatusCode::CREATED, done, |v| v.version))
}

/// Another org's integration is answered as one that is not there.
fn in_org(cx: &Cx<App>, org: TenantId, what: &str) -> Result<(), ApiError> {
    notify::of_org(&cx.caller, org).map_err(|_| ApiError::not_found(what))
}

async fn get(cx: Cx<App>, input: Input<ByIntegration, (), ()>) -> Result<Reply<IntegrationView>, ApiError> {
    in_org(&cx, input.path.org_id, "notification integration")?;
    let view = notify::integration_get(&cx.app, &cx.caller, input.path.id).await?;
    let version = view.version;
    Ok(Reply::ok(view).etag(version))
}

async fn update(
    cx: Cx<App>,
    input: Input<ByIntegration, (), IntegrationPatch>,
) -> Result<Reply<IntegrationView>, ApiError> {
    in_org(&cx, input.path.org_id, "notification integration")?;
    let done = notify::integration_update(&cx.app, Actor::of(&cx), input.path.id, input.body).await?;
    Ok(versioned(StatusCode::OK, done, |v| v.version))
}

async fn delete(cx: Cx<App>, input: Input<ByIntegration, (), ()>) -> Result<Reply<()>, ApiError> {
    in_org(&cx, input.path.org_id, "notification integration")?;
    notify::integration_delete(&cx.app, Actor::of(&cx), input.path.id).await?;
    Ok(Reply::no_content())
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeliveriesQuery {
    /// Only these statuses; repeatable. None: every stored row.
    #[serde(default)]
    status: Vec<DeliveryStatus>,
    /// Only those to this integration.
    integration_id: Option<IntegrationId>,
    /// Only those that announce one of these, `journal_event` among them; repeatable.
    #[serde(default)]
    event_type: Vec<Tested>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most rows in the page; 50 when absent, and no more than 200.
    #[schemars(range(min = 1))]
    limit: Option<i64>,
}

async fn deliveries(
    cx: Cx<App>,
    input: Input<Org, DeliveriesQuery, ()>,
) -> Result<Reply<Page<DeliveryView>>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    let query = input.query;
    let limit = query.limit.unwrap_or(50).min(MAX_DELIVERIES);
    let key = query.cursor.as_deref().map(|cursor| DELIVERIES.id(cursor)).transpose()?;
    let wanted = DeliveryQuery {
        statuses: query.status,
        integration_id: query.integration_id,
        event_types: query.event_type.iter().map(|announced| announced.as_str().to_owned()).collect(),
    };
    let rows = notify::delivery_list(&cx.app, &cx.caller, wanted, key, limit).await?;
    Ok(Reply::ok(DELIVERIES.page(rows)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TestQuery {
    /// What is told: an announced type, or `journal_event`.
    #[serde(alias = "event_type")]
    event_type: Option<Tested>,
}

async fn test(cx: Cx<App>, input: Input<ByIntegration, TestQuery, ()>) -> Result<Reply<IntegrationTested>, ApiError> {
    in_org(&cx, input.path.org_id, "notification integration")?;
    let event_type = input.query.event_type;
    Ok(Reply::ok(notify::integration_test(&cx.app, &cx.caller, input.path.id, event_type).await?))
}

async fn retry_all(cx: Cx<App>, input: Input<Org, (), DeliveriesRetry>) -> Result<Reply<DeliveriesRetried>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    let done = notify::deliveries_retry(&cx.app, Actor::of(&cx), input.body).await?;
    Ok(changed(StatusCode::OK, done))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AttemptsQuery {
    /// Only those to this integration.
    integration_id: Option<IntegrationId>,
    /// Only those of this delivery.
    delivery_id: Option<DeliveryId>,
    /// Only those that told of this event.
    event_id: Option<EventId>,
    /// The `nextCursor` of the page before.
    cursor: Option<String>,
    /// Most rows in the page; 50 when absent.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<i64>,
}

async fn attempts(cx: Cx<App>, input: Input<Org, AttemptsQuery, ()>) -> Result<Reply<Page<AttemptView>>, ApiError> {
    notify::of_org(&cx.caller, input.path.org_id)?;
    let AttemptsQuery { integration_id, delivery_id, event_id, cursor, limit } = input.query;
    let page = ListQuery { cursor, limit };
    let query = AttemptQuery { integration_id, delivery_id, event_id };
    let rows = notify::attempt_list(&cx.app, &cx.caller, query, page.key(ATTEMPTS)?, page.limit()).await?;
    Ok(Reply::ok(ATTEMPTS.page(rows)))
}

async fn retry(cx: Cx<App>, input: Input<ByDelivery, (), ()>) -> Result<Reply<RetryResult>, ApiError> {
    in_org(&cx, input.path.org_id, "notification delivery")?;
    let done = notify::delivery_retry(&cx.app, Actor::of(&cx), input.path.id).await?;
    Ok(changed(StatusCode::OK, done))
}
