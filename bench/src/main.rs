//! The benchmarks' command line; `cargo xtask bench` gives it a private PostgreSQL whose commits reach the disk.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use courant_bench::{Bench, Machine, Scale, Table, Until, run, text, write};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Measures Courant beside plain baselines in the same run.
#[derive(Parser)]
#[command(name = "bench")]
struct Cli {
    /// What to measure.
    bench: Which,
    /// Only show that it works; its figures mean nothing.
    #[arg(long)]
    smoke: bool,
    /// Write one JSON document instead of tables.
    #[arg(long)]
    json: bool,
    /// Put the tables into docs/benchmarks.md.
    #[arg(long, conflicts_with_all = ["smoke", "only"])]
    write: bool,
    /// Only rows whose database and title contain this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Rounds of ours and the baseline in turn.
    #[arg(long, value_name = "COUNT")]
    rounds: Option<usize>,
    /// Length of one measurement of a closed loop.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Where the server's log lines go; they are written as `courant serve` writes them.
    #[arg(long, value_name = "PATH", default_value = "/dev/null")]
    log: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Which {
    Seam,
    Append,
    Deliver,
    Journal,
    All,
}

fn main() -> ExitCode {
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(measure(Cli::parse())));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _unseen = writeln!(std::io::stderr(), "bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(cli: Cli) -> Result<()> {
    let log = File::options().create(true).append(true).open(&cli.log).context("the log file")?;
    let lines = layer().with_ansi(false).with_writer(log);
    tracing_subscriber::registry().with(tracing_subscriber::EnvFilter::new("info")).with(lines).init();

    let mut scale = if cli.smoke { Scale::smoke() } else { Scale::full() };
    scale.only = cli.only;
    scale.rounds = cli.rounds.unwrap_or(scale.rounds);
    scale.until = cli.seconds.map_or(scale.until, |seconds| Until::Passed(Duration::from_secs(seconds)));
    let benches = match cli.bench {
        Which::Seam => vec![Bench::Seam],
        Which::Append => vec![Bench::Append],
        Which::Deliver => vec![Bench::Deliver],
        Which::Journal => vec![Bench::Journal],
        Which::All => Bench::ALL.to_vec(),
    };

    let machine = Machine::look().await?;
    ensure!(cli.smoke || machine.fsync, "PostgreSQL runs without fsync; `cargo xtask bench` starts one with it");
    let mut out = std::io::stdout();
    let mut tables: Vec<Table> = Vec::new();
    for bench in benches {
        let table = run(bench, &scale).await?;
        if !cli.json {
            writeln!(out, "{}", text(&table))?;
        }
        tables.push(table);
    }
    if cli.json {
        let document = serde_json::json!({ "machine": machine, "smoke": cli.smoke, "tables": tables });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
    }
    if cli.write {
        let document = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md"));
        write(&document, &machine, &tables)?;
    }
    Ok(())
}
