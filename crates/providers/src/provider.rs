//! What a provider is: the checks of its configuration, and the two functions `render` and `judge`.
//!
//! A provider keeps no state and must never do I/O; everything it needs is in its arguments.

use courant_api::Timestamp;
use courant_api::notify::Notification;
use courant_core::delivery::{Failure, Verdict};
use serde_json::{Map, Value};
use url::Url;

use crate::outgoing::{Outgoing, Response};

/// A kind of target that notifications go to.
pub trait Provider: Send + Sync {
    /// Its name in `provider` of an integration.
    fn provider_type(&self) -> &'static str;

    /// Whether these settings can be stored and used.
    fn validate_config(&self, config: &Map<String, Value>) -> Result<(), ConfigError>;

    /// Fills in the secret that the server makes when the caller leaves it out. The second value is that secret, to be
    /// shown once; `random` is used for nothing else.
    fn complete_auth_config(&self, auth: Map<String, Value>, random: [u8; 32]) -> (Map<String, Value>, Option<String>) {
        let _ = random;
        (auth, None)
    }

    /// Whether these secrets, complete, can be stored and used.
    fn validate_auth_config(&self, auth: &Map<String, Value>) -> Result<(), ConfigError>;

    /// The secrets after a patch: what the patch leaves out stays.
    fn merge_auth_config(&self, current: &Map<String, Value>, incoming: &Map<String, Value>) -> Map<String, Value> {
        let mut merged = current.clone();
        merged.extend(incoming.iter().map(|(key, value)| (key.clone(), value.clone())));
        merged
    }

    /// The request that says this notification. It fails only if the configuration or the notification cannot be
    /// used, and then every attempt would.
    fn render(&self, r: &Render<'_>) -> Result<Outgoing, Failure>;

    /// What the answer means. The failure's text names no address: whoever sent the request knows it.
    fn judge(&self, response: &Response, now: Timestamp) -> Verdict;
}

/// Why settings or secrets are refused. It never quotes a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: {message}")]
pub struct ConfigError {
    /// Where, as a JSON pointer inside the settings or the secrets: `/url`.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

/// What a rendering is made of.
#[derive(Clone, Copy)]
pub struct Render<'a> {
    /// The stored notification.
    pub notification: &'a Notification,
    /// The integration's name.
    pub integration_name: &'a str,
    /// Its settings.
    pub config: &'a Map<String, Value>,
    /// Its secrets, decrypted.
    pub auth: &'a Map<String, Value>,
    /// The time of this attempt.
    pub now: Timestamp,
    /// What the operator has configured.
    pub settings: &'a Settings,
}

/// The operator's settings for providers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where Slack's methods live, `https://slack.com/api` unless configured otherwise.
    pub slack_api_base_url: Url,
}
