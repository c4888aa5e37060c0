//! One reader that catches up in pages of 1000, over HTTP and through the store, beside the rows selected and written
//! out as JSON.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use courant_api::event::EventPage;
use tokio::time::{sleep, timeout};

use crate::Scale;
use crate::conn::Conn;
use crate::load::{Client, run as run_load};
use crate::ours::Ours;
use crate::page::{Pages, fill, raw_pages};
use crate::place::{Engine, Tenant};
use crate::raw::{postgres, sqlite};
use crate::report::Row;
use crate::rounds::{Measure, alternate};

const LIMIT: i64 = 1000;
/// The announcer has this long for the whole journal.
const PATIENCE: Duration = Duration::from_mins(2);
const HTTP: &str = "catching up by GET /events, pages of 1000";
const STORE: &str = "catching up by the store, pages of 1000";

pub(super) async fn run(engine: Engine, scale: &Scale) -> Result<Vec<Row>> {
    let wanted = |title: &str| scale.wants(&format!("{} {title}", engine.name()));
    if !wanted(HTTP) && !wanted(STORE) {
        return Ok(Vec::new());
    }
    let server = Ours::start(engine).await?;
    let (store, tenant) = (&server.running.app.store, Tenant { id: server.tenant, principal: server.principal });
    fill(store, tenant, scale.journal).await?;
    let filled = store.journal_horizon().await?;
    timeout(PATIENCE, announced(engine, &server, filled)).await.context("the announcer does not catch up")??;
    if engine == Engine::Postgres {
        let connection = postgres::Connection::open(server.place.url()).await?;
        connection.batch("VACUUM ANALYZE event").await?;
        connection.batch("CHECKPOINT").await?;
    }
    let until = scale.until;
    let raw = async || raw_pages(engine, &server.place, tenant, LIMIT, 1, until).await;
    let over_http = async || -> Result<Measure> {
        let conn = Conn::open(server.running.address, &server.key).await?;
        Ok(run_load(vec![Reader { conn, path: PATH.into() }], until).await?.0)
    };
    let by_store =
        async || -> Result<Measure> { Ok(run_load(vec![Pages::new(store.clone(), tenant, LIMIT)], until).await?.0) };
    let mut rows = Vec::new();
    if wanted(HTTP) {
        let pairs = alternate(scale.rounds, over_http, raw).await?;
        rows.push(Row::of(engine.name(), HTTP.into(), "events", &pairs));
    }
    if wanted(STORE) {
        let pairs = alternate(scale.rounds, by_store, raw).await?;
        rows.push(Row::of(engine.name(), STORE.into(), "events", &pairs));
    }
    server.stop().await;
    Ok(rows)
}

/// Waits until the announcer has read what was filled in: it is not to work beside what is measured.
async fn announced(engine: Engine, server: &Ours, upto: i64) -> Result<()> {
    let text = "SELECT CAST(seq AS text) FROM consumer_position WHERE name = 'announcer'";
    loop {
        let position: String = match engine {
            Engine::Postgres => postgres::Connection::open(server.place.url()).await?.text(text).await?,
            Engine::Sqlite => sqlite::connect(server.place.url())?.query_row(text, [], |row| row.get(0))?,
        };
        if position.parse::<i64>()? >= upto {
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
}

const PATH: &str = "/api/v1/events?limit=1000";

/// Reads the journal over and over on one kept connection.
struct Reader {
    conn: Conn,
    path: String,
}

impl Client for Reader {
    async fn call(&mut self) -> Result<u64> {
        let body = self.conn.get(&self.path).await?;
        // What is measured is the server: of a full page only its end is looked at.
        let end = body.get(body.len().saturating_sub(400)..).unwrap_or(&body);
        let end = String::from_utf8_lossy(end);
        if end.ends_with("\"hasMore\":true}") {
            let (_, cursor) = end.rsplit_once("\"nextCursor\":\"").context("a page without a cursor")?;
            let (cursor, _) = cursor.split_once('"').context("a cursor without an end")?;
            self.path = format!("{PATH}&cursor={cursor}");
            return Ok(LIMIT.unsigned_abs());
        }
        let page: EventPage = serde_json::from_slice(&body)?;
        ensure!(!page.has_more, "a page ends in another way than expected: {end}");
        self.path = PATH.into();
        Ok(page.items.len() as u64)
    }
}
