//! One attempt to tell something: open the secret, render, send, judge. Of the outbox and of tests alike.

use std::time::Duration;

use courant_api::TenantId;
use courant_api::notify::Notification;
use courant_core::delivery::{Failure, FailureClass, Verdict};
use courant_providers::{HttpRequest, Outgoing, Render, Response, Target, provider};
use courant_store::Integration;
use serde_json::{Map, Value};

use crate::app::App;
use crate::clock;
use crate::ops::notify::open;

/// The whole exchange with a target.
const TOTAL: Duration = Duration::from_secs(15);

/// How an attempt went.
#[derive(Debug)]
pub struct Tried {
    /// What it comes to.
    pub verdict: Verdict,
    /// What the target answered, and what of that must not be shown.
    pub answer: Option<Answer>,
}

/// What a target answered.
#[derive(Debug)]
pub struct Answer {
    response: Response,
    auth: Map<String, Value>,
}

impl Answer {
    /// The status.
    pub fn status(&self) -> u16 {
        self.response.status
    }

    /// What it said, as text, without the secrets that it repeats.
    pub fn body(&self) -> String {
        without_secrets(&String::from_utf8_lossy(&self.response.body), &self.auth)
    }
}

impl From<Verdict> for Tried {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, answer: None }
    }
}

fn permanent(class: FailureClass, text: &str) -> Tried {
    Verdict::Permanent { error: Failure::new(class, text) }.into()
}

/// Tells an integration of this tenant this.
pub async fn attempt(app: &App, tenant: TenantId, integration: &Integration, notification: &Notification) -> Tried {
    let Some(provider) = provider(&integration.provider) else {
        return permanent(FailureClass::Payload, "this server does not know the provider");
    };
    let auth = match open(&app.ring, tenant, integration) {
        Ok(auth) => auth,
        Err(error) => {
            tracing::error!(integration.id = %integration.id, %error, "the secret of an integration does not open");
            return permanent(FailureClass::Credential, "the stored secret does not open; save it again");
        }
    };
    let render = Render {
        notification,
        integration_name: &integration.name,
        config: &integration.provider_config,
        auth: &auth,
        now: clock::now(),
        settings: &app.settings,
    };
    let Outgoing::Http(request) = match provider.render(&render) {
        Ok(outgoing) => outgoing,
        Err(error) => return Verdict::Permanent { error }.into(),
    };
    let target = named(&request);
    match app.outbound.send(request, TOTAL).await {
        Ok(response) => {
            let verdict = provider.judge(&response, clock::now());
            let verdict = told(verdict, |error| naming(&without_secrets(error, &auth), target.as_deref()));
            Tried { verdict, answer: Some(Answer { response, auth }) }
        }
        Err(error) if error.class == FailureClass::Transient => Verdict::Retry { after: None, error }.into(),
        Err(error) => Verdict::Permanent { error }.into(),
    }
}

/// The host of a tenant's target; a provider's own host says nothing.
fn named(request: &HttpRequest) -> Option<String> {
    let host = request.url.host_str()?;
    let port = request.url.port().map(|port| format!(":{port}")).unwrap_or_default();
    (request.target == Target::Tenant).then(|| format!("{host}{port}"))
}

/// A verdict with its error's text changed.
fn told(verdict: Verdict, text: impl Fn(&str) -> String) -> Verdict {
    let tell = |error: Failure| Failure::new(error.class, text(&error.text));
    match verdict {
        Verdict::Sent => Verdict::Sent,
        Verdict::Retry { after, error } => Verdict::Retry { after, error: tell(error) },
        Verdict::Permanent { error } => Verdict::Permanent { error: tell(error) },
        Verdict::DisableIntegration { error } => Verdict::DisableIntegration { error: tell(error) },
    }
}

/// Says in an error which target it came from.
fn naming(error: &str, target: Option<&str>) -> String {
    target.map_or_else(|| error.to_owned(), |target| format!("{error} from {target}"))
}

/// An error of a target that repeats what it was sent, without the secrets in it.
fn without_secrets(error: &str, auth: &Map<String, Value>) -> String {
    let secrets = auth.values().filter_map(Value::as_str).filter(|secret| !secret.is_empty());
    secrets.fold(error.to_owned(), |error, secret| error.replace(secret, "[secret]"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_target_that_repeats_its_secret_is_not_quoted_with_it() {
        let auth = json!({ "botToken": "xoxb-1", "empty": "", "number": 7 });
        let told = without_secrets("slack: xoxb-1 is bad, xoxb-1", auth.as_object().unwrap());
        assert_eq!(told, "slack: [secret] is bad, [secret]");
    }
}
