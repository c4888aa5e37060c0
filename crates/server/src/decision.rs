//! An external decision point: the OpenID AuthZEN Authorization API 1.0, one evaluation a question.
//!
//! It alone decides. Whatever is not a plain answer within the time is no decision: it is never taken for a yes, and
//! never kept.

use std::sync::Arc;
use std::time::Duration;

use courant_core::access::Question;
use courant_providers::{HttpRequest, Target};
use courant_store::Decisions;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::{HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

use crate::cache::Cache;
use crate::outbound::Outbound;
use crate::secrets::Secret;

/// Where a decision point answers that was named by its host alone; section 10.1.1 of the API.
const EVALUATION: &str = "/access/v1/evaluation";
/// Longest wait for one decision.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait for all the decisions that a page or a change needs at once.
const TIMEOUT_ALL: Duration = Duration::from_secs(6);
/// How long a decision may be used again; a right that was taken away counts no longer than this.
const KEPT: Duration = Duration::from_secs(2);
/// Questions that are put at a time by one request, and by the whole server.
const AT_ONCE: usize = 16;
const AT_ONCE_IN_ALL: usize = 128;
const ANSWER_BYTES: usize = 64 * 1024;

/// Where an external decision point is, and how to be let in there.
#[derive(Clone, Debug)]
pub struct DecisionPointAddress {
    /// Its evaluation endpoint, or its base when the URL has no path.
    pub url: Url,
    /// Sent as a bearer token, if given.
    pub token: Option<Secret>,
}

/// Why there is no decision.
#[derive(Debug, thiserror::Error)]
pub enum NoDecision {
    /// It did not answer in time.
    #[error("the policy service did not decide in time")]
    Late,
    /// It could not be asked.
    #[error("the policy service could not be asked: {0}")]
    Unreachable(String),
    /// It answered with another status than 200.
    #[error("the policy service answered {0}")]
    Refused(u16),
    /// Its answer is none.
    #[error("the policy service answered something that is no decision")]
    Garbage,
}

/// What the decision point has said lately.
#[derive(Clone)]
pub struct Said(Arc<Cache<Question, bool>>);

impl Decisions for Said {
    fn decided(&self, question: &Question) -> Option<bool> {
        self.0.get(question)
    }
}

impl std::fmt::Debug for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Said")
    }
}

/// The decision point.
pub struct DecisionPoint {
    outbound: Outbound,
    url: Url,
    authorization: Option<HeaderValue>,
    said: Said,
    places: Semaphore,
}

#[derive(Deserialize)]
struct Answer {
    decision: bool,
}

impl DecisionPoint {
    /// The decision point at this address.
    pub fn new(outbound: Outbound, address: &DecisionPointAddress) -> Self {
        let mut url = address.url.clone();
        if matches!(url.path(), "" | "/") {
            url.set_path(EVALUATION);
        }
        let authorization = address.token.as_ref().map(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
                .expect("the configuration takes visible characters only");
            value.set_sensitive(true);
            value
        });
        let said = Said(Arc::new(Cache::new(KEPT)));
        Self { outbound, url, authorization, said, places: Semaphore::new(AT_ONCE_IN_ALL) }
    }

    /// What it has said lately.
    pub fn said(&self) -> Said {
        self.said.clone()
    }

    /// Has each question decided.
    pub async fn decide(&self, questions: Vec<Question>) -> Result<(), NoDecision> {
        let all = stream::iter(questions)
            .map(|question| async move {
                let decision = timeout(TIMEOUT, self.ask(&question)).await.unwrap_or(Err(NoDecision::Late));
                let outcome = match decision {
                    Ok(true) => "allowed",
                    Ok(false) => "denied",
                    Err(_) => "none",
                };
                metrics::counter!("courant_authorization_decisions_total", "outcome" => outcome).increment(1);
                self.said.0.put(question, decision?);
                Ok(())
            })
            .buffer_unordered(AT_ONCE)
            .try_collect::<()>();
        timeout(TIMEOUT_ALL, all).await.unwrap_or(Err(NoDecision::Late))
    }

    async fn ask(&self, question: &Question) -> Result<bool, NoDecision> {
        let _place = self.places.acquire().await.map_err(|_| NoDecision::Late)?;
        let mut headers = http::HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.extend(self.authorization.clone().map(|value| (header::AUTHORIZATION, value)));
        let request = HttpRequest {
            method: Method::POST,
            url: self.url.clone(),
            headers,
            body: body(question),
            target: Target::Operator,
        };
        let answer = self.outbound.fetch(request, TIMEOUT, ANSWER_BYTES).await;
        let answer = answer.map_err(|failure| NoDecision::Unreachable(failure.text))?;
        if answer.status != 200 {
            return Err(NoDecision::Refused(answer.status));
        }
        let Answer { decision } = serde_json::from_slice(&answer.body).map_err(|_| NoDecision::Garbage)?;
        Ok(decision)
    }
}

