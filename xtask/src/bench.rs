//! `cargo xtask bench`: forwards to the benchmark package, on a private PostgreSQL whose commits reach the disk.

use anyhow::{Result, ensure};
use courant_pgtest::{Options, PrivatePostgres, URL_VARIABLE};

use crate::workspace::Workspace;
use crate::{machine, step};

const PACKAGE: &str = "courant-bench";

pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<()> {
    ensure!(workspace.has_package(PACKAGE), "this workspace has no package `{PACKAGE}`");
    machine::need_postgres()?;
    step::run(&mut workspace.cargo(&["build", "--release", "--package", PACKAGE]))?;
    let postgres = PrivatePostgres::start(Options { fsync: true, ..Options::default() })?;
    let mut command = workspace.cargo(&["run", "--quiet", "--release", "--package", PACKAGE, "--"]);
    step::run(command.args(args).env(URL_VARIABLE, postgres.url("postgres")))
}
