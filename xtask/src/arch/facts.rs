//! What the rules judge, as plain data: gathered here once, written by hand in the rules' tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use cargo_metadata::DependencyKind;

use super::purity::PURE;
use crate::step;
use crate::workspace::Workspace;

/// Folders that hold no source of ours.
const SKIPPED: &[&str] = &["target", "node_modules", "docs", "contract"];
const EXTENSIONS: &[&str] = &["rs", "py", "sql", "js", "css", "html"];

pub(crate) struct Facts {
    pub(crate) members: Vec<Member>,
    pub(crate) packages: Vec<Package>,
    /// Of each crate that must stay pure: all that its normal dependencies bring in.
    pub(crate) closures: BTreeMap<String, BTreeSet<String>>,
    pub(crate) files: Vec<SourceFile>,
}

/// A crate of the workspace.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Link>,
}

/// A direct dependency.
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) dev: bool,
    pub(crate) optional: bool,
}

/// Anything that is compiled for some target with all features on, ours included.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// `None` for a path inside the workspace.
    pub(crate) source: Option<String>,
}

pub(crate) struct SourceFile {
    /// From the workspace's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }
}

impl Facts {
    pub(crate) fn gather(workspace: &Workspace) -> Result<Self> {
        let metadata = workspace.full_metadata()?;
        let members = metadata.workspace_packages().into_iter().map(|package| Member {
            name: package.name.to_string(),
            dependencies: package
                .dependencies
                .iter()
                .map(|dependency| Link {
                    name: dependency.name.clone(),
                    dev: dependency.kind == DependencyKind::Development,
                    optional: dependency.optional,
                })
                .collect(),
        });
        let members: Vec<Member> = members.collect();

        // The metadata's own graph also holds what only a disabled feature would bring in; `cargo tree` is exact.
        let compiled = tree(workspace, &["--workspace", "--all-features", "--edges", "normal,build,dev"])?;
        let packages = metadata.packages.iter().filter_map(|package| {
            let (name, version) = (package.name.to_string(), package.version.to_string());
            let path = || {
                let inside = package.manifest_path.starts_with(&metadata.workspace_root);
                (!inside).then(|| format!("path {}", package.manifest_path))
            };
            compiled.contains(&(name.clone(), version.clone())).then(|| Package {
                name,
                version,
                licence: package.license.clone(),
                source: package.source.as_ref().map_or_else(path, |source| Some(source.repr.clone())),
            })
        });
        let packages: Vec<Package> = packages.collect();

        let mut closures = BTreeMap::new();
        for name in PURE.iter().filter(|name| workspace.has_package(name)) {
            let closure = tree(workspace, &["--package", name, "--all-features", "--edges", "normal,no-proc-macro"])?;
            closures.insert((*name).to_owned(), closure.into_iter().map(|(name, _)| name).collect());
        }

        let mut files = Vec::new();
        collect_files(workspace.root(), workspace.root(), &mut files)?;
        Ok(Self { members, packages, closures, files })
    }
}

fn tree(workspace: &Workspace, args: &[&str]) -> Result<BTreeSet<(String, String)>> {
    let fixed = ["tree", "--quiet", "--target", "all", "--prefix", "none", "--no-dedupe", "--format", "{p}"];
    let output = step::capture(&mut workspace.cargo(&[&fixed, args].concat()))?;
    Ok(output.lines().filter_map(parse_tree_line).collect())
}

/// `serde v1.0.229 (proc-macro)` → name and version.
fn parse_tree_line(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    Some((name.to_owned(), version.to_owned()))
}

fn collect_files(root: &Path, folder: &Path, files: &mut Vec<SourceFile>) -> Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect_files(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)) {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            files.push(SourceFile { path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_line_gives_name_and_version() {
        let found = |line| parse_tree_line(line).map(|(name, version)| format!("{name} {version}"));
        assert_eq!(found("serde v1.0.229 (proc-macro)").as_deref(), Some("serde 1.0.229"));
        assert_eq!(found("xtask v0.1.0 (/src/xtask)").as_deref(), Some("xtask 0.1.0"));
        assert_eq!(found(""), None);
    }

    #[test]
    fn source_files_are_found_by_extension_outside_the_skipped_folders() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["a/src/lib.rs", "a/README.md", "target/x.rs", ".git/y.rs", "docs/z.rs", "b/1.sql"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let mut files = Vec::new();
        collect_files(dir.path(), dir.path(), &mut files).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a/src/lib.rs", "b/1.sql"]);
    }
}
