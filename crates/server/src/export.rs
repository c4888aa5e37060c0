//! Events written as NDJSON, one a line as `GET /events` gives them, before retention deletes them.
//!
//! Nothing may be deleted that was to be exported and is not on the disk: a batch counts only after its file is synced
//! and, where it has one of its own, has got its name.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use courant_api::{Cursor, Event, TenantId, Timestamp};
use courant_store::{Error, EventQuery, PRUNE_BATCH, Position, Start, Store};
use tempfile::NamedTempFile;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

use crate::ops::retention::PruneError;

/// Events that are read at once.
const PAGE: i64 = 100;

/// Where what is about to be deleted is written first.
#[derive(Debug)]
pub enum Export {
    /// Nowhere.
    None,
    /// A file for each batch, below this directory: `<tenant>/<first>-<last>.ndjson`.
    Dir(PathBuf),
    /// One file for all.
    File {
        /// The file.
        file: File,
        /// The last event that is in it.
        written: Position,
    },
}

impl Export {
    /// To this directory, if any.
    pub fn to_dir(dir: Option<&Path>) -> Self {
        dir.map_or(Self::None, |dir| Self::Dir(dir.to_owned()))
    }

    /// To a new file.
    pub fn to_file(path: &Path) -> io::Result<Self> {
        Ok(Self::File { file: new_file(path)?, written: 0 })
    }

    /// That something can be written for this tenant, so that no prune begins that could not go on.
    pub fn check(&self, tenant: TenantId) -> io::Result<()> {
        let Self::Dir(dir) = self else { return Ok(()) };
        writable(&dir.join(tenant.to_string()))
    }

    /// Exports the next batch of the tenant's prune that is under way: up to where it may be deleted.
    pub async fn next_batch(&mut self, store: &Store, tenant: TenantId) -> Result<Position, PruneError> {
        if matches!(self, Self::None) {
            return Ok(Position::MAX);
        }
        let state = store.retention_state(tenant).await?;
        let Some(through) = state.through else { return Ok(Position::MAX) };
        let copied = match self {
            Self::None => return Ok(Position::MAX),
            Self::Dir(dir) => to_own_file(store, tenant, dir, (state.floor, through)).await,
            Self::File { file, written } => {
                let copied = copy(store, tenant, ((*written).max(state.floor), through), file).await;
                if copied.is_ok() {
                    file.flush().await?;
                    file.sync_all().await?;
                }
                copied.map(|range| {
                    *written = range.map_or(*written, |(_, last)| last);
                    Some((0, *written)).filter(|(_, last)| *last > state.floor)
                })
            }
        };
        match copied {
            Ok(Some((_, last))) => Ok(last),
            Ok(None) => Ok(Position::MAX),
            // Another process has deleted some of them meanwhile: this time nothing may be.
            Err(PruneError::Store(Error::CursorBelowFloor { .. })) => Ok(state.floor),
            Err(error) => Err(error),
        }
    }
}

/// Makes a directory for its owner only unless it is there, and that files can be made in it.
pub fn writable(dir: &Path) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(named)?;
    tempfile::tempfile_in(dir).map(|_| ()).map_err(named)
}

/// A file that was not there before, for its owner only: it holds what events say.
fn new_file(path: &Path) -> io::Result<File> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
        let text = if error.kind() == ErrorKind::AlreadyExists {
            "exists already; name another file".into()
        } else {
            error.to_string()
        };
        io::Error::new(error.kind(), format!("{}: {text}", path.display()))
    })?;
    Ok(File::from_std(file))
}

async fn to_own_file(
    store: &Store,
    tenant: TenantId,
    dir: &Path,
    range: (Position, Position),
) -> Result<Option<(Position, Position)>, PruneError> {
    let dir = dir.join(tenant.to_string());
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", dir.display()));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(named)?;
    // Gone again when it is dropped without its name.
    let temporary = NamedTempFile::new_in(&dir).map_err(named)?;
    let mut file = File::from_std(temporary.reopen().map_err(named)?);
    let Some((first, last)) = copy(store, tenant, range, &mut file).await? else { return Ok(None) };
    file.flush().await.map_err(named)?;
    file.sync_all().await.map_err(named)?;
    temporary.persist(dir.join(format!("{first}-{last}.ndjson"))).map_err(|e| named(e.error))?;
    File::open(&dir).await.map_err(named)?.sync_all().await.map_err(named)?;
    Ok(Some((first, last)))
}

/// Writes at most a batch of events after `range.0` up to `range.1`: the first and the last of them.
async fn copy(
    store: &Store,
    tenant: TenantId,
    range: (Position, Position),
    file: &mut File,
) -> Result<Option<(Position, Position)>, PruneError> {
    let (mut after, mut copied, mut left) = (range.0, None, PRUNE_BATCH);
    while left > 0 {
        let query = query(start(store, tenant, after)?, PAGE.min(left));
        let page = store.event_page(tenant, query).await?;
        for event in page.items.iter().take_while(|e| e.sequence <= range.1) {
            file.write_all(&line(event)?).await?;
            copied = Some((copied.map_or(event.sequence, |(first, _)| first), event.sequence));
        }
        left -= PAGE;
        match page.items.last() {
            Some(last) if page.has_more && last.sequence < range.1 => after = last.sequence,
            _ => break,
        }
    }
    Ok(copied)
}

/// Every event of the tenant from the oldest on, up to the first that did not occur before `before`, a page at a time.
/// These are what a prune with the same time would delete.
pub struct Pages {
    store: Store,
    tenant: TenantId,
    before: Timestamp,
    next: Option<Start>,
}

impl Pages {
    /// Begins at the oldest event.
    pub fn new(store: Store, tenant: TenantId, before: Timestamp) -> Self {
        Self { store, tenant, before, next: Some(Start::First) }
    }

    /// The next page; none at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<Event>>, Error> {
        let Some(start) = self.next.take() else { return Ok(None) };
        let mut page = self.store.event_page(self.tenant, query(start, PAGE)).await?;
        let whole = page.items.len();
        let old = page.items.iter().take_while(|e| e.occurred_at < self.before).count();
        page.items.truncate(old);
        if let Some(last) = page.items.last().filter(|_| old == whole && page.has_more) {
            self.next = Some(start_after(&last.cursor)?);
        }
        Ok(Some(page.items))
    }
}

/// An event as a line of an export.
pub fn line(event: &Event) -> io::Result<Vec<u8>> {
    let mut line = event.to_line()?;
    line.push('\n');
    Ok(line.into_bytes())
}

fn start(store: &Store, tenant: TenantId, after: Position) -> Result<Start, Error> {
    start_after(&store.journal_cursor(tenant, after))
}

fn start_after(cursor: &str) -> Result<Start, Error> {
    Cursor::decode(cursor).map(Start::After).map_err(|e| Error::Corrupt(format!("an event's cursor: {e}")))
}

fn query(start: Start, limit: i64) -> EventQuery {
    EventQuery { prefixes: Vec::new(), workspace_id: None, entity_type: None, entity_id: None, start, limit }
}
