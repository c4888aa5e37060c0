//! What clients were promised of the HTTP API, and whether it still holds.
//!
//! `promise/openapi.json` is the document of the last release. It is only ever extended, by `cargo xtask gen --promise`. A
//! promise that is to be broken on purpose is taken out of that file in the same change, where a reviewer sees it.

mod operations;
mod schemas;

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::Workspace;
use operations::breaks;

const PROMISED: &str = "promise/openapi.json";
const CURRENT: &str = "contract/openapi.json";

/// Fails if the document that is committed or was just written breaks what was promised; `extend` then promises all of it.
pub(crate) fn run(workspace: &Workspace, current: &str, extend: bool) -> Result<()> {
    let path = workspace.root().join(PROMISED);
    let promised = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let broken = breaks(&parse(&promised, PROMISED)?, &parse(current, CURRENT)?);
    if !broken.is_empty() {
        bail!(
            "the API breaks what {PROMISED} promises; keep it, or take the promise out of that file:\n  {}",
            broken.join("\n  ")
        );
    }
    if extend {
        fs::write(&path, current).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn parse(text: &str, name: &str) -> Result<Value> {
    serde_json::from_str(text).with_context(|| format!("{name} is not JSON"))
}
