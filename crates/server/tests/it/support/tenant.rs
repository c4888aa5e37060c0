//! A tenant as its administrator sees it, and others in it.

use std::ops::Deref;

use super::http::Api;
use super::{Answer, Receiver, World, eventually};
use serde_json::{Value, json};

/// The secret of the webhooks that tests create.
pub const WEBHOOK_SECRET: &str = "whsec_dGhlIHNlY3JldCBvZiB0aGUgdGVzdHMnIHdlYmhvb2s=";
/// The token of the Slack integrations that tests create.
pub const BOT_TOKEN: &str = "xoxb-the-token-of-the-tests";

/// A tenant, acted upon by its first principal.
#[derive(Clone)]
pub struct Tenant {
    pub id: String,
    pub principal: String,
    pub key: String,
    pub api: Api,
}

impl Deref for Tenant {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

/// Somebody else in a tenant.
#[derive(Clone)]
pub struct Member {
    pub id: String,
    pub key_id: String,
    pub key: String,
    pub api: Api,
}

impl Deref for Member {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

/// The id in a body.
pub fn id(body: &Value) -> String {
    body["id"].as_str().expect("an id").to_owned()
}

impl Tenant {
    /// The tenant that a bootstrap has made.
    pub fn new(api: &Api, made: &Value) -> Self {
        let text = |field: &str| made[field].as_str().unwrap().to_owned();
        let key = text("apiKey");
        Self { id: text("tenantId"), principal: text("principalId"), api: api.with(&key), key }
    }

    /// A path below the tenant's org.
    pub fn org(&self, path: &str) -> String {
        format!("/orgs/{}{path}", self.id)
    }

    /// A new principal with a key, who may do just this.
    pub async fn member(&self, grants: &[(&str, &str)]) -> Member {
        let principal =
            id(&self.post("/principals", &json!({ "kind": "service", "displayName": "member" })).await.expect(201));
        for (permission, resource) in grants {
            self.grant(&principal, permission, resource).await;
        }
        let made = self.post("/api-keys", &json!({ "principalId": principal })).await.expect(201);
        let key = made["apiKey"].as_str().unwrap().to_owned();
        Member { id: principal, key_id: id(&made), api: self.api.with(&key), key }
    }

    /// Grants a permission; the grant's id.
    pub async fn grant(&self, principal: &str, permission: &str, resource: &str) -> String {
        let body = json!({ "principalId": principal, "permission": permission, "resource": resource });
        id(&self.post("/grants", &body).await.expect(201))
    }

    /// Binds a login of the world's issuer to a principal; the binding's id.
    pub async fn bind(&self, world: &World, subject: &str, principal: &str) -> String {
        let body = json!({ "issuer": world.issuer.name(), "subject": subject, "principalId": principal });
        id(&self.post("/identity-bindings", &body).await.expect(201))
    }

    /// Assigns a role to a principal within a workspace.
    pub async fn assign(&self, role: &str, principal: &str, workspace: &str) {
        let body = json!({ "principalId": principal, "workspaceId": workspace });
        self.post(&format!("/roles/{role}/assignments"), &body).await.expect(201);
    }

    /// A new workspace.
    pub async fn workspace(&self, parent: Option<&str>) -> String {
        let mut body = json!({ "name": "workspace" });
        if let Some(parent) = parent {
            body["parentId"] = parent.into();
        }
        id(&self.post("/workspaces", &body).await.expect(201))
    }

    /// Registers version 1 of types of the entity `order` that take an optional whole `amount` and a `name`.
    pub async fn register(&self, types: &[&str]) {
        for name in types {
            self.put(&format!("/event-types/{name}/versions/1"), &order_type()).await.expect(200);
        }
    }

    /// Appends one event and waits until it is readable; its item in the answer.
    pub async fn append(&self, event: Value) -> Value {
        let body = json!({ "events": [event] });
        self.post("/events?until=readable", &body).await.expect(201)["items"][0].take()
    }

