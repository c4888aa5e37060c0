//! The README's three commands, run as they stand there on a server with nothing configured.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use standardwebhooks::Webhook;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const README: &str = include_str!("../../../README.md");
/// Where the README's own receiver listens.
const ITS_RECEIVER: &str = "127.0.0.1:9099";

/// The commands of its shell blocks that call curl, with their continued lines.
fn curl_commands() -> Vec<String> {
    let mut commands = Vec::new();
    let mut lines = README.lines();
    while let Some(line) = lines.next() {
        if !line.starts_with("curl ") {
            continue;
        }
        let mut command = vec![line];
        while command.last().is_some_and(|line| line.ends_with('\\')) {
            command.extend(lines.next());
        }
        commands.push(command.join("\n"));
    }
    commands
}

/// A program with nothing of this machine's environment but the search path.
fn stranger(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    command
}

/// `courant serve` in an empty directory of its own.
struct Server {
    process: Child,
    directory: TempDir,
    url: String,
    org: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts it on any free port, the one thing that differs from the README.
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = stranger(env!("CARGO_BIN_EXE_courant"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(&directory);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        let (address_sender, address) = channel();
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("courant is listening address=") {
                    // Nobody waits any more when the test has failed.
                    let _ = address_sender.send(address.to_owned());
                }
            }
        });
        let mut told = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let org = told.find_map(|line| line.split_once("first start: ").map(|(_, org)| org.to_owned())).unwrap();
        told.find(|line| line == "Its key is in ./courant-data/first-key").expect("it says where the key is");
        let url = format!("http://{}", address.recv().unwrap());
        Self { process, directory, url, org }
    }

    /// Runs a command as one who has exported what the server showed.
    fn run(&self, command: &str) -> Value {
        let key = std::fs::read_to_string(self.directory.path().join("courant-data/first-key")).unwrap();
        let mut bash = stranger("bash");
        bash.env("COURANT_URL", &self.url).env("COURANT_API_KEY", key.trim()).env("COURANT_ORG", &self.org);
        let output = bash.args(["-c", command]).current_dir(self.directory.path()).output().unwrap();
        let answer = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command}\n{answer}{}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer.get("error"), None, "{command}");
        answer
    }
}

type Arrival = (HeaderMap, Bytes);

/// Something that listens; what arrives comes out of the channel.
fn receiver() -> (SocketAddr, std::sync::mpsc::Receiver<Arrival>) {
    let ((address_sender, address), (arrival_sender, arrivals)) = (oneshot::channel(), channel());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            address_sender.send(listener.local_addr().unwrap()).unwrap();
            let take = |State(arrivals): State<Sender<Arrival>>, headers: HeaderMap, body: Bytes| async move {
                arrivals.send((headers, body)).unwrap();
                StatusCode::NO_CONTENT
            };
            axum::serve(listener, Router::new().route("/", post(take)).with_state(arrival_sender)).await.unwrap();
        });
    });
    (address.blocking_recv().unwrap(), arrivals)
}

#[test]
fn three_commands_register_a_type_add_a_webhook_and_publish_an_event_that_arrives() {
    let commands = curl_commands();
    let [register, add_webhook, publish] = commands.as_slice() else { panic!("{commands:#?}") };
    assert_eq!(add_webhook.matches(ITS_RECEIVER).count(), 1, "{add_webhook}");

    let (server, (at, arrivals)) = (Server::start(), receiver());
    assert_eq!(server.run(register)["currentVersion"], 1);
    let integration = server.run(&add_webhook.replace(ITS_RECEIVER, &at.to_string()));
    let published = server.run(publish);

    let (headers, body) = arrivals.recv().unwrap();
    let secret = integration["generatedSecret"].as_str().expect("the secret is shown");
    Webhook::new(secret).unwrap().verify(&body, &headers).unwrap();
    let notification: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(notification["eventId"], published["items"][0]["id"]);
    assert_eq!(notification["event"]["type"], "order.shipped");
    assert_eq!(notification["event"]["entityId"], "A-1001");
    assert_eq!(notification["event"]["payload"], json!({ "carrier": "Harbour Post" }));
}

#[test]
fn the_receiver_listens_where_the_webhook_goes() {
    let (host, port) = ITS_RECEIVER.split_once(':').unwrap();
    assert!(README.contains(&format!("HTTPServer((\"{host}\", {port}), Receiver)")));
}

#[test]
fn every_file_that_it_links_to_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let links = README.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link);
    let files: Vec<_> = links.filter(|link| !link.starts_with("https://")).collect();
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        assert!(root.join(file).exists(), "{file}");
    }
}
