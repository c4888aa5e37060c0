//! Benchmarks: what Courant does, beside a plain baseline doing the same on the same machine in the same run.
//!
//! A figure is the median of rounds that alternate between ours and the baseline, and is worth reading only as the
//! ratio of the two. Nothing here asserts a figure; the smoke run only proves that every bench works.

mod append;
mod conn;
mod cpu;
mod deliver;
mod journal;
mod load;
mod machine;
mod ours;
mod page;
mod place;
mod queue;
mod raw;
mod record;
mod report;
mod rounds;
mod sample;
mod seam;
mod sink;

use std::time::Duration;

use anyhow::Result;

pub use load::Until;
pub use machine::Machine;
pub use record::write;
pub use report::{Compares, Figure, Row, Spread, Table, text};

/// One of the benches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bench {
    /// The store's API against the drivers it is built on.
    Seam,
    /// `POST /events` against inserts without HTTP.
    Append,
    /// Queued deliveries against a loop of plain HTTP requests.
    Deliver,
    /// The journal against its raw limits, and the ways to order it against each other.
    Journal,
}

impl Bench {
    /// All of them, in the order they run.
    pub const ALL: [Self; 4] = [Self::Seam, Self::Append, Self::Deliver, Self::Journal];

    /// Its name on the command line and in the document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seam => "seam",
            Self::Append => "append",
            Self::Deliver => "deliver",
            Self::Journal => "journal",
        }
    }
}

/// How long and how much.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Rounds of ours and the baseline in turn.
    pub rounds: usize,
    /// How long one measurement of a closed loop lasts.
    pub until: Until,
    /// Events in the journal that pages are read from.
    pub journal: usize,
    /// Events in the large and in the small journal that filtered pages are read from; multiples of 5,000.
    pub filtered: [i64; 2],
    /// Deliveries in the outbox that is claimed and marked without a network.
    pub outbox: usize,
    /// Deliveries that are sent.
    pub deliveries: usize,
    /// Only rows whose title contains this.
    pub only: Option<String>,
}

impl Scale {
    /// What a figure is taken at.
    pub fn full() -> Self {
        Self {
            rounds: 3,
            until: Until::Passed(Duration::from_secs(3)),
            journal: 50_000,
            filtered: [2_000_000, 20_000],
            outbox: 20_000,
            deliveries: 10_000,
            only: None,
        }
    }

    /// Just enough to show that everything runs.
    pub fn smoke() -> Self {
        Self {
            rounds: 1,
            until: Until::Calls(3),
            journal: 1_200,
            filtered: [20_000, 5_000],
            outbox: 250,
            deliveries: 50,
            only: None,
        }
    }

    fn wants(&self, title: &str) -> bool {
        self.only.as_deref().is_none_or(|part| title.contains(part))
    }
}

/// Runs one bench on both databases.
pub async fn run(bench: Bench, scale: &Scale) -> Result<Table> {
    let server = raw::postgres::Connection::open(&courant_testkit::postgres::shared_server_url()?).await?;
    cpu::count_postgres(server.text("SELECT pg_backend_pid()::text").await?.parse()?)?;
    drop(server);
    let rows = match bench {
        Bench::Seam => seam::run(scale).await?,
        Bench::Append => append::run(scale).await?,
        Bench::Deliver => deliver::run(scale).await?,
        Bench::Journal => journal::run(scale).await?,
    };
    Ok(Table { bench: bench.name(), rows })
}
