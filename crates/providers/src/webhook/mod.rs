//! The webhook provider: a signed POST to an address that a tenant names.
//!
//! It speaks Standard Webhooks. It must never let a tenant's header replace one of its own, nor put the secret
//! anywhere but into the signature.

mod config;
mod judge;
mod sign;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use courant_api::Timestamp;
use courant_api::cloudevent::CloudEvent;
use courant_api::notify::Notification;
use courant_core::delivery::{Failure, FailureClass, Verdict};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use serde_json::{Map, Value};

use crate::{ConfigError, HttpRequest, Outgoing, Provider, Render, Response, Target, fields};
use config::{Config, Format};
use sign::Secret;

/// `webhook`.
pub(crate) struct Webhook;

impl Provider for Webhook {
    fn provider_type(&self) -> &'static str {
        "webhook"
    }

    fn validate_config(&self, config: &Map<String, Value>) -> Result<(), ConfigError> {
        Config::read(config).map(drop)
    }

    fn complete_auth_config(
        &self,
        mut auth: Map<String, Value>,
        random: [u8; 32],
    ) -> (Map<String, Value>, Option<String>) {
        if auth.contains_key("secret") {
            return (auth, None);
        }
        let secret = Secret::text(&random);
        auth.insert("secret".to_owned(), secret.clone().into());
        (auth, Some(secret))
    }

    fn validate_auth_config(&self, auth: &Map<String, Value>) -> Result<(), ConfigError> {
        secret(auth).map(drop)
    }

    fn render(&self, r: &Render<'_>) -> Result<Outgoing, Failure> {
        let config = Config::read(r.config).map_err(|e| e.failure(FailureClass::Destination))?;
        let secret = secret(r.auth).map_err(|e| e.failure(FailureClass::Credential))?;
        let (body, content_type) = match config.format {
            Format::Notification => (serde_json::to_vec(&body(r.notification)), "application/json"),
            Format::CloudEvent => {
                let event = CloudEvent::from_notification(r.notification)
                    .ok_or_else(|| unsayable("no journal event to send as a CloudEvent"))?;
                (serde_json::to_vec(&event), "application/cloudevents+json")
            }
        };
        let body = body.map_err(|_| unsayable("the notification cannot be written as JSON"))?;
        let id = r.notification.id.to_string();
        let timestamp = r.now.unix_seconds();
        let signature = secret.sign(&id, timestamp, &body);

        let mut headers = config.headers;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(USER_AGENT, HeaderValue::from_static(crate::USER_AGENT));
        headers.insert(HeaderName::from_static("webhook-timestamp"), timestamp.into());
        for (name, text, sensitive) in [("webhook-id", id, false), ("webhook-signature", signature, true)] {
            let mut value = HeaderValue::try_from(text).map_err(|_| unsayable("a header cannot be written"))?;
            value.set_sensitive(sensitive);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(Outgoing::Http(HttpRequest {
            method: http::Method::POST,
            url: config.url,
            headers,
            body,
            target: Target::Tenant,
        }))
    }

    fn judge(&self, response: &Response, now: Timestamp) -> Verdict {
        judge::judge(response, now)
    }
}

/// The notification as it is sent: with one detail. The event behind an announced one is for CloudEvents alone.
fn body(notification: &Notification) -> Cow<'_, Notification> {
    match notification.announced() {
        Some(_) => Cow::Owned(Notification { event: None, ..notification.clone() }),
        None => Cow::Borrowed(notification),
    }
}

/// The secret in `{"secret": "whsec_…"}`.
fn secret(auth: &Map<String, Value>) -> Result<Secret, ConfigError> {
    fields::only(auth, &["secret"])?;
    Secret::parse(fields::required(auth, "secret")?)
        .ok_or_else(|| fields::refuse(&["secret"], "must be whsec_ and the base64 of 24 to 64 bytes, with padding"))
}

fn unsayable(text: &str) -> Failure {
    Failure::new(FailureClass::Payload, text)
}
