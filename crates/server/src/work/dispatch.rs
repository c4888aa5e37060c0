//! One attempt: open the secret, render, send, judge, and decide what follows.

use std::time::Duration;

use courant_api::Timestamp;
use courant_api::notify::Notification;
use courant_core::delivery::{Failure, FailureClass, RetryPolicy, Transition, Verdict, after_attempt};
use courant_providers::{HttpRequest, Outgoing, Render, Target, provider};
use courant_store::{Claimed, Dead, Outcome};
use serde_json::{Map, Value};

use crate::app::App;
use crate::ops::notify::open;
use crate::{clock, secrets};

/// The whole exchange with a target.
const TOTAL: Duration = Duration::from_secs(15);

/// Makes one attempt and says how it ended.
pub(super) async fn dispatch(app: &App, delivery: Claimed, max_attempts: u32) -> Outcome {
    let verdict = attempt(app, &delivery).await;
    let now = clock::now();
    let policy = RetryPolicy { max_attempts, ..RetryPolicy::default() };
    let chance = f64::from(u32::from_be_bytes(secrets::random())) / f64::from(u32::MAX);
    match after_attempt(&policy, delivery.attempt_count, verdict, chance) {
        Transition::Sent => Outcome::Sent,
        Transition::Retry { delay, error } => Outcome::Retry { run_at: later(now, delay), error },
        Transition::Dead { error, disable_integration } => Outcome::Dead(Dead {
            tenant_id: delivery.tenant_id,
            integration_id: delivery.integration.id,
            integration_name: delivery.integration.name.clone(),
            event_type: delivery.event_type,
            cause_type: delivery.cause_type,
            attempt_count: delivery.attempt_count,
            error,
            disable_integration,
        }),
    }
}

fn later(now: Timestamp, delay: Duration) -> Timestamp {
    now.plus_micros(i64::try_from(delay.as_micros()).unwrap_or(i64::MAX))
}

fn permanent(class: FailureClass, text: &str) -> Verdict {
    Verdict::Permanent { error: Failure::new(class, text) }
}

async fn attempt(app: &App, delivery: &Claimed) -> Verdict {
    let integration = &delivery.integration;
    if !integration.enabled {
        return permanent(FailureClass::Disabled, "notification integration is disabled");
    }
    let Some(provider) = provider(&integration.provider) else {
        return permanent(FailureClass::Payload, "this server does not know the provider");
    };
    let auth = match open(&app.ring, delivery.tenant_id, integration) {
        Ok(auth) => auth,
        Err(error) => {
            tracing::error!(integration.id = %integration.id, %error, "the secret of an integration does not open");
            return permanent(FailureClass::Credential, "the stored secret does not open; save it again");
        }
    };
    let Ok(notification) = serde_json::from_str::<Notification>(&delivery.payload) else {
        return permanent(FailureClass::Payload, "the stored notification cannot be read");
    };
    let render = Render {
        notification: &notification,
        integration_name: &integration.name,
        config: &integration.provider_config,
        auth: &auth,
        now: clock::now(),
        settings: &app.settings,
    };
    let Outgoing::Http(request) = match provider.render(&render) {
        Ok(outgoing) => outgoing,
        Err(error) => return Verdict::Permanent { error },
    };
    let target = named(&request);
    match app.outbound.send(request, TOTAL).await {
        Ok(response) => {
            let verdict = provider.judge(&response, clock::now());
            told(verdict, |error| naming(&without_secrets(error, &auth), target.as_deref()))
        }
        Err(error) if error.class == FailureClass::Transient => Verdict::Retry { after: None, error },
        Err(error) => Verdict::Permanent { error },
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
