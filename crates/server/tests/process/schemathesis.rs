//! The OpenAPI document against the server that serves it, by a tool that knows nothing of us: requests are made from
//! the document, good ones and bad ones, in sequences too, and every answer must be what the document says.
//!
//! The cases are the same in each run. `tests/schemathesis` says what is checked and what is left out.

use std::path::{Path, PathBuf};
use std::process::Command;

use courant_api::notify::DeliveryStatus;
use courant_client::PageQuery;

use crate::support::{Ended, Place, eventually, on_both_databases};

const BOOTSTRAP_SECRET: &str = "the-bootstrap-secret-of-the-run";

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// The program in the environment that `cargo xtask test` makes from the pinned requirements.
fn program() -> PathBuf {
    let target = Path::new(env!("CARGO_BIN_EXE_courant")).ancestors().nth(2).unwrap();
    let venv = target.join("venv");
    let wanted = std::fs::read_to_string(workspace().join("tests/python/requirements.txt")).unwrap();
    let installed = std::fs::read_to_string(venv.join("requirements.installed"));
    assert!(
        installed.is_ok_and(|installed| installed == wanted),
        "{} lacks what tests/python/requirements.txt asks for: run `cargo xtask test` once, which installs it with pip",
        venv.display()
    );
    venv.join("bin/schemathesis")
}

async fn every_answer_is_what_the_document_says(place: Place) {
    let server = place
        .serve_with(&[
            ("COURANT_BOOTSTRAP_SECRET", BOOTSTRAP_SECRET),
            ("COURANT_EGRESS_ALLOW", ""),
            ("COURANT_NOTIFICATION_MAX_ATTEMPTS", "1"),
        ])
        .await
        .unwrap();
    let org = place.org(&server).await;
    // Egress is closed, so the delivery dies at once and there is one to read and retry.
    org.webhook(&server, &place.sink, false).await;
    org.append(&server, 0..3).await;
    eventually("dead deliveries", async || {
        let stored = org.deliveries(&server).await;
        (stored.len() == 3 && stored.iter().all(|d| d.status == DeliveryStatus::Dead)).then_some(())
    })
    .await;

    let (client, page) = (org.at(&server), PageQuery::default());
    let mut own: Vec<String> = client.api_keys(&page).await.unwrap().items.iter().map(|k| k.id.to_string()).collect();
    own.extend(client.grants(&page).await.unwrap().items.iter().map(|g| g.id.to_string()));
    own.extend(client.principals(&page).await.unwrap().items.iter().map(|p| p.id.to_string()));

    let folder = workspace().join("tests/schemathesis");
    let mut command = Command::new(program());
    command
        .arg("--config-file")
        .arg(folder.join("schemathesis.toml"))
        .args(["run", &format!("http://{}/api/v1/openapi.json", server.address)])
        .args(["--no-color", "--no-shrink", "--continue-on-failure"])
        .args(["--phases", "examples,coverage,fuzzing,stateful"])
        .current_dir(place.dir())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", folder.join("hooks.py"))
        .env("COURANT_TEST_KEY", &org.key)
        .env("COURANT_TEST_ORG", org.id.to_string())
        .env("COURANT_TEST_OWN_IDS", own.join(","))
        .env("COURANT_BOOTSTRAP_SECRET", BOOTSTRAP_SECRET);
    let ended = Ended::of(command).await;
    assert_eq!(ended.code, Some(0), "{}\n{}", ended.stdout, ended.stderr);
    // The run has not locked itself out.
    client.principals(&page).await.unwrap();
}

on_both_databases! {
    every_answer_is_what_the_document_says,
}
