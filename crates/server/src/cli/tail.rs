//! `courant tail`: follows the journal of a running server in a terminal.

use anyhow::Result;
use clap::Args;
use courant_api::{Event, WorkspaceId};
use courant_client::{Client, EventsQuery};

use super::output::line;

#[derive(Args)]
pub(super) struct TailArgs {
    /// Only types with these prefixes, comma-separated.
    #[arg(long, value_delimiter = ',', value_name = "PREFIXES")]
    types: Vec<String>,
    /// Only events of this workspace and below.
    #[arg(long, value_name = "ID")]
    workspace: Option<WorkspaceId>,
    /// How many past events to show first.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=1000))]
    last: u32,
    /// Print the past events and end.
    #[arg(long)]
    no_follow: bool,
    /// One JSON event a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Which server to talk to.
#[derive(Args)]
pub(super) struct ServerArgs {
    /// The server's address.
    #[arg(long, env = "COURANT_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    url: String,
    /// The API key.
    #[arg(long, env = "COURANT_API_KEY", hide_env_values = true, value_name = "KEY")]
    api_key: String,
}

impl ServerArgs {
    pub(super) fn client(&self) -> Result<Client> {
        Ok(Client::builder(&self.url).api_key(&self.api_key).build()?)
    }
}

pub(super) async fn run(args: TailArgs) -> Result<()> {
    let client = args.server.client()?;
    let query = EventsQuery { types: args.types, workspace_id: args.workspace, ..EventsQuery::default() };
    // A tail of one at least: its page says where to go on.
    let page = client.events(&EventsQuery { tail: Some(args.last.max(1)), ..query.clone() }).await?;
    if args.last > 0 {
        for event in &page.items {
            show(event, args.json)?;
        }
    }
    if args.no_follow {
        return Ok(());
    }
    let mut events = client.follow(EventsQuery { cursor: Some(page.next_cursor), ..query });
    loop {
        let event = events.next().await?;
        show(&event, args.json)?;
    }
}

fn show(event: &Event, json: bool) -> Result<()> {
    if json {
        return line(event.to_line()?);
    }
    line(format!(
        "{}  {:>6}  {:<34} {}/{}  {}",
        event.occurred_at,
        event.sequence,
        event.event_type,
        event.entity_type,
        event.entity_id,
        event.payload.text().replace(['\n', '\r'], " ")
    ))
}
