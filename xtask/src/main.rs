//! `cargo xtask`: what a developer or CI does with the workspace. Depends on next to nothing, so that it builds in seconds.

#![expect(clippy::print_stdout, reason = "a command-line tool speaks on its standard output")]
#![expect(clippy::print_stderr, reason = "a command-line tool complains on its standard error")]

mod arch;
mod bench;
mod fuzz;
mod generate;
mod machine;
mod promise;
mod python;
mod step;
mod test;
mod webhooks;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::generate::Purpose;
use crate::workspace::Workspace;

const USAGE: &str = "\
cargo xtask <command>

  test [FILTER…]       every test: documentation, Python, Rust. Installs PostgreSQL, Python's venv and npm when they
                       are missing. With arguments, only the Rust tests that the runner selects by them
  gen [--check]        write the generated files (contract/, docs/events/); --check only says which are out of date.
                       Both fail when the API breaks what promise/openapi.json says; --promise, at a release, adds to it
  check-arch           who may depend on whom, drivers, licences, sources, file rules
  fuzz [SECONDS]       fuzz each parser of what readers send, 10 seconds when not said otherwise
  bench NAME [ARG…]    measure, beside a baseline, on a private PostgreSQL with fsync on";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let flags: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (command.as_str(), flags.as_slice()) {
        ("test", _) => test::run(&Workspace::load()?, &rest),
        ("gen", []) => generate::run(&Workspace::load()?, Purpose::Write),
        ("gen", ["--check"]) => generate::run(&Workspace::load()?, Purpose::Check),
        ("gen", ["--promise"]) => generate::run(&Workspace::load()?, Purpose::Promise),
        ("check-arch", []) => arch::run(&Workspace::load()?),
        ("fuzz", []) => fuzz::run(&Workspace::load()?, fuzz::SECONDS),
        ("fuzz", [seconds]) => fuzz::run(&Workspace::load()?, seconds.parse()?),
        ("bench", [name, ..]) if !name.starts_with('-') => bench::run(&Workspace::load()?, &rest),
        ("" | "help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("`{}` is no command\n\n{USAGE}", [&[command.as_str()], flags.as_slice()].concat().join(" ")),
    }
}
