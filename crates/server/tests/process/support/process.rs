//! A process of the built binary: what it says, how it is told to end, and how it ended.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use courant_testkit::{PATIENCE, eventually};
use serde_json::Value;
use tokio::sync::mpsc;

/// Environment of a process, and nothing else of it.
pub type Settings = BTreeMap<String, String>;

/// The binary with these arguments, in this directory.
pub fn command(args: &[&str], settings: &Settings, dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_courant"));
    command.args(args).env_clear().envs(settings).current_dir(dir).stdin(Stdio::null());
    command
}

/// A process that has ended, and what it said.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Runs a command to its end.
    pub async fn of(mut command: Command) -> Self {
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// What it wrote to standard output, as it has ended well.
    #[track_caller]
    pub fn well(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:?}");
        &self.stdout
    }
}

/// A running server.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    said: Arc<Mutex<String>>,
    printed: Arc<Mutex<String>>,
    /// What it writes is read here until it ends.
    reading: Vec<thread::JoinHandle<()>>,
}

impl Process {
    /// Starts `command`, a server, and waits until it listens; what it said when it ends instead.
    pub async fn start(mut command: Command) -> Result<Self, Ended> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(String::new()));
        let (listens, mut address) = mpsc::unbounded_channel();
        let stdout = child.stdout.take().unwrap();
        let stderr = child.stderr.take().unwrap();
        let out = Arc::new(Mutex::new(String::new()));
        // They end with the process.
        let reading = vec![read(stdout, Arc::clone(&out), None), read(stderr, Arc::clone(&said), Some(listens))];
        let heard = tokio::time::timeout(PATIENCE, address.recv()).await;
        if let Some(address) = heard.expect("a server that listens or ends") {
            return Ok(Self { child, address, said, printed: out, reading });
        }
        let code = child.wait().unwrap().code();
        for thread in reading {
            thread.join().unwrap();
        }
        let text = |text: &Mutex<String>| text.lock().unwrap().clone();
        Err(Ended { code, stdout: text(&out), stderr: text(&said) })
    }

    /// Ends it at once, as a crash would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its number in the system.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal by name.
    pub fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits until it has ended.
    pub async fn ended(mut self) -> ExitStatus {
        eventually("the end of the server", async || self.child.try_wait().unwrap()).await
    }

    /// Waits until it has ended, and gives everything that it has said.
    pub async fn ended_having_said(mut self) -> Ended {
        let status = eventually("the end of the server", async || self.child.try_wait().unwrap()).await;
        for thread in std::mem::take(&mut self.reading) {
            thread.join().unwrap();
        }
        let text = |text: &Mutex<String>| text.lock().unwrap().clone();
        Ended { code: status.code(), stdout: text(&self.printed), stderr: text(&self.said) }
    }

    /// Its log so far.
    pub fn log(&self) -> String {
        self.said.lock().unwrap().clone()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines as long as there are any, and looks for the one that says where the server listens.
fn read(
    from: impl Read + Send + 'static,
    to: Arc<Mutex<String>>,
    listens: Option<mpsc::UnboundedSender<SocketAddr>>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if let Some(listens) = &listens
                && let Ok(entry) = serde_json::from_str::<Value>(&line)
                && entry["message"] == "courant is listening"
            {
                // Nobody waits for a second line like it.
                let _ = listens.send(entry["address"].as_str().unwrap().parse().unwrap());
            }
            let mut said = to.lock().unwrap();
            said.push_str(&line);
            said.push('\n');
        }
    })
}
