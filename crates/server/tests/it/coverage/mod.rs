//! Checks that hold for every route, driven by the server's own list of routes: a new one cannot be left out.

mod authorisation;
mod contract;
mod document;
mod foreign_ids;
mod policy;
mod purpose;
mod routes;
mod scopes;
mod sockets;
mod strictness;

use std::collections::BTreeMap;

use courant_server::http::{Access, Endpoint, v1};
use http::Method;
use routes::{ROUTES, Route, Who};

use crate::support::tenant::{self, WEBHOOK_SECRET};
use crate::support::{Api, Tenant, Value, World, eventually, json, no_such_id};

/// The things of one tenant that the sample requests are about, by the name that stands for each.
pub type Things = BTreeMap<&'static str, String>;

/// A tenant with one thing of every kind. Its integration is paused, so that its delivery stays.
pub async fn things(world: &World, tenant: &Tenant, type_name: &str) -> Things {
    let member = tenant.member(&[]).await;
    let grant = tenant.grant(&member.id, "api_keys.manage", "tenant").await;
    let nobody = json!({ "kind": "human", "displayName": "Nobody" });
    let nobody = tenant::id(&tenant.post("/principals", &nobody).await.expect(201));
    let subject = format!("login-{type_name}");
    let binding = tenant.bind(world, &subject, &member.id).await;
    let (workspace, parent) = (tenant.workspace(None).await, tenant.workspace(None).await);
    tenant.register(&[type_name]).await;
    let role = json!({ "key": format!("role-{type_name}"), "name": "Role", "workspaceId": workspace });
    let role = tenant::id(&tenant.post("/roles", &role).await.expect(201));
    let decider = json!({ "key": format!("decider-{type_name}"), "name": "Decider", "workspaceId": workspace });
    let decider = tenant::id(&tenant.post("/roles", &decider).await.expect(201));
    let assignment = json!({ "principalId": member.id, "workspaceId": workspace });
    let assignment = tenant.post(&format!("/roles/{role}/assignments"), &assignment).await.expect(201);
    let name = format!("ops-{type_name}");
    let webhook = tenant
        .webhook(
            &name,
            &world.sink,
            &[type_name],
            json!({ "paused": true, "providerConfig": { "url": "http://192.0.2.1/in" } }),
        )
        .await;
    let event = tenant.append(tenant::order(type_name, "o_1")).await;
    let delivery = eventually("the delivery of the sample", async || {
        tenant.deliveries().await.into_iter().find(|d| d["integrationName"] == name.as_str())
    })
    .await;
    let task = json!({ "title": "Renew the certificate", "workspaceId": workspace });
    let (task, claimed) =
        (tenant.post("/tasks", &task).await.expect(201), tenant.post("/tasks", &task).await.expect(201));
    let claim = tenant.post(&format!("/tasks/{}:claim", tenant::id(&claimed)), &json!({})).await.expect(200);
    let run = json!({ "claimId": tenant::id(&claim), "fencingToken": 1 });
    let run = tenant.post("/runs", &run).await.expect(201);
    let idle = json!({ "title": "Rest", "workspaceId": workspace });
    let idle = tenant.post("/tasks", &idle).await.expect(201);
    let idle = tenant.post(&format!("/tasks/{}:claim", tenant::id(&idle)), &json!({})).await.expect(200);
    let checks = json!({ "checks": ["tests"] });
    let verification =
        tenant.post(&format!("/tasks/{}/verifications", tenant::id(&claimed)), &checks).await.expect(201);
    for principal in [&tenant.principal, &member.id] {
        tenant.assign(&decider, principal, &workspace).await;
    }
    let approval = json!({ "taskId": tenant::id(&claimed), "requiredRoleId": decider });
    let requester = tenant.member(&[("approvals.request", "tenant")]).await;
    let approval = requester.post("/approvals", &approval).await.expect(201);
    let goal = tenant.post("/goals", &json!({ "title": "Fewer pages", "workspaceId": workspace })).await.expect(201);
    let rule = json!({ "key": format!("rule-{type_name}"), "workspaceId": workspace, "definition": {} });
    let rule = tenant.post("/rules", &rule).await.expect(201);
    let project = json!({ "key": format!("project-{type_name}"), "name": "Billing", "workspaceId": workspace });
    let project = tenant.post("/projects", &project).await.expect(201);
    let artifact = json!({ "type": "report", "name": "plan.txt", "taskId": tenant::id(&claimed) });
    let artifact = tenant.post("/artifacts", &artifact).await.expect(201);
    let skill = json!({ "taskId": tenant::id(&task), "skill": "translate", "skillVersion": "1.2" });
    let wanted = tenant.post("/skill-invocations", &skill).await.expect(201);
    let skill = tenant.post("/skill-invocations", &skill).await.expect(201);
    tenant.act(&format!("/skill-invocations/{}:claim", tenant::id(&skill))).await.expect(200);
    let deployed = deployed(tenant, &workspace).await;
    let cursor = tenant.end().await;
    let soon = courant_server::clock::now().plus_micros(3_600_000_000).to_string();
    tenant.put("/consumers/reader", &json!({ "cursor": cursor, "expiresAt": soon })).await.expect(200);
    let mut things = BTreeMap::from([
        ("org", tenant.id.clone()),
        ("principal", member.id),
        ("nobody", nobody),
        ("key", member.key_id),
        ("grant", grant),
        ("workspace", workspace),
        ("parent", parent),
        ("role", role),
        ("assignment", tenant::id(&assignment)),
        ("binding", binding),
        ("issuer", world.issuer.name()),
        ("integration", tenant::id(&webhook)),
        ("name", name),
        ("delivery", tenant::id(&delivery)),
        ("event", tenant::id(&event)),
        ("type", type_name.to_owned()),
        ("consumer", "reader".to_owned()),
        ("run", tenant::id(&run)),
        ("idle", tenant::id(&idle)),
        ("verification", tenant::id(&verification)),
        ("approval", tenant::id(&approval)),
        ("decider", decider),
        ("task", tenant::id(&task)),
        ("claim", tenant::id(&claim)),
        ("goal", tenant::id(&goal)),
        ("rule", tenant::id(&rule)),
        ("project", tenant::id(&project)),
        ("artifact", tenant::id(&artifact)),
        ("wanted", tenant::id(&wanted)),
        ("skill", tenant::id(&skill)),
        ("cursor", cursor),
        ("soon", soon),
        ("unused", format!("u{}", no_such_id())),
        ("secret", WEBHOOK_SECRET.to_owned()),
    ]);
    things.extend(deployed);
    things
}

