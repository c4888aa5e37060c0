//! The server's life: made, started, stopped, killed, started again, removed.
//!
//! A watcher (a shell that reads from a pipe only we hold) removes the server when this process ends without running
//! destructors: on ctrl-c, SIGKILL, or for a server kept in a `static`.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::account::Account;
use crate::install::Installation;
use crate::process::{self, LOOK_EVERY};

/// After this long without getting ready the start is given up; crash recovery counts into it.
const START_LIMIT: Duration = Duration::from_mins(2);

/// Below the ports that the kernel gives to outgoing connections, so that a restart finds its port still free.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// $1 is the server's directory, $2 its `pg_ctl`. The loop ends when the other end of the pipe closes.
const WATCHER: &str = r#"while read -r _; do :; done
[ -d "$1" ] || exit 0
"$2" -D "$1/data" -m immediate -w -t 30 stop
rm -rf "$1""#;

const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("max_connections", "300"),
    ("max_prepared_transactions", "20"),
    ("shared_buffers", "128MB"),
    ("log_min_messages", "warning"),
    // Only looked at in recovery, which here never has more than the data directory itself.
    ("restore_command", "false"),
];

/// What a private server differs in.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether commits reach the disk: `true` for benchmarks, whose directory then lies on a disk (`/var/tmp`). Off is
    /// safe against SIGKILL all the same; only a crash of the machine would lose anything.
    pub fsync: bool,
    /// Further `postgresql.conf` settings, in the order given; they win over ours.
    pub settings: Vec<(String, String)>,
}

/// A PostgreSQL server of one's own. Dropping it stops the server and removes its directory.
#[derive(Debug)]
pub struct PrivatePostgres {
    installation: Installation,
    account: Account,
    port: u16,
    settings: Vec<(String, String)>,
    postmaster: Option<Child>,
    /// `Some` until dropped.
    dir: Option<TempDir>,
    watcher: Child,
}

impl PrivatePostgres {
    /// Makes a cluster with the newest installed PostgreSQL and starts it.
    pub fn start(options: Options) -> Result<Self> {
        let installation = Installation::newest()
            .context("no PostgreSQL server (14 or newer) is installed; on Debian: apt-get install postgresql")?;
        let parent = if options.fsync { PathBuf::from("/var/tmp") } else { std::env::temp_dir() };
        let dir = tempfile::Builder::new()
            .prefix("courant-pg-")
            .tempdir_in(&parent)
            .with_context(|| format!("cannot make a directory in {}", parent.display()))?;
        let account = Account::for_owner_of(dir.path())?;
        account.own(dir.path())?;
        let watcher = watch(account, &installation, dir.path())?;

        let flag = if options.fsync { "on" } else { "off" };
        let mut settings: Vec<(String, String)> = SETTINGS
            .iter()
            .chain(&[("fsync", flag), ("full_page_writes", flag)])
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        settings.push(("unix_socket_directories".to_owned(), dir.path().display().to_string()));
        settings.extend(options.settings);

        let mut server = Self { installation, account, port: 0, settings, postmaster: None, dir: Some(dir), watcher };
        server.initdb()?;
        server.launch_on_a_free_port()?;
        Ok(server)
    }

