//! `cargo xtask test`: the whole suite on a machine with only Rust. The Rust tests come last, so that the output ends in
//! their runner's summary.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use courant_pgtest::{Options, PrivatePostgres, URL_VARIABLE};

use crate::workspace::Workspace;
use crate::{fuzz, machine, python, step};

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    let filter: &[String] = match args {
        [first, rest @ ..] if first == "--" => rest,
        all => all,
    };
    let everything = filter.is_empty();

    step::heading("what the tests need");
    machine::need_postgres()?;
    machine::need_python()?;
    // A Rust test runs a Python program too, so it is made whatever the filter.
    let python = python::environment(workspace)?;

    if everything {
        step::heading("build");
        step::run(&mut workspace.cargo(&["build", "--workspace", "--bin", "courant", "--examples"]))?;
        step::run(&mut workspace.cargo(&["test", "--workspace", "--no-run"]))?;
    }

    // Lives until the end of this function, however it ends.
    let postgres = PrivatePostgres::start(Options::default())?;
    let url = postgres.url("postgres");

    if everything {
        step::heading("documentation tests");
        step::run(workspace.cargo(&["test", "--workspace", "--doc"]).env(URL_VARIABLE, &url))?;
        step::heading("Python checks");
        python::checks(workspace, &python)?;
        step::heading("Fuzzing");
        fuzz::run(workspace, fuzz::SECONDS)?;
    }

    step::heading("Rust tests");
    let nextest = step::succeeds(&mut workspace.cargo(&["nextest", "--version"]));
    let mut command =
        workspace.cargo(if nextest { &["nextest", "run"] } else { &["test", "--tests", "--no-fail-fast"] });
    if !filter.iter().any(|arg| arg == "-p" || arg.starts_with("--package")) {
        command.arg("--workspace");
    }
    command.args(filter).env(URL_VARIABLE, &url);
    if nextest { step::run(&mut command) } else { run_cargo_test(&mut command) }
}

/// `cargo test` sums up each test binary; this adds one line in its form for all of them.
fn run_cargo_test(command: &mut Command) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo test")?;
    let mut total = Total::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line?;
            total.add(&line);
            println!("{line}");
        }
    }
    let passed = child.wait()?.success();
    let word = if passed { "ok" } else { "FAILED" };
    println!("test result: {word}. {} passed; {} failed; all test binaries together", total.passed, total.failed);
    if !passed {
        bail!("tests failed");
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Total {
    passed: u64,
    failed: u64,
    ignored: u64,
    filtered: u64,
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, ignored, filtered } = self;
        write!(f, "{passed} passed; {failed} failed; {ignored} ignored; 0 measured; {filtered} filtered out")
    }
}

impl Total {
    fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". ")) else {
            return;
        };
        for count in counts.split("; ") {
            match count.split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some((number, "ignored")) => self.ignored += number.parse().unwrap_or(0),
                Some((number, "filtered out")) => self.filtered += number.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Total;

    #[test]
    fn the_results_of_all_test_binaries_are_summed() {
        let mut total = Total::default();
        total.add("test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s");
        total.add("test a_result ... ok");
        total.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s");
        assert_eq!(total.to_string(), "7 passed; 2 failed; 0 ignored; 0 measured; 2 filtered out");
    }
}
