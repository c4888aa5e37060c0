//! Settings of the process: where it listens, keeps its data, is found, and how it logs.

use std::net::SocketAddr;
use std::path::PathBuf;

use schemars::JsonSchema;

use super::layers::Layers;
use super::{BaseUrl, ConfigError, LogFilter, LogFormat, MaxSockets};
use crate::http::socket::Limits;

/// The process.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where the API and the panel listen.
    pub listen: SocketAddr,
    /// Where the embedded database and the server's own keys are kept.
    pub data_dir: PathBuf,
    /// Where people reach the server; deep links begin with it.
    pub public_base_url: Option<BaseUrl>,
    /// Where metrics listen when not on the main address.
    pub metrics_listen: Option<SocketAddr>,
    /// Most WebSockets at a time.
    pub max_sockets: usize,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// Which log lines are written.
    pub log_filter: LogFilter,
}

/// Flags of the process.
#[derive(Clone, Debug, Default, clap::Args, JsonSchema)]
pub struct ServerArgs {
    /// Address to listen on (COURANT_LISTEN; default 127.0.0.1:8080)
    #[arg(long, value_name = "ADDRESS")]
    #[schemars(with = "String", extend("default" = "127.0.0.1:8080"))]
    pub listen: Option<SocketAddr>,

    /// Directory of the embedded database and the server's own keys (COURANT_DATA_DIR; default ./courant-data)
    #[arg(long, value_name = "PATH")]
    #[schemars(with = "String", extend("default" = "./courant-data"))]
    pub data_dir: Option<PathBuf>,

    /// Where people reach this server, for links in notifications (COURANT_PUBLIC_BASE_URL; no links without it)
    #[arg(long, value_name = "URL")]
    #[schemars(with = "String", extend("format" = "uri"))]
    pub public_base_url: Option<BaseUrl>,

    /// Address of its own for metrics (COURANT_METRICS_LISTEN; default: /metrics on the main address)
    #[arg(long, value_name = "ADDRESS")]
    #[schemars(with = "String")]
    pub metrics_listen: Option<SocketAddr>,

    /// Most WebSockets at a time (COURANT_MAX_SOCKETS; default 20000)
    #[arg(long, value_name = "NUMBER")]
    #[schemars(with = "u32", range(min = 1, max = 1_000_000), extend("default" = 20_000))]
    pub max_sockets: Option<MaxSockets>,

    /// How log lines are written: text or json (COURANT_LOG_FORMAT; default text)
    #[arg(long, value_name = "FORMAT")]
    #[schemars(with = "String", extend("enum" = ["text", "json"], "default" = "text"))]
    pub log_format: Option<LogFormat>,

    /// Which log lines are written, such as info or info,courant_store=debug (COURANT_LOG_FILTER; default info)
    #[arg(long, value_name = "FILTER")]
    #[schemars(with = "String", extend("default" = "info"))]
    pub log_filter: Option<LogFilter>,
}

impl Server {
    pub(super) fn resolve(args: &ServerArgs, layers: &mut Layers<'_>) -> Result<Self, ConfigError> {
        let log_filter = layers.pick("log_filter", args.log_filter.as_ref())?;
        Ok(Self {
            listen: layers
                .pick("listen", args.listen.as_ref())?
                .unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 8080))),
            data_dir: layers.pick("data_dir", args.data_dir.as_ref())?.unwrap_or_else(|| "./courant-data".into()),
            public_base_url: layers.pick("public_base_url", args.public_base_url.as_ref())?,
            metrics_listen: layers.pick("metrics_listen", args.metrics_listen.as_ref())?,
            max_sockets: layers
                .pick("max_sockets", args.max_sockets.as_ref())?
                .map_or_else(|| Limits::default().sockets, |MaxSockets(count)| count),
            log_format: layers.pick("log_format", args.log_format.as_ref())?.unwrap_or(LogFormat::Text),
            log_filter: log_filter.unwrap_or_default(),
        })
    }
}
