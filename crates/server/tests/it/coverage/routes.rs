//! One request for every route that works as it stands, and what a caller must hold for it.

/// A route and its sample request. `{name}` stands for a thing of the tenant.
pub struct Route {
    pub method: &'static str,
    pub template: &'static str,
    pub path: &'static str,
    pub body: Option<&'static str>,
    pub who: Who,
    /// The status of its success.
    pub status: u16,
}

impl Route {
    /// Whether a request that is no handshake cannot succeed.
    pub fn is_socket(&self) -> bool {
        self.status == 101
    }
}

/// Who may send it.
pub enum Who {
    /// Everybody, without a credential.
    Everybody,
    /// Who knows the server's bootstrap secret.
    Bootstrap,
    /// Who holds all of these.
    Holders(&'static [Need]),
    /// Who holds one of these.
    OneOf(&'static [Need]),
    /// Whoever has a credential.
    Caller,
}

/// A permission that the sample needs, where it must be held, and how a caller without it is refused.
pub struct Need {
    pub permission: &'static str,
    pub on: &'static str,
    pub refused: u16,
}

const fn need(permission: &'static str, on: &'static str) -> Need {
    Need { permission, on, refused: 403 }
}

/// A refusal looks like absence: the right hangs on a name that must not be betrayed.
const fn hidden(permission: &'static str, on: &'static str) -> Need {
    Need { permission, on, refused: 404 }
}

macro_rules! routes {
    ($($method:ident $template:literal as $path:literal $(with $body:literal)? => $status:literal, $who:expr;)+) => {
        pub const ROUTES: &[Route] = &[$(Route {
            method: stringify!($method),
            template: $template,
            path: $path,
            body: [$($body)?].first().copied(),
            who: $who,
            status: $status,
        }),+];
    };
}

use Who::{Bootstrap, Caller, Everybody, Holders, OneOf};

routes! {
    GET "/api/v1/events" as "/api/v1/events?workspaceId={workspace}" => 200,
        Holders(&[need("events.read", "workspace:{workspace}")]);
    GET "/api/v1/events/ws" as "/api/v1/events/ws?workspaceId={workspace}" => 101,
        Holders(&[need("events.read", "workspace:{workspace}")]);
    POST "/api/v1/events" as "/api/v1/events"
        with r#"{"events":[{"type":"{type}","entityType":"order","entityId":"o_2","workspaceId":"{workspace}","payload":{}}]}"# => 201,
        Holders(&[need("events.append", "workspace:{workspace}")]);
    GET "/api/v1/events/{id}" as "/api/v1/events/{event}" => 200,
        Holders(&[need("events.read", "tenant")]);
    GET "/api/v1/event-types" as "/api/v1/event-types" => 200,
        Holders(&[need("event_types.read", "tenant")]);
    GET "/api/v1/event-types/{type}" as "/api/v1/event-types/{type}" => 200,
        Holders(&[need("event_types.read", "tenant")]);
    PUT "/api/v1/event-types/{type}/versions/{n}" as "/api/v1/event-types/{type}/versions/2"
        with r#"{"entityType":"order","schema":{"type":"object","properties":{
            "amount":{"type":"integer"},"name":{"type":"string"},"note":{"type":"string"}}}}"# => 200,
        Holders(&[need("event_types.manage", "tenant")]);
    GET "/api/v1/orgs/{org_id}/notification-integrations" as "/api/v1/orgs/{org}/notification-integrations" => 200,
        Holders(&[need("notification_integration.read", "notification_integration:{name}")]);
    POST "/api/v1/orgs/{org_id}/notification-integrations" as "/api/v1/orgs/{org}/notification-integrations"
        with r##"{"name":"{unused}","provider":"slack","journalTypes":["order."],"workspaceId":"{workspace}",
            "providerConfig":{"defaultChannel":"#ops"},"authConfig":{"botToken":"xoxb-1"}}"## => 201,
        Holders(&[
            need("notification_integration.create", "notification_integration:{unused}"),
            need("events.read", "workspace:{workspace}"),
        ]);
    GET "/api/v1/orgs/{org_id}/notification-integrations/{id}"
        as "/api/v1/orgs/{org}/notification-integrations/{integration}" => 200,
        Holders(&[hidden("notification_integration.read", "notification_integration:{name}")]);
    PATCH "/api/v1/orgs/{org_id}/notification-integrations/{id}"
        as "/api/v1/orgs/{org}/notification-integrations/{integration}"
        with r#"{"journalTypes":["order."],"workspaceId":"{workspace}"}"# => 200,
        Holders(&[
            hidden("notification_integration.update", "notification_integration:{name}"),
            need("events.read", "workspace:{workspace}"),
        ]);
    DELETE "/api/v1/orgs/{org_id}/notification-integrations/{id}"
        as "/api/v1/orgs/{org}/notification-integrations/{integration}" => 204,
        Holders(&[hidden("notification_integration.delete", "notification_integration:{name}")]);
    GET "/api/v1/orgs/{org_id}/notification-deliveries" as "/api/v1/orgs/{org}/notification-deliveries" => 200,
        Holders(&[need("notification_integration.read", "notification_integration:{name}")]);
    POST "/api/v1/orgs/{org_id}/notification-deliveries/{id}/retry"
        as "/api/v1/orgs/{org}/notification-deliveries/{delivery}/retry" => 200,
        Holders(&[need("notification_integration.update", "notification_integration:{name}")]);
    POST "/api/v1/orgs/{org_id}/notification-deliveries:retry" as "/api/v1/orgs/{org}/notification-deliveries:retry"
        with r#"{"integrationId":"{integration}","dryRun":true}"# => 200,
        Holders(&[need("notification_integration.update", "notification_integration:{name}")]);
    POST "/api/v1/orgs/{org_id}/notification-integrations/{id}/test"
        as "/api/v1/orgs/{org}/notification-integrations/{integration}/test" => 200,
        Holders(&[hidden("notification_integration.update", "notification_integration:{name}")]);
    GET "/api/v1/orgs/{org_id}/notification-attempts" as "/api/v1/orgs/{org}/notification-attempts?integrationId={integration}" => 200,
        Holders(&[need("notification_integration.read", "notification_integration:{name}")]);
    POST "/api/v1/bootstrap" as "/api/v1/bootstrap" with r#"{"name":"umbrella"}"# => 201, Bootstrap;
    GET "/api/v1/principals" as "/api/v1/principals" => 200, Holders(&[need("principals.read", "tenant")]);
    POST "/api/v1/principals" as "/api/v1/principals" with r#"{"kind":"agent","displayName":"planner"}"# => 201,
        Holders(&[need("principals.manage", "tenant")]);
    GET "/api/v1/principals/{id}" as "/api/v1/principals/{principal}" => 200,
        Holders(&[need("principals.read", "tenant")]);
    PATCH "/api/v1/principals/{id}" as "/api/v1/principals/{principal}" with r#"{"displayName":"renamed"}"# => 200,
        Holders(&[need("principals.manage", "tenant")]);
    GET "/api/v1/api-keys" as "/api/v1/api-keys" => 200, Holders(&[need("api_keys.read", "tenant")]);
    POST "/api/v1/api-keys" as "/api/v1/api-keys" with r#"{"principalId":"{principal}"}"# => 201,
        Holders(&[need("api_keys.manage", "tenant")]);
    POST "/api/v1/api-keys/{id}:revoke" as "/api/v1/api-keys/{key}:revoke" => 200,
        Holders(&[need("api_keys.manage", "tenant")]);
    GET "/api/v1/grants" as "/api/v1/grants" => 200, Holders(&[need("grants.read", "tenant")]);
    POST "/api/v1/grants" as "/api/v1/grants"
        with r#"{"principalId":"{principal}","permission":"grants.manage","resource":"workspace:{workspace}"}"# => 201,
        Holders(&[need("grants.manage", "tenant")]);
    DELETE "/api/v1/grants/{id}" as "/api/v1/grants/{grant}" => 204, Holders(&[need("grants.manage", "tenant")]);
    GET "/api/v1/identity-bindings" as "/api/v1/identity-bindings" => 200,
        Holders(&[need("identity_bindings.read", "tenant")]);
    POST "/api/v1/identity-bindings" as "/api/v1/identity-bindings"
        with r#"{"issuer":"{issuer}","subject":"{unused}","principalId":"{nobody}"}"# => 201,
        Holders(&[need("identity_bindings.manage", "tenant")]);
    GET "/api/v1/identity-bindings/{id}" as "/api/v1/identity-bindings/{binding}" => 200,
        Holders(&[need("identity_bindings.read", "tenant")]);
    DELETE "/api/v1/identity-bindings/{id}" as "/api/v1/identity-bindings/{binding}" => 204,
        Holders(&[need("identity_bindings.manage", "tenant")]);
    GET "/api/v1/workspaces" as "/api/v1/workspaces" => 200, Holders(&[need("workspaces.read", "tenant")]);
    POST "/api/v1/workspaces" as "/api/v1/workspaces" with r#"{"name":"below","parentId":"{workspace}"}"# => 201,
        Holders(&[need("workspaces.manage", "workspace:{workspace}")]);
    GET "/api/v1/workspaces/{id}" as "/api/v1/workspaces/{workspace}" => 200,
        Holders(&[need("workspaces.read", "workspace:{workspace}")]);
    PATCH "/api/v1/workspaces/{id}" as "/api/v1/workspaces/{workspace}" with r#"{"name":"renamed"}"# => 200,
        Holders(&[need("workspaces.manage", "workspace:{workspace}")]);
    POST "/api/v1/workspaces/{id}:move" as "/api/v1/workspaces/{workspace}:move" with r#"{"parentId":"{parent}"}"# => 200,
        Holders(&[need("workspaces.manage", "tenant")]);
    POST "/api/v1/workspaces/{id}:archive" as "/api/v1/workspaces/{workspace}:archive" => 200,
        Holders(&[need("workspaces.manage", "workspace:{workspace}")]);
    GET "/api/v1/roles" as "/api/v1/roles" => 200, Holders(&[need("roles.read", "tenant")]);
    POST "/api/v1/roles" as "/api/v1/roles" with r#"{"key":"{unused}","name":"Role","workspaceId":"{workspace}"}"# => 201,
        Holders(&[need("roles.manage", "workspace:{workspace}")]);
    GET "/api/v1/roles/{id}" as "/api/v1/roles/{role}" => 200, Holders(&[need("roles.read", "workspace:{workspace}")]);
    PATCH "/api/v1/roles/{id}" as "/api/v1/roles/{role}" with r#"{"name":"renamed"}"# => 200,
        Holders(&[need("roles.manage", "workspace:{workspace}")]);
    GET "/api/v1/roles/{id}/assignments" as "/api/v1/roles/{role}/assignments" => 200,
        Holders(&[need("roles.read", "workspace:{workspace}")]);
    POST "/api/v1/roles/{id}/assignments" as "/api/v1/roles/{role}/assignments"
        with r#"{"principalId":"{principal}","workspaceId":"{parent}"}"# => 201,
        Holders(&[need("roles.manage", "workspace:{parent}")]);
    DELETE "/api/v1/roles/{id}/assignments/{assignment_id}" as "/api/v1/roles/{role}/assignments/{assignment}" => 204,
        Holders(&[need("roles.manage", "workspace:{workspace}")]);
    GET "/api/v1/roles/{id}/principals" as "/api/v1/roles/{role}/principals?workspaceId={workspace}" => 200,
        OneOf(&[need("org.read", "workspace:{workspace}"), need("principals.read", "workspace:{workspace}")]);
    POST "/api/v1/authz:check" as "/api/v1/authz:check"
        with r#"{"checks":[{"permission":"events.read","resource":"workspace:{workspace}"}]}"# => 200, Caller;
    GET "/api/v1/tasks" as "/api/v1/tasks?workspaceId={workspace}" => 200,
        Holders(&[need("tasks.read", "workspace:{workspace}")]);
    POST "/api/v1/tasks" as "/api/v1/tasks"
        with r#"{"title":"Task","workspaceId":"{workspace}","assigneeId":"{principal}"}"# => 201,
        Holders(&[need("tasks.create", "workspace:{workspace}")]);
    GET "/api/v1/tasks/{id}" as "/api/v1/tasks/{task}" => 200,
        Holders(&[need("tasks.read", "workspace:{workspace}")]);
    PATCH "/api/v1/tasks/{id}" as "/api/v1/tasks/{task}" with r#"{"title":"Other"}"# => 200,
        Holders(&[need("tasks.update", "workspace:{workspace}")]);
    POST "/api/v1/tasks/{id}:claim" as "/api/v1/tasks/{task}:claim" with "{}" => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    POST "/api/v1/tasks/{id}:complete" as "/api/v1/tasks/{task}:complete" with "{}" => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    GET "/api/v1/tasks/{id}/comments" as "/api/v1/tasks/{task}/comments" => 200,
        Holders(&[need("tasks.read", "workspace:{workspace}")]);
    POST "/api/v1/tasks/{id}/comments" as "/api/v1/tasks/{task}/comments" with r#"{"body":"Done soon."}"# => 201,
        Holders(&[need("tasks.update", "workspace:{workspace}")]);
    POST "/api/v1/claims/{id}:release" as "/api/v1/claims/{claim}:release" with "{}" => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}"), need("tasks.update", "workspace:{workspace}")]);
    GET "/api/v1/runs" as "/api/v1/runs?taskId={task}" => 200,
        Holders(&[need("tasks.read", "workspace:{workspace}")]);
    POST "/api/v1/runs" as "/api/v1/runs" with r#"{"claimId":"{idle}","fencingToken":1}"# => 201,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    GET "/api/v1/runs/{id}" as "/api/v1/runs/{run}" => 200,
        Holders(&[need("tasks.read", "workspace:{workspace}")]);
    POST "/api/v1/runs/{id}:succeed" as "/api/v1/runs/{run}:succeed" with r#"{"completeTask":true}"# => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    POST "/api/v1/runs/{id}:fail" as "/api/v1/runs/{run}:fail" with r#"{"reason":"no disk"}"# => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    POST "/api/v1/runs/{id}:cancel" as "/api/v1/runs/{run}:cancel" with r#"{"reason":"not now"}"# => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    POST "/api/v1/runs/{id}:suspend" as "/api/v1/runs/{run}:suspend"
        with r#"{"reason":"waits","waitingForApprovalId":"{approval}"}"# => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    GET "/api/v1/tasks/{id}/verifications" as "/api/v1/tasks/{task}/verifications" => 200,
        Holders(&[need("tasks.read", "workspace:{workspace}")]);
    POST "/api/v1/tasks/{id}/verifications" as "/api/v1/tasks/{task}/verifications"
        with r#"{"checks":["tests"]}"# => 201,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    POST "/api/v1/verifications/{id}:pass" as "/api/v1/verifications/{verification}:pass"
        with r#"{"results":[{"check":"tests","passed":true}]}"# => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    POST "/api/v1/verifications/{id}:fail" as "/api/v1/verifications/{verification}:fail"
        with r#"{"failedCheck":"tests"}"# => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    GET "/api/v1/approvals" as "/api/v1/approvals?workspaceId={workspace}" => 200,
        Holders(&[need("approvals.read", "workspace:{workspace}")]);
    POST "/api/v1/approvals" as "/api/v1/approvals" with r#"{"taskId":"{task}","assignedPrincipalId":"{principal}"}"# => 201,
        Holders(&[need("approvals.request", "workspace:{workspace}")]);
    GET "/api/v1/approvals/{id}" as "/api/v1/approvals/{approval}" => 200,
        Holders(&[need("approvals.read", "workspace:{workspace}")]);
    POST "/api/v1/approvals/{id}:approve" as "/api/v1/approvals/{approval}:approve" with "{}" => 200,
        Holders(&[need("approvals.decide", "workspace:{workspace}")]);
    POST "/api/v1/approvals/{id}:reject" as "/api/v1/approvals/{approval}:reject" with "{}" => 200,
        Holders(&[need("approvals.decide", "workspace:{workspace}")]);
    POST "/api/v1/approvals/{id}:cancel" as "/api/v1/approvals/{approval}:cancel" => 200,
        Holders(&[need("approvals.manage", "workspace:{workspace}")]);
    POST "/api/v1/approvals/{id}/decision-tokens" as "/api/v1/approvals/{approval}/decision-tokens"
        with r#"{"principalId":"{principal}","channel":"slack"}"# => 201,
        Holders(&[need("approvals.manage", "workspace:{workspace}")]);
    GET "/api/v1/me/approvals" as "/api/v1/me/approvals" => 200, Caller;
    GET "/api/v1/artifacts" as "/api/v1/artifacts?workspaceId={workspace}" => 200,
        Holders(&[need("artifacts.read", "workspace:{workspace}")]);
    POST "/api/v1/artifacts" as "/api/v1/artifacts"
        with r#"{"type":"report","name":"plan.txt","taskId":"{task}","supersedesArtifactId":"{artifact}"}"# => 201,
        Holders(&[need("artifacts.create", "workspace:{workspace}")]);
    GET "/api/v1/artifacts/{id}" as "/api/v1/artifacts/{artifact}" => 200,
        Holders(&[need("artifacts.read", "workspace:{workspace}")]);
    GET "/api/v1/goals" as "/api/v1/goals?workspaceId={workspace}" => 200,
        Holders(&[need("goals.read", "workspace:{workspace}")]);
    POST "/api/v1/goals" as "/api/v1/goals"
        with r#"{"title":"Fewer pages","workspaceId":"{workspace}"}"# => 201,
        Holders(&[need("goals.manage", "workspace:{workspace}")]);
    GET "/api/v1/goals/{id}" as "/api/v1/goals/{goal}" => 200,
        Holders(&[need("goals.read", "workspace:{workspace}")]);
    PATCH "/api/v1/goals/{id}" as "/api/v1/goals/{goal}"
        with r#"{"title":"No pages"}"# => 200,
        Holders(&[need("goals.manage", "workspace:{workspace}")]);
    GET "/api/v1/rules" as "/api/v1/rules?workspaceId={workspace}" => 200,
        Holders(&[need("rules.read", "workspace:{workspace}")]);
    POST "/api/v1/rules" as "/api/v1/rules"
        with r#"{"key":"r{unused}","workspaceId":"{workspace}","definition":{"every":"night"}}"# => 201,
        Holders(&[need("rules.manage", "workspace:{workspace}")]);
    GET "/api/v1/rules/{id}" as "/api/v1/rules/{rule}" => 200,
        Holders(&[need("rules.read", "workspace:{workspace}")]);
    PATCH "/api/v1/rules/{id}" as "/api/v1/rules/{rule}"
        with r#"{"definition":{"every":"day"}}"# => 200,
        Holders(&[need("rules.manage", "workspace:{workspace}")]);
    POST "/api/v1/rules/{id}:enable" as "/api/v1/rules/{rule}:enable" => 200,
        Holders(&[need("rules.manage", "workspace:{workspace}")]);
    POST "/api/v1/rules/{id}:disable" as "/api/v1/rules/{rule}:disable" => 200,
        Holders(&[need("rules.manage", "workspace:{workspace}")]);
    POST "/api/v1/rules/{id}:archive" as "/api/v1/rules/{rule}:archive" => 200,
        Holders(&[need("rules.manage", "workspace:{workspace}")]);
    GET "/api/v1/projects" as "/api/v1/projects?workspaceId={workspace}" => 200,
        Holders(&[need("projects.read", "workspace:{workspace}")]);
    POST "/api/v1/projects" as "/api/v1/projects"
        with r#"{"key":"p{unused}","name":"Billing","workspaceId":"{workspace}"}"# => 201,
        Holders(&[need("projects.manage", "workspace:{workspace}")]);
    GET "/api/v1/projects/{id}" as "/api/v1/projects/{project}" => 200,
        Holders(&[need("projects.read", "workspace:{workspace}")]);
    PATCH "/api/v1/projects/{id}" as "/api/v1/projects/{project}"
        with r#"{"name":"Bills"}"# => 200,
        Holders(&[need("projects.manage", "workspace:{workspace}")]);
    POST "/api/v1/projects/{id}:archive" as "/api/v1/projects/{project}:archive" => 200,
        Holders(&[need("projects.manage", "workspace:{workspace}")]);
    GET "/api/v1/skill-invocations" as "/api/v1/skill-invocations?workspaceId={workspace}" => 200,
        Holders(&[need("tasks.read", "workspace:{workspace}")]);
    POST "/api/v1/skill-invocations" as "/api/v1/skill-invocations"
        with r#"{"taskId":"{task}","skill":"translate","skillVersion":"1.2"}"# => 201,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    GET "/api/v1/skill-invocations/{id}" as "/api/v1/skill-invocations/{skill}" => 200,
        Holders(&[need("tasks.read", "workspace:{workspace}")]);
    POST "/api/v1/skill-invocations/{id}:claim" as "/api/v1/skill-invocations/{wanted}:claim" => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}")]);
    POST "/api/v1/skill-invocations/{id}:retry" as "/api/v1/skill-invocations/{skill}:retry"
        with r#"{"errorCode":"rate_limited"}"# => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}"), need("tasks.update", "workspace:{workspace}")]);
    POST "/api/v1/skill-invocations/{id}:succeed" as "/api/v1/skill-invocations/{skill}:succeed" => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}"), need("tasks.update", "workspace:{workspace}")]);
    POST "/api/v1/skill-invocations/{id}:fail" as "/api/v1/skill-invocations/{skill}:fail"
        with r#"{"errorCode":"no_model"}"# => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}"), need("tasks.update", "workspace:{workspace}")]);
    POST "/api/v1/skill-invocations/{id}:cancel" as "/api/v1/skill-invocations/{wanted}:cancel" => 200,
        Holders(&[need("tasks.work", "workspace:{workspace}"), need("tasks.update", "workspace:{workspace}")]);
    GET "/api/v1/orgs/{org_id}/stacks" as "/api/v1/orgs/{org}/stacks?workspaceId={workspace}" => 200,
        Holders(&[need("stacks.read", "workspace:{workspace}")]);
    POST "/api/v1/orgs/{org_id}/stacks" as "/api/v1/orgs/{org}/stacks"
        with r#"{"name":"cluster","workspaceId":"{workspace}","dependsOn":[{"stackId":"{stack}","trigger":true}]}"# => 201,
        Holders(&[need("stacks.manage", "workspace:{workspace}")]);
    GET "/api/v1/orgs/{org_id}/stacks/{id}" as "/api/v1/orgs/{org}/stacks/{stack}" => 200,
        Holders(&[need("stacks.read", "workspace:{workspace}")]);
    PATCH "/api/v1/orgs/{org_id}/stacks/{id}" as "/api/v1/orgs/{org}/stacks/{stack}"
        with r#"{"dependsOn":[{"stackId":"{bare}"}]}"# => 200,
        Holders(&[need("stacks.manage", "workspace:{workspace}")]);
    DELETE "/api/v1/orgs/{org_id}/stacks/{id}" as "/api/v1/orgs/{org}/stacks/{bare}" => 204,
        Holders(&[need("stacks.manage", "workspace:{workspace}")]);
    GET "/api/v1/orgs/{org_id}/findings" as "/api/v1/orgs/{org}/findings" => 200,
        Holders(&[need("stacks.read", "tenant")]);
    GET "/api/v1/orgs/{org_id}/deployments" as "/api/v1/orgs/{org}/deployments?workspaceId={workspace}" => 200,
        Holders(&[need("deployments.read", "workspace:{workspace}")]);
    POST "/api/v1/orgs/{org_id}/deployments" as "/api/v1/orgs/{org}/deployments"
        with r#"{"stackId":"{stack}","mode":"plan"}"# => 201,
        Holders(&[need("deployments.run", "workspace:{workspace}")]);
    GET "/api/v1/orgs/{org_id}/deployments/{id}" as "/api/v1/orgs/{org}/deployments/{pending}" => 200,
        Holders(&[need("deployments.read", "workspace:{workspace}")]);
    POST "/api/v1/orgs/{org_id}/deployments/{id}:confirm" as "/api/v1/orgs/{org}/deployments/{parked}:confirm" => 200,
        Holders(&[need("deployments.confirm", "workspace:{workspace}")]);
    POST "/api/v1/orgs/{org_id}/deployments/{id}:cancel" as "/api/v1/orgs/{org}/deployments/{pending}:cancel" => 200,
        Holders(&[need("deployments.confirm", "workspace:{workspace}")]);
    POST "/api/v1/orgs/{org_id}/deployments/{id}:skip" as "/api/v1/orgs/{org}/deployments/{pending}:skip" => 200,
        Holders(&[need("deployments.confirm", "workspace:{workspace}")]);
    POST "/api/v1/orgs/{org_id}/deployments/{id}:promote" as "/api/v1/orgs/{org}/deployments/{parked}:promote" => 201,
        Holders(&[need("deployments.confirm", "workspace:{workspace}")]);
    GET "/api/v1/orgs/{org_id}/deployments/{id}/runs" as "/api/v1/orgs/{org}/deployments/{pending}/runs" => 200,
        Holders(&[need("deployments.read", "workspace:{workspace}")]);
    POST "/api/v1/orgs/{org_id}/deployments/{id}/runs" as "/api/v1/orgs/{org}/deployments/{ready}/runs"
        with r#"{"kind":"apply","planRunId":"{plan}"}"# => 201,
        Holders(&[need("deployments.run", "workspace:{workspace}")]);
    POST "/api/v1/orgs/{org_id}/runs/{id}:heartbeat" as "/api/v1/orgs/{org}/runs/{drun}:heartbeat" => 200,
        Holders(&[need("deployments.run", "workspace:{workspace}")]);
    POST "/api/v1/orgs/{org_id}/runs/{id}:complete" as "/api/v1/orgs/{org}/runs/{drun}:complete"
        with r#"{"status":"succeeded"}"# => 200,
        Holders(&[need("deployments.run", "workspace:{workspace}")]);
    GET "/api/v1/operations/journal" as "/api/v1/operations/journal" => 200,
        Holders(&[need("operations.read", "tenant")]);
    POST "/api/v1/operations/journal:prune" as "/api/v1/operations/journal:prune"
        with r#"{"beforeSeconds":86400,"maxEvents":1000}"# => 200,
        Holders(&[need("operations.manage", "tenant")]);
    PUT "/api/v1/consumers/{name}" as "/api/v1/consumers/{consumer}"
        with r#"{"cursor":"{cursor}","expiresAt":"{soon}"}"# => 200,
        Holders(&[need("events.read", "tenant")]);
    DELETE "/api/v1/consumers/{name}" as "/api/v1/consumers/{consumer}" => 204,
        Holders(&[need("events.read", "tenant")]);
    GET "/api/v1/openapi.json" as "/api/v1/openapi.json" => 200, Everybody;
    GET "/docs" as "/docs" => 200, Everybody;
    GET "/healthz" as "/healthz" => 200, Everybody;
    GET "/readyz" as "/readyz" => 200, Everybody;
    GET "/metrics" as "/metrics" => 200, Everybody;
}
