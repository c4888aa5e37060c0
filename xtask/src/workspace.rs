//! Where the workspace is and what it consists of.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, MetadataCommand};

/// The workspace that `cargo xtask` was called in.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
    packages: Vec<String>,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new().no_deps().exec().context("cargo metadata")?;
        Ok(Self {
            packages: metadata.workspace_packages().iter().map(|package| package.name.to_string()).collect(),
            root: metadata.workspace_root.into(),
            target: metadata.target_directory.into(),
        })
    }

    /// Cargo's metadata with every package that any feature of ours can bring in.
    pub(crate) fn full_metadata(&self) -> Result<Metadata> {
        let mut command = MetadataCommand::new();
        command.current_dir(&self.root).features(cargo_metadata::CargoOpt::AllFeatures);
        command.exec().context("cargo metadata")
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Cargo's output directory.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Where the build for tests leaves the binary.
    pub(crate) fn courant(&self) -> PathBuf {
        self.target.join("debug/courant")
    }

    pub(crate) fn has_package(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package == name)
    }

    /// A cargo command in the root of the workspace.
    pub(crate) fn cargo(&self, args: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        command.args(args).current_dir(&self.root);
        command
    }
}
