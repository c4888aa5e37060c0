//! `courant journal`: export, prune and show, on the database itself, beside a running server too.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use courant_api::operations::{ConsumerKind, JournalStatus, MAX_PRUNE};
use courant_api::{TenantId, Timestamp};
use courant_store::{Change, Changed, Options, PruneRequest, Store, WhenBlocked};
use tempfile::NamedTempFile;

use super::output::line;
use crate::clock;
use crate::config::{Config, ServeArgs, Span};
use crate::export::{self, Export, Pages};
use crate::ops::retention::{micros, prune};

#[derive(Subcommand)]
pub(super) enum JournalCommand {
    /// Write old events as NDJSON, one a line, the oldest first.
    Export(Box<ExportArgs>),
    /// Delete the oldest events for good.
    Prune(Box<PruneArgs>),
    /// Show head, horizon and who holds it, floor, consumers and their lag.
    Show(Box<ShowArgs>),
}

#[derive(Args)]
pub(super) struct ExportArgs {
    /// Up to the first event that is younger than this (30d) or not from before this time (2026-09-01T00:00:00Z).
    #[arg(long, value_name = "TIME")]
    before: Before,
    /// The new file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args)]
pub(super) struct PruneArgs {
    /// Up to the first event that is younger than this (30d) or not from before this time (2026-09-01T00:00:00Z).
    #[arg(long, value_name = "TIME")]
    before: Before,
    /// Most events to delete.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..=MAX_PRUNE))]
    max_events: i64,
    /// Only count them.
    #[arg(long)]
    dry_run: bool,
    /// Write each batch to this new file, as NDJSON, before it is deleted.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    export: Option<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Args)]
pub(super) struct ShowArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Which journal of which database.
#[derive(Args)]
struct PlaceArgs {
    /// The tenant; needed when there are several.
    #[arg(long, value_name = "ID")]
    tenant: Option<TenantId>,
    #[command(flatten)]
    config: ServeArgs,
}

impl PlaceArgs {
    async fn open(&self) -> Result<(Config, Store, TenantId)> {
        let config = Config::load(&self.config)?;
        let store = Store::open(&Options::command(config.database.url.expose())).await?;
        if let Some(tenant) = self.tenant {
            store.tenant_exists(tenant).await?;
            return Ok((config, store, tenant));
        }
        match store.tenant_ids(None, 2).await?.as_slice() {
            [only] => Ok((config, store, *only)),
            [] => bail!("there is no tenant yet"),
            _ => bail!("there are several tenants; name one with --tenant"),
        }
    }
}

/// A time, or how long ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Age(Span),
    Time(Timestamp),
}

impl FromStr for Before {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let age = text.parse().map(Self::Age);
        age.or_else(|_| text.parse().map(Self::Time))
            .map_err(|_| "is neither a length of time (30d) nor an RFC 3339 time (2026-09-01T00:00:00Z)".into())
    }
}

impl Before {
    fn cutoff(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Age(Span(age)) => now.plus_micros(-micros(age)),
            Self::Time(time) => time,
        }
    }
}

pub(super) async fn run(command: JournalCommand) -> Result<()> {
    match command {
        JournalCommand::Export(args) => run_export(*args).await,
        JournalCommand::Prune(args) => run_prune(*args).await,
        JournalCommand::Show(args) => run_show(*args).await,
    }
}

async fn run_export(args: ExportArgs) -> Result<()> {
    let (_, store, tenant) = args.place.open().await?;
    let mut pages = Pages::new(store, tenant, args.before.cutoff(clock::now()));
    if args.out == Path::new("-") {
        let mut out = std::io::stdout();
        let written = write_all(&mut pages, &mut out).await.map(|_| ());
        return match written {
            // Whoever read it has had enough.
            Err(error) if is_closed_pipe(&error) => Ok(()),
            other => other,
        };
    }
    let shown = args.out.display();
    let dir = args.out.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // It gets its name when it is whole; until then it is gone when this process is.
    let mut file = NamedTempFile::new_in(dir).with_context(|| dir.display().to_string())?;
    let count = write_all(&mut pages, file.as_file_mut()).await.with_context(|| shown.to_string())?;
    file.as_file().sync_all().with_context(|| shown.to_string())?;
    file.persist_noclobber(&args.out).map_err(|error| match error.error.kind() {
        ErrorKind::AlreadyExists => anyhow::anyhow!("{shown} exists already; name another file"),
        _ => anyhow::Error::from(error.error).context(shown.to_string()),
    })?;
    std::fs::File::open(dir)?.sync_all()?;
    line(format!("{count} events are in {shown}"))
}