/// A stack of the workspace, another one without deployments, and deployments in the states that the samples need.
async fn deployed(tenant: &Tenant, workspace: &str) -> Things {
    let post = async |path: &str, body: Value| {
        let reply = tenant.post(&tenant.org(path), &body).await;
        assert!((200..300).contains(&reply.status), "{path}: {}", reply.text());
        reply.expect(reply.status)
    };
    let stack = json!({ "name": "network", "workspaceId": workspace, "prPlanMode": "manual" });
    let stack = tenant::id(&post("/stacks", stack).await);
    let bare = tenant::id(&post("/stacks", json!({ "name": "unused", "workspaceId": workspace })).await);
    let plan = json!({ "stackId": stack, "mode": "plan" });
    let pending = tenant::id(&post("/deployments", plan.clone()).await);
    let ready = tenant::id(&post("/deployments", plan).await);
    let planned = tenant::id(&post(&format!("/deployments/{ready}/runs"), json!({ "kind": "plan" })).await);
    post(&format!("/runs/{planned}:complete"), json!({ "status": "succeeded" })).await;
    tenant.act(&tenant.org(&format!("/deployments/{ready}:confirm"))).await.expect(200);
    let preview = json!({ "stackId": stack, "mode": "plan_unlocked" });
    let busy = tenant::id(&post("/deployments", preview).await);
    let drun = tenant::id(&post(&format!("/deployments/{busy}/runs"), json!({ "kind": "plan" })).await);
    let origin = json!({ "kind": "pull_request", "number": 7 });
    let parked = json!({ "stackId": stack, "mode": "plan_unlocked", "origin": origin });
    let parked = tenant::id(&post("/deployments", parked).await);
    BTreeMap::from([
        ("stack", stack),
        ("bare", bare),
        ("pending", pending),
        ("ready", ready),
        ("plan", planned),
        ("drun", drun),
        ("parked", parked),
    ])
}

/// `text` with every `{thing}` replaced.
pub fn fill(text: &str, things: &Things) -> String {
    things.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

impl Route {
    pub fn method(&self) -> Method {
        self.method.parse().unwrap()
    }

    /// Whether it asks a caller to be one whom the approval names.
    pub fn decides(&self) -> bool {
        self.template.ends_with(":approve") || self.template.ends_with(":reject")
    }

    /// Whether the sample request names this thing.
    pub fn names(&self, thing: &str) -> bool {
        let written = format!("{{{thing}}}");
        self.path.contains(&written) || self.body.is_some_and(|body| body.contains(&written))
    }

    /// The sample request about these things.
    pub fn request(&self, api: &Api, things: &Things) -> crate::support::http::Call {
        let call = api.call(self.method(), &fill(self.path, things));
        match self.body {
            Some(body) => call.text("application/json", fill(body, things)),
            None => call,
        }
    }
}

fn sample(endpoint: &Endpoint<courant_server::app::App>) -> &'static Route {
    let of = |r: &&Route| r.method == endpoint.method().as_str() && r.template == endpoint.path();
    ROUTES.iter().find(of).unwrap_or_else(|| {
        panic!("{} {} has no sample request in coverage/routes.rs", endpoint.method(), endpoint.path())
    })
}

#[test]
fn every_route_has_one_sample_and_every_sample_a_route() {
    let endpoints = v1::endpoints();
    for endpoint in &endpoints {
        sample(endpoint);
    }
    assert_eq!(endpoints.len(), ROUTES.len());
}

#[test]
fn the_samples_need_what_the_routes_say_they_need() {
    for endpoint in v1::endpoints() {
        let route = sample(&endpoint);
        assert_eq!(endpoint.is_socket(), route.is_socket());
        let place = format!("{} {}", route.method, route.template);
        match (endpoint.required_access(), &route.who) {
            (Some(Access::Public), Who::Everybody) | (Some(Access::Caller), Who::Bootstrap | Who::Caller) => {}
            (Some(Access::On(permissions, _)), Who::Holders(needs))
            | (Some(Access::OneOf(permissions, _)), Who::OneOf(needs)) => {
                let declared: Vec<_> = permissions.iter().map(|p| p.as_str()).collect();
                let sampled: Vec<_> = needs.iter().map(|need| need.permission).collect();
                assert_eq!(declared, sampled, "{place}");
            }
            (access, _) => panic!("{place}: {access:?} is not what its sample says"),
        }
    }
}
