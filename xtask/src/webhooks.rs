//! GitHub's own samples of its webhooks, which the tests of the bridge send: one pinned npm package, kept under `target/`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::workspace::Workspace;
use crate::{machine, step};

const PACKAGE: &str = "@octokit/webhooks-examples@7.6.1";
/// As npm names its archive. The tests know its hash, and read nothing else.
const ARCHIVE: &str = "octokit-webhooks-examples-7.6.1.tgz";

/// Fetches the samples when they are not there; returns their archive.
pub(crate) fn samples(workspace: &Workspace) -> Result<PathBuf> {
    let target = workspace.target();
    let archive = target.join(ARCHIVE);
    if archive.exists() {
        return Ok(archive);
    }
    machine::need_npm()?;
    step::heading("GitHub's samples of webhooks in target/");
    // The archive alone: nothing of the package is installed or run.
    step::run(
        Command::new("npm")
            .args(["pack", "--silent", "--ignore-scripts", PACKAGE, "--pack-destination"])
            .arg(target)
            .current_dir(target),
    )?;
    ensure!(archive.exists(), "npm has not made {}", archive.display());
    Ok(archive)
}
