//! What figures depend on: the machine, its disk, the database, the compiler and the commit.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Seek as _, Write as _};
use std::process::Command;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use courant_server::clock;
use courant_testkit::postgres::shared_server_url;
use serde::Serialize;

use crate::raw::postgres::Connection;

/// Where and with what a run was made.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// When.
    pub at: String,
    /// Processor and number of cores.
    pub cpu: String,
    /// Memory in gibibytes.
    pub memory_gib: u64,
    /// Kernel.
    pub kernel: String,
    /// How many writes of 8 KiB a second reach the disk, each waited for.
    pub fdatasync_per_second: u64,
    /// Processes that ran or waited to run before the first measurement.
    pub load: String,
    /// PostgreSQL's version.
    pub postgres: String,
    /// Whether its commits reach the disk; figures without mean nothing.
    pub fsync: bool,
    /// SQLite's version.
    pub sqlite: &'static str,
    /// The compiler.
    pub rustc: String,
    /// The commit, and whether the tree had changes.
    pub commit: String,
}

impl Machine {
    /// Looks at this machine.
    pub async fn look() -> Result<Self> {
        let server = Connection::open(&shared_server_url()?).await?;
        Ok(Self {
            at: clock::now().to_string(),
            cpu: format!("{} × {}", available_parallelism()?, cpu_model()),
            memory_gib: memory_kib()? / (1024 * 1024),
            kernel: output("uname", &["-sr"])?,
            fdatasync_per_second: fdatasyncs(Duration::from_secs(1))?,
            load: fs::read_to_string("/proc/loadavg")?.split(' ').take(1).collect(),
            postgres: server.text("SELECT current_setting('server_version')").await?,
            fsync: server.text("SELECT current_setting('fsync')").await? == "on",
            sqlite: rusqlite::version(),
            rustc: output("rustc", &["--version"])?,
            commit: commit()?,
        })
    }

    pub(crate) fn markdown(&self) -> String {
        let mut out = String::from("| | |\n|---|---|\n");
        let fsync = if self.fsync { "on" } else { "off: these figures mean nothing" };
        let lines = [
            ("taken", self.at.clone()),
            ("commit", self.commit.clone()),
            ("processor", self.cpu.clone()),
            ("memory", format!("{} GiB", self.memory_gib)),
            ("kernel", self.kernel.clone()),
            ("disk", format!("{} × fdatasync of 8 KiB a second", self.fdatasync_per_second)),
            ("load before the run", self.load.clone()),
            ("PostgreSQL", format!("{}, fsync {fsync}", self.postgres)),
            ("SQLite", format!("{}, WAL, synchronous FULL", self.sqlite)),
            ("compiler", format!("{}, profile `release`", self.rustc)),
        ];
        for (name, value) in lines {
            let _ = writeln!(out, "| {name} | {value} |");
        }
        out
    }
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned())
}

fn memory_kib() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).context("no MemTotal")?;
    Ok(total.trim().trim_end_matches(" kB").parse()?)
}

/// Writes a block over and over, as a log that is kept in place would.
fn fdatasyncs(time: Duration) -> Result<u64> {
    let mut file: File = tempfile::tempfile_in("/var/tmp")?;
    let (block, start) = ([7_u8; 8192], Instant::now());
    let mut count = 0;
    while start.elapsed() < time {
        file.rewind()?;
        file.write_all(&block)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(count)
}

fn commit() -> Result<String> {
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"])?;
    let changes = output("git", &["status", "--porcelain", "--untracked-files=no"])?;
    Ok(if changes.is_empty() { commit } else { format!("{commit} with uncommitted changes") })
}

fn output(program: &str, args: &[&str]) -> Result<String> {
    let output = Command::new(program).args(args).output().with_context(|| format!("running {program}"))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