async fn write_all(pages: &mut Pages, out: &mut (impl std::io::Write + Send)) -> Result<usize> {
    let mut count = 0;
    while let Some(events) = pages.next().await? {
        for event in &events {
            out.write_all(&export::line(event)?)?;
        }
        count += events.len();
    }
    out.flush()?;
    Ok(count)
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

async fn run_prune(args: PruneArgs) -> Result<()> {
    let (config, store, tenant) = args.place.open().await?;
    let now = clock::now();
    let request = PruneRequest {
        before: args.before.cutoff(now),
        max_events: args.max_events,
        dry_run: args.dry_run,
        blocked: WhenBlocked::Refuse,
    };
    let mut target = match &args.export {
        Some(path) => Export::to_file(path)?,
        None => Export::to_dir(config.journal.export_dir.as_deref()),
    };
    let pruned = match prune(&store, &Change::by_server(tenant, now), request, &mut target).await {
        Ok(Changed::Now(pruned)) => pruned,
        Ok(Changed::Before(_)) => bail!("the prune was not made"),
        Err(error) => {
            // Nothing was exported, so that the same command may be repeated.
            if let Some(path) = args.export.filter(|path| path.metadata().is_ok_and(|found| found.len() == 0)) {
                std::fs::remove_file(path)?;
            }
            return Err(error.into());
        }
    };
    let (verb, more) = if args.dry_run { ("would be deleted", "remain") } else { ("were deleted", "are left") };
    line(format!("{} events {verb}; the floor is {}", pruned.deleted, pruned.floor_cursor))?;
    if pruned.has_more {
        line(format!("More events of that age {more}."))?;
    }
    Ok(())
}

async fn run_show(args: ShowArgs) -> Result<()> {
    let (config, store, tenant) = args.place.open().await?;
    let status = store.journal_status(tenant, clock::now(), config.journal.retention.map(micros)).await?;
    if args.json {
        return line(serde_json::to_string(&status)?);
    }
    show(&status)
}

fn show(status: &JournalStatus) -> Result<()> {
    line(format!("head        {}  {}", status.head.sequence, status.head.cursor))?;
    line(format!("horizon     {}  {}", status.horizon.sequence, status.horizon.cursor))?;
    line(format!("distance    {}", status.distance))?;
    for holder in &status.holders {
        line(format!("  held by   {}", super::doctor::holder(holder)))?;
    }
    line(format!("floor       {}", status.floor_cursor))?;
    let oldest = status.oldest_event_at.map_or_else(|| "none".to_owned(), |at| at.to_string());
    line(format!("oldest      {oldest}"))?;
    let kept = status.retention_seconds.map_or_else(|| "for ever".to_owned(), |s| format!("{s} s"));
    line(format!("kept        {kept}{}", if status.pruning { ", a prune is under way" } else { "" }))?;
    for consumer in &status.consumers {
        let kind = if consumer.kind == ConsumerKind::Announcer { "announcer" } else { "consumer" };
        let until = consumer.expires_at.map_or_else(String::new, |at| format!("  until {at}"));
        let blocks = if consumer.blocks_retention { "  blocks retention" } else { "" };
        let (name, lag, cursor) = (&consumer.name, consumer.lag_seconds, &consumer.cursor);
        line(format!("{kind:<11} {name}  lag {lag} s  {cursor}{until}{blocks}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_given_by_age_or_as_itself() {
        let now: Timestamp = "2026-09-02T00:00:00Z".parse().unwrap();
        let cutoff = |text: &str| text.parse::<Before>().map(|b| b.cutoff(now).to_string());
        assert_eq!(cutoff("1d").unwrap(), "2026-09-01T00:00:00.000Z");
        assert_eq!(cutoff("2026-08-01T00:00:00Z").unwrap(), "2026-08-01T00:00:00.000Z");
        for bad in ["", "30", "yesterday", "2026-08-01"] {
            assert!(cutoff(bad).unwrap_err().contains("RFC 3339"), "{bad}");
        }
    }
}
