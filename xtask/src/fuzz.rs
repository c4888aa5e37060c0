//! `cargo xtask fuzz`: coverage-guided fuzzing of the parsers that strangers reach, for a bounded time.
//!
//! The targets stand in `fuzz/`, apart from the workspace: they are compiled with coverage counters, which the stable
//! compiler can do without the sanitizers that it cannot.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::step;
use crate::workspace::Workspace;

/// How long each target runs.
pub(crate) const SECONDS: u32 = 10;
const TARGETS: &[&str] = &["cursor", "filter"];
const FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=1";

pub(crate) fn run(workspace: &Workspace, seconds: u32) -> Result<()> {
    let version = step::capture(std::process::Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let target_dir = workspace.target().join("fuzz");
    // A target of its own, so that build scripts and macros are compiled without the counters.
    step::run(
        workspace
            .cargo(&["build", "--quiet", "--locked", "--release", "--manifest-path", "fuzz/Cargo.toml"])
            .args(["--target", host])
            .env("RUSTFLAGS", FLAGS)
            .env("CARGO_TARGET_DIR", &target_dir),
    )?;
    for target in TARGETS {
        let found = target_dir.join("corpus").join(target);
        std::fs::create_dir_all(&found)?;
        let binary = target_dir.join(host).join("release").join(target);
        let seeds = Path::new("fuzz/corpus").join(target);
        let output = std::process::Command::new(&binary)
            .arg(format!("-max_total_time={seconds}"))
            .args(["-max_len=4096", "-timeout=10", "-print_final_stats=1"])
            .arg(format!("-artifact_prefix={}/", target_dir.display()))
            .arg(&found)
            .arg(workspace.root().join(seeds))
            .output()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "fuzzing `{target}` found a fault:\n{said}");
        let runs = said.lines().rev().find(|line| line.starts_with("Done ")).unwrap_or_default();
        println!("fuzz {target}: {runs}");
    }
    Ok(())
}
