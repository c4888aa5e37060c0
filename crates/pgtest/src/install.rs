//! Where the PostgreSQL server programs are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest major version Courant supports.
const OLDEST_MAJOR: u32 = 14;

/// The folder of one installed server's programs.
#[derive(Clone, Debug)]
pub struct Installation {
    bin: PathBuf,
    major: u32,
}

impl Installation {
    /// The newest supported installation on this machine.
    pub fn newest() -> Option<Self> {
        candidates()
            .into_iter()
            .filter(|bin| bin.join("initdb").exists() && bin.join("psql").exists())
            .filter_map(|bin| major_of(&bin).map(|major| Self { bin, major }))
            .filter(|found| found.major >= OLDEST_MAJOR)
            .max_by_key(|found| found.major)
    }

    /// The major version, such as 15.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The path of one of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }
}

fn candidates() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"]
        .iter()
        .filter_map(|parent| fs::read_dir(parent).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    if let Some(bin) = first_line(Command::new("pg_config").arg("--bindir")) {
        found.push(PathBuf::from(bin));
    }
    found
}

fn major_of(bin: &Path) -> Option<u32> {
    parse_major(&first_line(Command::new(bin.join("postgres")).arg("--version"))?)
}

fn parse_major(version: &str) -> Option<u32> {
    let (_, number) = version.split_once("(PostgreSQL) ")?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()?.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::parse_major;

    #[test]
    fn the_major_version_is_read_from_releases_and_betas() {
        assert_eq!(parse_major("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)"), Some(15));
        assert_eq!(parse_major("postgres (PostgreSQL) 18beta1"), Some(18));
        assert_eq!(parse_major("postgres: no such file"), None);
    }
}
