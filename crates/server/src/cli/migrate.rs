//! `courant migrate`

use anyhow::Result;
use courant_store::{Options, Store};

use super::output::line;
use crate::config::{Config, ServeArgs};

pub(super) async fn run(args: &ServeArgs) -> Result<()> {
    let config = Config::load(args)?;
    crate::logging::install(config.server.log_format, config.server.log_filter.as_str());
    let url = config.database.url.expose();
    if url.starts_with("sqlite:") {
        crate::serve::make_data_dir(&config.server.data_dir)?;
    }
    let options = Options { migrate: true, ..Options::command(url) };
    Store::open(&options).await?;
    line("The schema is up to date.")
}