    /// The URL of one of its databases; `postgres` always exists.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its unix socket, which also holds its data and log.
    pub fn dir(&self) -> &Path {
        self.dir.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// What the server has logged so far.
    pub fn log(&self) -> String {
        fs::read(self.log_path()).map_or_else(|_| String::new(), |log| String::from_utf8_lossy(&log).into_owned())
    }

    /// Creates an empty database and returns its URL.
    pub fn create_database(&self, name: &str) -> Result<String> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        ensure!(!name.is_empty() && name.chars().all(plain), "`{name}` is no plain database name");
        self.execute("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"))?;
        Ok(self.url(name))
    }

    /// Runs SQL as the superuser and returns the rows as text, columns separated by `|`.
    pub fn execute(&self, database: &str, sql: &str) -> Result<String> {
        run(self.command("psql").args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            &self.url(database),
            "-c",
            sql,
        ]))
    }

    /// Stops it in good order: open transactions are rolled back and a checkpoint is written.
    pub fn stop(&mut self) -> Result<()> {
        self.end_with("INT")
    }

    /// SIGKILLs every one of its processes at once, as a crash would.
    pub fn kill_hard(&mut self) -> Result<()> {
        let Some(mut postmaster) = self.postmaster.take() else {
            return Ok(());
        };
        let killed = process::kill_all_in(&self.data());
        postmaster.kill()?;
        postmaster.wait()?;
        killed
    }

    /// Starts it again on the same port with the same data, stopping it first if it runs.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.launch()
    }

    /// Writes a database into an archive, as an operator's back-up does, and tells where.
    pub fn dump(&self, database: &str) -> Result<PathBuf> {
        let archive = self.dir().join(format!("{database}.dump"));
        run(self
            .command("pg_dump")
            .args(["--format=custom", "--dbname", &self.url(database), "--file"])
            .arg(&archive))?;
        Ok(archive)
    }

    /// Makes a database from an archive of [`Self::dump`], which may be another server's; its URL.
    pub fn restore(&self, database: &str, archive: &Path) -> Result<String> {
        let url = self.create_database(database)?;
        run(self.command("pg_restore").args(["--exit-on-error", "--no-owner", "--dbname", &url]).arg(archive))?;
        Ok(url)
    }

    /// Keeps a copy of the data directory, stopping the server meanwhile.
    pub fn back_up(&mut self) -> Result<()> {
        self.stop()?;
        self.copy(&self.data(), &self.kept())?;
        self.launch()
    }

    /// Takes the data back to the copy, as a point-in-time recovery does: the server goes on with another timeline.
    pub fn put_back(&mut self) -> Result<()> {
        self.stop()?;
        fs::remove_dir_all(self.data())?;
        self.copy(&self.kept(), &self.data())?;
        self.recover()
    }

    /// Goes on with another timeline and loses nothing, as after a clean promotion.
    pub fn promote(&mut self) -> Result<()> {
        self.stop()?;
        self.recover()
    }

    fn recover(&mut self) -> Result<()> {
        let signal = self.data().join("recovery.signal");
        File::create(&signal)?;
        self.account.own(&signal)?;
        self.launch()?;
        // Ready for readers is not yet ready for writers.
        while self.execute("postgres", "SELECT pg_is_in_recovery()")? != "f" {
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        run(self.account.command(Path::new("/bin/cp"), self.dir()).arg("-a").arg(from).arg(to))?;
        Ok(())
    }

    fn kept(&self) -> PathBuf {
        self.dir().join("kept")
    }

    fn data(&self) -> PathBuf {
        self.dir().join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.dir().join("postgres.log")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.account.command(&self.installation.program(program), self.dir());
        command.stdin(Stdio::null());
        command
    }

    fn initdb(&self) -> Result<()> {
        run(self
            .command("initdb")
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"])
            .args(["--no-sync", "--no-instructions", "--pgdata"])
            .arg(self.data()))?;
        Ok(())
    }

    fn launch_on_a_free_port(&mut self) -> Result<()> {
        loop {
            self.port = free_port()?;
            match self.launch() {
                // Somebody took the port between our look and the server's bind.
                Err(_)
                    if self.log().contains("could not bind")
                        && TcpListener::bind(("127.0.0.1", self.port)).is_err() => {}
                other => return other,
            }
        }
    }

    fn launch(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log_path())?;
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).args(["-c", &format!("port={}", self.port)]);
        for (name, value) in &self.settings {
            command.args(["-c", &format!("{name}={value}")]);
        }
        // Its own process group: a ctrl-c is ours to handle, not the server's.
        let postmaster =
            command.stdout(log.try_clone()?).stderr(log).process_group(0).spawn().context("cannot start postgres")?;
        self.postmaster = Some(postmaster);
        self.wait_until_ready()
    }

    /// The postmaster writes its state into its pid file; a file left by a killed one carries another pid.
    fn wait_until_ready(&mut self) -> Result<()> {
        let pid_file = self.data().join("postmaster.pid");
        let begun = Instant::now();
        loop {
            let Some(postmaster) = &mut self.postmaster else { bail!("the server was not started") };
            if let Some(status) = postmaster.try_wait()? {
                self.postmaster = None;
                bail!("postgres ended while starting ({status}); its log:\n{}", self.log());
            }
            let text = fs::read_to_string(&pid_file).unwrap_or_default();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let ours = lines.first().is_some_and(|pid| *pid == postmaster.id().to_string());
            if ours && lines.get(7) == Some(&"ready") {
                return Ok(());
            }
            if begun.elapsed() > START_LIMIT {
                bail!("postgres did not get ready; its log:\n{}", self.log());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn end_with(&mut self, signal: &str) -> Result<()> {
        if let Some(mut postmaster) = self.postmaster.take() {
            process::signal(signal, &[postmaster.id()])?;
            postmaster.wait()?;
        }
        Ok(())
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        // Nothing here can be reported; what fails is left to the watcher.
        let _ = self.end_with("QUIT");
        drop(self.dir.take());
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

fn watch(account: Account, installation: &Installation, dir: &Path) -> Result<Child> {
    account
        .command(Path::new("/bin/sh"), Path::new("/"))
        .args(["-c", WATCHER, "courant-pg-watcher"])
        .arg(dir)
        .arg(installation.program("pg_ctl"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .context("cannot start the watcher of the private PostgreSQL")
}

fn free_port() -> Result<u16> {
    let random = RandomState::new().build_hasher().finish();
    let offset = u16::try_from(random % u64::from(PORTS.end - PORTS.start))?;
    (PORTS.start + offset..PORTS.end)
        .chain(PORTS)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .context("no free port on 127.0.0.1")
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed ({}): {said}", command.get_program().display(), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}
