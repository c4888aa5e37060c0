//! `cargo xtask check-arch`: the rules of the house that a compiler does not know. One function a rule; each has a test
//! that shows it failing.

mod arrows;
mod drivers;
mod facts;
mod files;
mod licences;
mod packages;
mod purity;
mod secrets;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use facts::Facts;

/// What a rule finds wrong: one line that says what and where.
type Violations = Vec<String>;

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let facts = Facts::gather(workspace)?;
    let findings: Vec<(&str, Violations)> = vec![
        ("arrow", arrows::check(&facts.members)),
        ("driver", drivers::check_dependencies(&facts.members)),
        ("driver", drivers::check_sources(&facts.files)),
        ("purity", purity::check(&facts.closures)),
        ("secret", secrets::check(&facts.files)),
        ("licence", licences::check(&facts.packages, licences::EXCEPTIONS)),
        ("ban", packages::check_bans(&facts.packages)),
        ("source", packages::check_sources(&facts.packages)),
        ("size", files::check_sizes(&facts.files)),
        ("unfinished", files::check_unfinished(&facts.files)),
        ("name", files::check_names(&facts.files)),
    ];
    let count: usize = findings.iter().map(|(_, violations)| violations.len()).sum();
    for (rule, violations) in &findings {
        for violation in violations {
            println!("{rule}: {violation}");
        }
    }
    if count > 0 {
        bail!("{count} violations of the architecture");
    }
    println!(
        "architecture holds: {} crates, {} packages, {} source files",
        facts.members.len(),
        facts.packages.len(),
        facts.files.len()
    );
    Ok(())
}
