//! `courant demo` as a process: what it tells, how it ends, and that it leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The binary with nothing of this machine's environment but the search path, its temporary files in `directory`.
fn courant(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_courant"));
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    command.current_dir(directory).env("TMPDIR", directory);
    command
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn steps(output: &Output) -> Vec<Value> {
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of<'a>(steps: &'a [Value], step: &str) -> Vec<&'a Value> {
    steps.iter().filter(|s| s["step"] == step).collect()
}

fn str_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("{pointer} in {value}"))
}

#[test]
fn every_event_arrives_where_it_is_wanted_and_the_broken_target_gets_its_own_by_a_retry() {
    let directory = tempfile::tempdir().unwrap();
    let output = courant(directory.path()).args(["demo", "--once", "--json"]).output().unwrap();
    let steps = steps(&output);
    assert!(output.status.success(), "{}\n{steps:#?}", text(&output.stderr));
    assert!(is_empty(directory.path()), "it left something behind");

    let published: Vec<_> = of(&steps, "event")
        .into_iter()
        .map(|s| &s["event"])
        .filter(|e| str_at(e, "/type").starts_with("release.") || str_at(e, "/type").starts_with("invoice."))
        .collect();
    let entities: Vec<_> = published.iter().map(|e| str_at(e, "/entityId")).collect();
    assert_eq!(entities, ["checkout-4.2.0", "ledger-1.9.0", "INV-2041", "search-7.0.1"]);
    let sequences: Vec<_> = of(&steps, "event").iter().map(|s| s["event"]["sequence"].as_i64().unwrap()).collect();
    assert!(sequences.is_sorted_by(|a, b| a < b), "{sequences:?}");

    // Of the three releases, the two in the shop's workspaces; each once.
    let mut fallbacks: Vec<_> =
        of(&steps, "slack_message").into_iter().map(|m| str_at(m, "/attachment/fallback")).collect();
    fallbacks.sort_unstable();
    assert_eq!(fallbacks, ["checkout 4.2.0 — release completed", "search 7.0.1 — release failed"]);
    for message in of(&steps, "slack_message") {
        assert_eq!(message["attachment"]["blocks"].as_array().unwrap().len(), 2);
        assert!(str_at(message, "/attachment/color").starts_with('#'));
    }

    let webhooks = of(&steps, "webhook");
    let targets: Vec<_> = webhooks.iter().map(|w| (str_at(w, "/target"), w["verified"].as_bool())).collect();
    assert_eq!(targets, [("bookkeeping", Some(true)), ("status-page", Some(true))]);
    assert_eq!(str_at(webhooks[0], "/body/event/entityId"), "INV-2041");

    let [dead] = of(&steps, "dead_letter")[..] else { panic!("{steps:#?}") };
    assert_eq!((str_at(dead, "/delivery/status"), str_at(dead, "/delivery/integrationName")), ("dead", "status-page"));
    assert!(str_at(dead, "/delivery/lastError").starts_with("HTTP 404 "));
    let [retried] = of(&steps, "retried")[..] else { panic!("{steps:#?}") };
    assert_eq!(str_at(retried, "/outcome"), "requeued");
    assert_eq!(str_at(retried, "/deliveryId"), str_at(dead, "/delivery/id"));
    assert_eq!(str_at(webhooks[1], "/headers/webhook-id"), str_at(dead, "/delivery/id"));
    assert_eq!(of(&steps, "deliveries").last().unwrap()["items"], serde_json::json!([]));
    assert_eq!(steps.last().unwrap(), &serde_json::json!({ "step": "done", "ok": true, "error": null }));
}

#[test]
fn without_a_terminal_it_is_told_without_colour() {
    let directory = tempfile::tempdir().unwrap();
    let output = courant(directory.path()).args(["demo", "--once"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(!told.contains('\u{1b}'));
    for line in [
        "  ▌ ✅ checkout 4.2.0 — release completed",
        "  ▌ ❌ search 7.0.1 — release failed",
        "  POST /bookkeeping  ✓ signature valid",
        "  dead        search 7.0.1 → status-page",
        "  POST /status-page  ✓ signature valid",
        "✓ Everything arrived, and every signature is valid.",
    ] {
        assert!(told.lines().any(|told| told == line), "{line:?} is missing in\n{told}");
    }
}

#[test]
fn a_port_that_is_taken_fails_by_its_name_and_leaves_nothing_behind() {
    let (directory, taken) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap();
    let output =
        courant(directory.path()).args(["demo", "--once", "--port", &address.port().to_string()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains(&format!("listening on {address}")), "{}", text(&output.stderr));
    assert!(is_empty(directory.path()));
}

/// Ends with the test, whatever becomes of it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn it_goes_on_serving_until_it_is_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = courant(directory.path());
    command.args(["demo", "--json", "--port", "0"]).stdout(Stdio::piped());
    let mut demo = Running(command.spawn().unwrap());
    let told = BufReader::new(demo.0.stdout.take().unwrap()).lines();
    let ready = told
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap())
        .find(|step| step["step"] == "ready")
        .expect("it gets ready");

    let tail = courant(directory.path())
        .args(["tail", "--json", "--no-follow", "--last", "1"])
        .env("COURANT_URL", str_at(&ready, "/url"))
        .env("COURANT_API_KEY", str_at(&ready, "/apiKey"))
        .output()
        .unwrap();
    assert!(tail.status.success(), "{}", text(&tail.stderr));
    let last: Value = serde_json::from_slice(&tail.stdout).unwrap();
    assert_eq!(str_at(&last, "/type"), "notification_delivery.dead");

    // The shell has a kill of its own, on any machine.
    let interrupted = Command::new("sh").args(["-c", &format!("kill -INT {}", demo.0.id())]).status().unwrap();
    assert!(interrupted.success());
    assert!(demo.0.wait().unwrap().success());
    assert!(is_empty(directory.path()));
}