    /// Every event that matches, whatever the number of pages.
    pub async fn events(&self, filter: &str) -> Vec<Value> {
        let mut page = self.get(&format!("/events?limit=1000&{filter}")).await.expect(200);
        let mut all = Vec::new();
        loop {
            all.append(page["items"].as_array_mut().unwrap());
            if page["hasMore"] == false {
                return all;
            }
            let cursor = page["nextCursor"].as_str().unwrap();
            page = self.get(&format!("/events?limit=1000&{filter}&cursor={cursor}")).await.expect(200);
        }
    }

    /// The cursor behind the newest event.
    pub async fn end(&self) -> String {
        self.get("/events?tail=1").await.expect(200)["nextCursor"].as_str().unwrap().to_owned()
    }

    /// A webhook to `receiver` for these types, changed by `with`; the answer to its creation.
    pub async fn webhook(&self, name: &str, receiver: &Receiver, types: &[&str], with: Value) -> Value {
        let mut body = json!({
            "name": name,
            "provider": "webhook",
            "journalTypes": types,
            "providerConfig": { "url": receiver.url("/in") },
            "authConfig": { "secret": WEBHOOK_SECRET },
        });
        merge(&mut body, with);
        self.post(&self.org("/notification-integrations"), &body).await.expect(201)
    }

    /// A Slack integration for these types.
    pub async fn slack(&self, name: &str, types: &[&str]) -> Value {
        let body = json!({
            "name": name,
            "provider": "slack",
            "journalTypes": types,
            "providerConfig": { "defaultChannel": "#ops" },
            "authConfig": { "botToken": BOT_TOKEN },
        });
        self.post(&self.org("/notification-integrations"), &body).await.expect(201)
    }

    /// Changes an integration.
    pub async fn edit(&self, integration: &str, change: Value) -> Value {
        let path = self.org(&format!("/notification-integrations/{integration}"));
        self.patch(&path, &change).await.expect(200)
    }

    /// The stored deliveries, newest first.
    pub async fn deliveries(&self) -> Vec<Value> {
        let mut page = self.get(&self.org("/notification-deliveries?limit=200")).await.expect(200);
        std::mem::take(page["items"].as_array_mut().unwrap())
    }

    /// The only stored delivery, once it has this status.
    pub async fn delivery(&self, status: &str) -> Value {
        eventually(&format!("one delivery that is {status}"), async || {
            let mut all = self.deliveries().await;
            let only = all.len() == 1 && all[0]["status"] == status;
            only.then(|| all.remove(0))
        })
        .await
    }

    /// Waits until nothing is stored: everything has arrived.
    pub async fn all_delivered(&self) {
        eventually("an empty outbox", async || self.deliveries().await.is_empty().then_some(())).await;
    }

    /// Retries a delivery by hand.
    pub async fn retry(&self, delivery: &str) -> super::Reply {
        self.act(&self.org(&format!("/notification-deliveries/{delivery}/retry"))).await
    }

    /// A delivery that is dead because its receiver answered `404`: its integration and itself.
    pub async fn dead_delivery(&self, world: &World) -> (String, Value) {
        self.register(&["order.placed"]).await;
        let integration = id(&self.webhook("billing", &world.sink, &["order."], json!({})).await);
        self.append(order("order.placed", "o_1")).await;
        world.sink.next().await.answer(Answer::status(404));
        (integration, self.delivery("dead").await)
    }
}

/// The body that registers a type of the entity `order`.
pub fn order_type() -> Value {
    json!({
        "entityType": "order",
        "description": "An order changed.",
        "schema": {
            "type": "object",
            "properties": { "amount": { "type": "integer" }, "name": { "type": "string" } },
        },
    })
}

/// An event of the entity `order`.
pub fn order(event_type: &str, entity_id: &str) -> Value {
    json!({ "type": event_type, "entityType": "order", "entityId": entity_id, "payload": { "amount": 7, "name": "Order 1" } })
}

fn merge(body: &mut Value, with: Value) {
    let Value::Object(fields) = with else { panic!("not an object: {with}") };
    for (name, value) in fields {
        body[name] = value;
    }
}
