//! The Slack provider: one `chat.postMessage` a notification, with a bot token.
//!
//! Slack's methods live at an address that the operator configures, so a tenant cannot aim it. It must never put the
//! token anywhere but into the `Authorization` header.

mod config;
mod judge;
mod render;
#[cfg(test)]
mod tests;
mod text;

use courant_api::Timestamp;
use courant_core::delivery::{Failure, FailureClass, Verdict};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use serde_json::{Map, Value};

use crate::{ConfigError, HttpRequest, Outgoing, Provider, Render, Response, Target};
use config::Config;

/// `slack`.
pub(crate) struct Slack;

impl Provider for Slack {
    fn provider_type(&self) -> &'static str {
        "slack"
    }

    fn validate_config(&self, config: &Map<String, Value>) -> Result<(), ConfigError> {
        Config::read(config).map(drop)
    }

    fn validate_auth_config(&self, auth: &Map<String, Value>) -> Result<(), ConfigError> {
        config::bearer(auth).map(drop)
    }

    fn render(&self, r: &Render<'_>) -> Result<Outgoing, Failure> {
        let config = Config::read(r.config).map_err(|e| e.failure(FailureClass::Destination))?;
        let bearer = config::bearer(r.auth).map_err(|e| e.failure(FailureClass::Credential))?;
        let mut url = r.settings.slack_api_base_url.clone();
        url.path_segments_mut()
            .map_err(|()| Failure::new(FailureClass::Destination, "SLACK_API_BASE_URL cannot be extended"))?
            .pop_if_empty()
            .push("chat.postMessage");
        let body = render::body(r.notification, r.integration_name, config.channel(&r.notification.labels));

        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        headers.insert(USER_AGENT, HeaderValue::from_static(crate::USER_AGENT));
        Ok(Outgoing::Http(HttpRequest {
            method: http::Method::POST,
            url,
            headers,
            body: body.to_string().into_bytes(),
            target: Target::Operator,
        }))
    }

    fn judge(&self, response: &Response, now: Timestamp) -> Verdict {
        judge::judge(response, now)
    }
}
