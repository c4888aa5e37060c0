//! The Python checks, in a virtual environment under `target/` that is made anew when its requirements change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{step, webhooks};

const TESTS: &str = "tests/python";

/// Makes or refreshes the virtual environment; returns its interpreter.
pub(crate) fn environment(workspace: &Workspace) -> Result<PathBuf> {
    let requirements = workspace.root().join(TESTS).join("requirements.txt");
    let wanted =
        fs::read_to_string(&requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    let venv = workspace.target().join("venv");
    let python = venv.join("bin/python");
    // Written last, so an environment that was interrupted is made again.
    let stamp = venv.join("requirements.installed");
    if is_current(&stamp, &wanted) && step::succeeds(Command::new(&python).arg("--version")) {
        return Ok(python);
    }
    step::heading("Python environment in target/venv");
    step::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
    step::run(
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
            .arg(&requirements),
    )?;
    fs::write(&stamp, wanted)?;
    Ok(python)
}

/// Runs the checks. They find the built binary under `COURANT_BIN`, and GitHub's samples under `COURANT_TEST_WEBHOOKS`.
pub(crate) fn checks(workspace: &Workspace, python: &Path) -> Result<()> {
    let samples = webhooks::samples(workspace)?;
    step::run(
        Command::new(python)
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS])
            .current_dir(workspace.root())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("COURANT_BIN", workspace.courant())
            .env("COURANT_TEST_WEBHOOKS", samples),
    )
}

fn is_current(stamp: &Path, wanted: &str) -> bool {
    fs::read_to_string(stamp).is_ok_and(|installed| installed == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_current_only_for_the_requirements_it_was_made_from() {
        let dir = tempfile::tempdir().unwrap();
        let stamp = dir.path().join("stamp");
        assert!(!is_current(&stamp, "pytest==1"));
        fs::write(&stamp, "pytest==1").unwrap();
        assert!(is_current(&stamp, "pytest==1"));
        assert!(!is_current(&stamp, "pytest==2"));
    }
}
