//! Signals and process lists without `unsafe`: `kill` is the shell's, the list is `/proc`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// How long a condition wait sleeps between two looks.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Sends `signal` to every one of `pids`. Some may be gone already.
pub(crate) fn signal(signal: &str, pids: &[u32]) -> Result<()> {
    if pids.is_empty() {
        return Ok(());
    }
    Command::new("/bin/sh")
        .args(["-c", "signal=$1; shift; for pid; do kill -s \"$signal\" \"$pid\"; done; :", "sh", signal])
        .args(pids.iter().map(u32::to_string))
        .stderr(Stdio::null())
        .status()
        .context("cannot run kill")?;
    Ok(())
}

/// SIGKILLs every process that works in `dir`, until there is none: every PostgreSQL process works in its data directory.
pub(crate) fn kill_all_in(dir: &Path) -> Result<()> {
    ensure!(Path::new("/proc/self/cwd").exists(), "killing a server hard needs /proc");
    let dir = dir.canonicalize()?;
    loop {
        let pids = processes_in(&dir)?;
        if pids.is_empty() {
            return Ok(());
        }
        signal("KILL", &pids)?;
        thread::sleep(LOOK_EVERY);
    }
}

fn processes_in(dir: &Path) -> Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process that ended meanwhile, or a zombie, has no working directory.
        if fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == dir) {
            pids.push(pid);
        }
    }
    Ok(pids)
}
