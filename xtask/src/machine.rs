//! What the tests need installed besides Rust. On Debian and its like, what is missing is installed; elsewhere the error
//! says what to install.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use courant_pgtest::Installation;

use crate::step;

/// Makes sure that a PostgreSQL server can be started.
pub(crate) fn need_postgres() -> Result<()> {
    if Installation::newest().is_none() {
        install("a PostgreSQL server, version 14 or newer", &["postgresql"])?;
    }
    let found =
        Installation::newest().context("PostgreSQL is installed, but no initdb of version 14 or newer is found")?;
    println!("PostgreSQL {} at {}", found.major(), found.program("postgres").display());
    Ok(())
}

/// Makes sure that `python3 -m venv` works.
pub(crate) fn need_python() -> Result<()> {
    if !python_works() {
        install("Python 3 with venv", &["python3", "python3-venv"])?;
    }
    ensure!(python_works(), "`python3 -m venv` does not work: its modules `venv` and `ensurepip` are missing");
    Ok(())
}

/// Makes sure that npm can fetch a package.
pub(crate) fn need_npm() -> Result<()> {
    if !npm_works() {
        install("npm", &["npm"])?;
    }
    ensure!(npm_works(), "npm is installed, but `npm --version` does not work");
    Ok(())
}

fn npm_works() -> bool {
    step::succeeds(Command::new("npm").arg("--version"))
}

fn python_works() -> bool {
    step::succeeds(Command::new("python3").args(["-c", "import venv, ensurepip"]))
}

fn install(what: &str, packages: &[&str]) -> Result<()> {
    let by_hand = format!("{what} is missing; please install it (on Debian: apt-get install {})", packages.join(" "));
    if !step::succeeds(Command::new("apt-get").arg("--version")) {
        bail!("{by_hand}");
    }
    let as_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !as_root && !step::succeeds(Command::new("sudo").arg("--version")) {
        bail!("{by_hand}");
    }
    step::heading(&format!("installing {}", packages.join(" ")));
    let apt = |args: &[&str]| {
        let mut command = Command::new(if as_root { "env" } else { "sudo" });
        if !as_root {
            command.arg("env");
        }
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]).args(args);
        step::run(&mut command).with_context(|| by_hand.clone())
    };
    apt(&["update"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], packages].concat())
}