/// A question as the API has it: subject, action and resource, each with what a policy may need.
fn body(question: &Question) -> Vec<u8> {
    let text = question.resource.to_string();
    let (kind, id) = text.split_once(':').unwrap_or((&text, ""));
    let id = if id.is_empty() { question.tenant_id.to_string() } else { id.to_owned() };
    let above = question.path.get(1..).unwrap_or_default();
    json!({
        "subject": { "type": "principal", "id": question.principal_id, "properties": { "tenantId": question.tenant_id } },
        "action": { "name": question.permission },
        "resource": {
            "type": kind,
            "id": id,
            "properties": { "tenantId": question.tenant_id, "ancestors": above },
        },
    })
    .to_string()
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use courant_api::{Permission, PrincipalId, Resource, TenantId, WorkspaceId};
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;

    fn asked(resource: Resource, path: &[u128]) -> Value {
        let id = Uuid::from_u128;
        let question = Question {
            tenant_id: TenantId(id(1)),
            principal_id: PrincipalId(id(2)),
            permission: Permission::EventsRead,
            resource,
            path: path.iter().map(|&n| WorkspaceId(id(n))).collect(),
        };
        serde_json::from_slice(&body(&question)).unwrap()
    }

    #[test]
    fn a_question_names_subject_action_and_resource() {
        let [tenant, workspace, above] = [1, 3, 4].map(|n| Uuid::from_u128(n).to_string());
        let question = asked(Resource::Workspace(WorkspaceId(Uuid::from_u128(3))), &[3, 4]);
        assert_eq!(question["subject"]["type"], "principal");
        assert_eq!(question["subject"]["id"], Uuid::from_u128(2).to_string());
        assert_eq!(question["action"], json!({ "name": "events.read" }));
        assert_eq!(
            question["resource"],
            json!({ "type": "workspace", "id": workspace, "properties": { "tenantId": tenant, "ancestors": [above] } })
        );
        let question = asked(Resource::Tenant, &[]);
        assert_eq!(
            question["resource"],
            json!({ "type": "tenant", "id": tenant, "properties": { "tenantId": tenant, "ancestors": [] } })
        );
        let question = asked(Resource::NotificationIntegration("ops: a".into()), &[]);
        assert_eq!(question["resource"]["id"], "ops: a");
    }

    #[test]
    fn only_a_plain_yes_or_no_is_a_decision() {
        let read = |text: &str| serde_json::from_str::<Answer>(text).map(|answer| answer.decision).ok();
        assert_eq!(read(r#"{"decision":true}"#), Some(true));
        assert_eq!(read(r#"{"decision":false,"context":{"reason":"no"}}"#), Some(false));
        for none in ["", "true", "{}", r#"{"decision":"true"}"#, r#"{"decision":1}"#, r#"{"decision":null}"#, "<html>"]
        {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
