//! Which account the server runs under: PostgreSQL refuses to run as root.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// The account of the server's processes. `None` inside means our own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account(Option<(u32, u32)>);

impl Account {
    /// The account to use by an owner of `probe`, a file this process has just made: itself, or `postgres` for root.
    pub(crate) fn for_owner_of(probe: &Path) -> Result<Self> {
        if fs::metadata(probe)?.uid() != 0 {
            return Ok(Self(None));
        }
        let passwd = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        let ids = ids_of("postgres", &passwd)
            .context("running as root, but there is no user `postgres` to run the server as")?;
        Ok(Self(Some(ids)))
    }

    /// Makes the account the owner of `path`.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        if let Some((uid, gid)) = self.0 {
            chown(path, Some(uid), Some(gid)).with_context(|| format!("cannot chown {}", path.display()))?;
        }
        Ok(())
    }

    /// A command that runs as the account, in `dir`, with an environment that holds nothing of ours.
    pub(crate) fn command(self, program: &Path, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C.UTF-8").current_dir(dir);
        if let Some((uid, gid)) = self.0 {
            command.uid(uid).gid(gid);
        }
        command
    }
}

fn ids_of(user: &str, passwd: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        (name == user).then_some((uid, gid))
    })
}

#[cfg(test)]
mod tests {
    use super::ids_of;

    #[test]
    fn a_user_is_found_by_its_whole_name() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\npostgres2:x:7:8::/:\npostgres:x:104:110:,,,:/var/lib:/bin/bash\n";
        assert_eq!(ids_of("postgres", passwd), Some((104, 110)));
        assert_eq!(ids_of("postgre", passwd), None);
    }
}
