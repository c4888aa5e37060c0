//! `courant demo`

use std::io::{IsTerminal as _, stdout};

use anyhow::Result;
use clap::Args;
use clap::builder::FalseyValueParser;

use super::serve::wait_for_stop;
use crate::config::{LogFilter, LogFormat};
use crate::demo::{self, Options, Style, Terminal};

#[derive(Args)]
pub(super) struct DemoArgs {
    /// End when the story is over: 0 only if everything arrived.
    #[arg(long)]
    once: bool,
    /// One JSON object a step.
    #[arg(long)]
    json: bool,
    /// Port of the server on 127.0.0.1. Without it: 8080 if that is free, else (and with --once) any free one.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// No colour (NO_COLOR).
    #[arg(long, env = "NO_COLOR", value_parser = FalseyValueParser::new(), hide_env = true)]
    no_color: bool,
    /// Which log lines of the server are written to standard error.
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log_filter: LogFilter,
}

pub(super) async fn run(args: DemoArgs) -> Result<()> {
    crate::logging::install(LogFormat::Text, args.log_filter.as_str());
    let style = match (args.json, stdout().is_terminal() && !args.no_color) {
        (true, _) => Style::Json,
        (false, true) => Style::Colour,
        (false, false) => Style::Plain,
    };
    // Not `output::line`, which ends the process at once when nobody reads on: here a directory has to go first.
    let mut terminal = Terminal::new(stdout(), style);
    demo::run(Options { once: args.once, port: args.port }, &mut terminal, wait_for_stop()).await
}
