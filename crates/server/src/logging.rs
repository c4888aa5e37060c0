//! Logs: structured, to standard error, with the request id of the enclosing span.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::LogFormat;

/// Starts logging; further calls change nothing.
pub fn install(format: LogFormat, filter: &str) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::registry().with(filter);
    let _already = match format {
        LogFormat::Json => subscriber.with(layer().json().flatten_event(true).with_writer(stderr)).try_init(),
        LogFormat::Text => subscriber.with(layer().with_ansi(stderr().is_terminal()).with_writer(stderr)).try_init(),
    };
}
