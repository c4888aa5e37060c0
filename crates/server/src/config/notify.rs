//! Settings of notifications: budgets, retention, and what deliveries may reach.

use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;

use super::layers::Layers;
use super::values::ValueProblem;
use super::{BaseUrl, ConfigError, MaxAttempts, Span};
use crate::outbound::Egress;

const DEFAULT_RETENTION: Duration = Duration::from_hours(30 * 24);
const DEFAULT_HISTORY: Duration = Duration::from_hours(7 * 24);
const SLACK_API: &str = "https://slack.com/api";

/// How long it is kept what became of attempts; `off`: not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History(pub Option<Duration>);

impl FromStr for History {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "off" {
            return Ok(Self(None));
        }
        let Span(time) = text.parse()?;
        Ok(Self(Some(time)))
    }
}

/// Notifications.
#[derive(Clone, Debug)]
pub struct Notify {
    /// Where Slack's API is.
    pub slack_api_base_url: BaseUrl,
    /// How long dead deliveries are kept.
    pub delivery_retention: Duration,
    /// How long it is kept what became of each attempt; none: not at all.
    pub history_retention: Option<Duration>,
    /// How many attempts a delivery gets.
    pub max_attempts: u32,
    /// What the operator lists beyond the public internet; `None` when nothing was said, which is not an empty list.
    pub egress_allow: Option<Egress>,
}

/// Flags of notifications.
#[derive(Clone, Debug, Default, clap::Args, JsonSchema)]
pub struct NotifyArgs {
    /// Where Slack's API is (SLACK_API_BASE_URL; default `https://slack.com/api`)
    #[arg(long, value_name = "URL")]
    #[schemars(with = "String", extend("format" = "uri", "default" = SLACK_API))]
    pub slack_api_base_url: Option<BaseUrl>,

    /// How long dead deliveries are kept (COURANT_NOTIFICATION_DELIVERY_RETENTION; default 30d)
    #[arg(long, value_name = "TIME")]
    #[schemars(with = "String", extend("pattern" = "^[0-9]+[smhd]$", "default" = "30d"))]
    pub notification_delivery_retention: Option<Span>,

    /// How long it is kept what became of each attempt, `off` for not at all (COURANT_NOTIFICATION_HISTORY_RETENTION; default
    /// 7d)
    #[arg(long, value_name = "TIME")]
    #[schemars(with = "String", extend("pattern" = "^([0-9]+[smhd]|off)$", "default" = "7d"))]
    pub notification_history_retention: Option<History>,

    /// How many attempts a delivery gets, 1 to 100 (COURANT_NOTIFICATION_MAX_ATTEMPTS; default 8)
    #[arg(long, value_name = "NUMBER")]
    #[schemars(with = "u32", range(min = 1, max = 100), extend("default" = 8))]
    pub notification_max_attempts: Option<MaxAttempts>,

    /// Networks, addresses and host names that are not public but may be reached by integrations, comma-separated
    /// (COURANT_EGRESS_ALLOW; default none, but this machine itself while the server serves only this machine)
    #[arg(long, value_name = "LIST")]
    #[schemars(with = "TextOrList")]
    pub egress_allow: Option<Egress>,
}

/// One text, or a list of its parts.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum TextOrList {
    Text(String),
    List(Vec<String>),
}

impl Notify {
    pub(super) fn resolve(args: &NotifyArgs, layers: &mut Layers<'_>) -> Result<Self, ConfigError> {
        let slack = layers.pick("slack_api_base_url", args.slack_api_base_url.as_ref())?;
        let retention =
            layers.pick("notification_delivery_retention", args.notification_delivery_retention.as_ref())?;
        let history = layers.pick("notification_history_retention", args.notification_history_retention.as_ref())?;
        let attempts = layers.pick("notification_max_attempts", args.notification_max_attempts.as_ref())?;
        Ok(Self {
            slack_api_base_url: slack.unwrap_or_else(|| SLACK_API.parse().expect("the default is a base URL")),
            delivery_retention: retention.map_or(DEFAULT_RETENTION, |Span(time)| time),
            history_retention: history.map_or(Some(DEFAULT_HISTORY), |History(time)| time),
            max_attempts: attempts.map_or(8, |MaxAttempts(count)| count),
            egress_allow: layers.pick_list("egress_allow", args.egress_allow.as_ref())?,
        })
    }
}
