//! `cargo xtask gen`: the files that are made from the code, committed, and reviewed like code.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::promise;
use crate::step;
use crate::workspace::Workspace;

/// The folder and the command of `courant` that writes it. Nothing else lives in these folders.
const GENERATED: &[(&str, &[&str])] =
    &[("docs/events", &["catalog", "export", "--dir"]), ("contract", &["contract", "export", "--dir"])];

/// What the files are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be committed.
    Write,
    /// To be compared with the committed ones.
    Check,
    /// To be committed, and what they say of the API to be kept from now on.
    Promise,
}

pub(crate) fn run(workspace: &Workspace, purpose: Purpose) -> Result<()> {
    let check = purpose == Purpose::Check;
    // Selected like this, the binary has the features that the tests build it with, and nothing is compiled twice.
    step::run(&mut workspace.cargo(&["build", "--workspace", "--bin", "courant", "--examples"]))?;
    let fresh = tempfile::tempdir()?;
    let mut stale = Vec::new();
    for (folder, command) in GENERATED {
        let made = fresh.path().join(folder);
        fs::create_dir_all(&made)?;
        step::run(Command::new(workspace.courant()).args(*command).arg(&made).current_dir(workspace.root()))?;
        let committed = workspace.root().join(folder);
        let differing = differences(&made, &committed)?;
        if !check {
            replace(&made, &committed, &differing).with_context(|| format!("cannot write {}", committed.display()))?;
        }
        stale.extend(differing.into_iter().map(|name| format!("{folder}/{name}")));
    }
    let document = fs::read_to_string(fresh.path().join("contract/openapi.json"))?;
    promise::run(workspace, &document, purpose == Purpose::Promise)?;
    if check && !stale.is_empty() {
        bail!("out of date; run `cargo xtask gen` and commit:\n  {}", stale.join("\n  "));
    }
    let verb = if check { "checked, all up to date" } else { "written" };
    let changed = if check { String::new() } else { format!("; changed: {}", stale.join(", ")) };
    println!("generated files {verb}{changed}");
    Ok(())
}

/// The names of files that are not the same in both folders.
fn differences(made: &Path, committed: &Path) -> Result<Vec<String>> {
    let names: BTreeSet<String> = file_names(made)?.into_iter().chain(file_names(committed)?).collect();
    let mut differing = Vec::new();
    for name in names {
        if content(&made.join(&name))? != content(&committed.join(&name))? {
            differing.push(name);
        }
    }
    Ok(differing)
}

fn replace(made: &Path, committed: &Path, names: &[String]) -> Result<()> {
    fs::create_dir_all(committed)?;
    for name in names {
        match content(&made.join(name))? {
            Some(bytes) => fs::write(committed.join(name), bytes)?,
            None => fs::remove_file(committed.join(name))?,
        }
    }
    Ok(())
}

fn file_names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot list {}", folder.display()))?,
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn content(file: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => Ok(Some(read.with_context(|| format!("cannot read {}", file.display()))?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_new_and_vanished_files_are_named_and_then_brought_into_line() {
        let dir = tempfile::tempdir().unwrap();
        let (made, committed) = (dir.path().join("made"), dir.path().join("committed"));
        fs::create_dir_all(&made).unwrap();
        fs::create_dir_all(&committed).unwrap();
        for name in ["same", "changed", "new"] {
            fs::write(made.join(name), name).unwrap();
        }
        for (name, text) in [("same", "same"), ("changed", "old"), ("vanished", "old")] {
            fs::write(committed.join(name), text).unwrap();
        }

        let differing = differences(&made, &committed).unwrap();
        assert_eq!(differing, ["changed", "new", "vanished"]);

        replace(&made, &committed, &differing).unwrap();
        assert_eq!(differences(&made, &committed).unwrap(), Vec::<String>::new());
        assert!(!committed.join("vanished").exists());
    }

    #[test]
    fn a_folder_that_was_never_committed_is_all_new() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "a").unwrap();
        assert_eq!(differences(dir.path(), &dir.path().join("none")).unwrap(), ["a"]);
    }
}
