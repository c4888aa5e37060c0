//! What work costs whatever else the machine does: the processor time of this process and of its PostgreSQL.

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};

/// The first process of the PostgreSQL in use; the others are its children.
static POSTMASTER: OnceLock<u32> = OnceLock::new();

/// A tick of `/proc/<pid>/stat`, on every Linux that we know.
const TICK: Duration = Duration::from_millis(10);

/// One process as `/proc` shows it.
struct Process {
    parent: u32,
    /// Its own and its ended children's.
    spent: Duration,
}

/// Counts the PostgreSQL in from now on, named by one of its backends.
pub(crate) fn count_postgres(backend: u32) -> Result<()> {
    let parent = process(backend).context("the backend is on another machine")?.parent;
    let _same = POSTMASTER.set(parent);
    Ok(())
}

/// Processor time so far.
pub(crate) fn spent() -> Duration {
    let own = process(std::process::id()).map_or(Duration::ZERO, |own| own.spent);
    let Some(postmaster) = POSTMASTER.get() else { return own };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let of_postgres = |pid: u32| {
        let process = process(pid)?;
        (pid == *postmaster || process.parent == *postmaster).then_some(process.spent)
    };
    own + pids.filter_map(of_postgres).sum::<Duration>()
}

fn process(pid: u32) -> Option<Process> {
    read(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The fields that follow the name, which may hold anything: state, parent, … utime, stime, cutime, cstime.
fn read(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let mut ticks = 0;
    for field in fields.get(11..15)? {
        ticks += field.parse::<u32>().ok()?;
    }
    Some(Process { parent: fields.get(1)?.parse().ok()?, spent: TICK * ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_past_its_name() {
        let stat = "77 (a) b) S 12 77 77 0 -1 4194304 1 0 0 0 250 30 15 5 20 0 1 0 1 2 3";
        let process = read(stat).unwrap();
        assert_eq!((process.parent, process.spent), (12, Duration::from_secs(3)));
        assert!(read("nothing").is_none());
    }

    #[test]
    fn this_process_has_a_parent() {
        assert!(process(std::process::id()).unwrap().parent > 0);
    }
}
