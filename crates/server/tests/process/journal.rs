//! `courant journal` and `courant doctor`: on the database itself, beside a running server too.

use courant_api::Event;
use courant_client::EventsQuery;

use crate::support::{Org, Place, Process, Value, eventually, json, on_both_databases};

fn events(ndjson: &str) -> Vec<Event> {
    ndjson.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every event that the server shows.
async fn read(server: &Process, org: &Org) -> Vec<Event> {
    let query = EventsQuery { limit: Some(1000), ..EventsQuery::default() };
    org.at(server).events(&query).await.unwrap().items
}

/// A prune by the command, once the announcer has read everything.
async fn prune(place: &Place, org: &Org, more: &[&str]) -> String {
    let tenant = org.id.to_string();
    let args = ["journal", "prune", "--tenant", &tenant, "--before", "2999-01-01T00:00:00Z", "--max-events", "1000"];
    let args = [&args[..], more].concat();
    let ended = eventually("a prune that nobody blocks", async || {
        let ended = place.run(&args).await;
        (!ended.stderr.contains("announcer")).then_some(ended)
    })
    .await;
    ended.well().to_owned()
}

async fn an_export_has_what_get_shows_in_its_order(place: Place) {
    let server = place.serve().await;
    let org = place.org(&server).await;
    org.append(&server, 0..250).await;
    let shown = read(&server, &org).await;
    let out = place.dir().join("old.ndjson");
    let tenant = org.id.to_string();
    let export = ["journal", "export", "--tenant", &tenant, "--before", "2999-01-01T00:00:00Z", "--out"];
    let to_file = [&export[..], &[out.to_str().unwrap()]].concat();
    assert!(place.run(&to_file).await.well().starts_with(&format!("{} events", shown.len())));
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(events(&text) == shown, "the export differs from what is read");
    let again = place.run(&to_file).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("exists already"), "{again:?}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), text, "a file that was there was touched");

    let stdout = place.run(&[&export[..], &["-"]].concat()).await;
    assert_eq!(stdout.well(), text);
    let young = place.run(&["journal", "export", "--tenant", &tenant, "--before", "1h", "--out", "-"]).await;
    assert_eq!(young.well(), "");
    let wrong = place.run(&["journal", "export", "--before", "yesterday", "--out", "-"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

async fn an_export_then_a_prune_loses_nothing(place: Place) {
    let server = place.serve().await;
    let org = place.org(&server).await;
    org.append(&server, 0..120).await;
    let before = read(&server, &org).await;
    let told = prune(&place, &org, &["--dry-run"]).await;
    assert!(told.starts_with(&format!("{} events would be deleted", before.len())), "{told}");
    assert!(read(&server, &org).await == before, "a dry run deleted something");

    let out = place.dir().join("old.ndjson");
    let told = prune(&place, &org, &["--export", out.to_str().unwrap()]).await;
    assert!(told.starts_with(&format!("{} events were deleted", before.len())), "{told}");
    let left = read(&server, &org).await;
    assert_eq!(left.iter().map(|e| e.event_type.as_str()).collect::<Vec<_>>(), ["event_journal.pruned"]);
    let kept = events(&std::fs::read_to_string(&out).unwrap());
    assert!(kept == before, "{} exported of {}", kept.len(), before.len());
    assert!(told.contains(&before.last().unwrap().cursor), "{told}");
}

async fn a_lease_blocks_the_command_and_is_named(place: Place) {
    let server = place.serve().await;
    let org = place.org(&server).await;
    let first = read(&server, &org).await.remove(0);
    let until = courant_server::clock::now().plus_micros(3_600_000_000).to_string();
    let lease = json!({ "cursor": first.cursor, "expiresAt": until });
    let put = org.at(&server).request(courant_client::Method::PUT, "/consumers/billing", &[], Some(&lease)).await;
    let put: Value = put.unwrap();
    assert_eq!(put["name"], "billing");
    let tenant = org.id.to_string();
    let args = ["journal", "prune", "--tenant", &tenant, "--before", "2999-01-01T00:00:00Z", "--max-events", "1000"];
    let refused = place.run(&args).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    assert!(refused.stderr.contains("billing"), "{refused:?}");
    let out = place.dir().join("old.ndjson");
    let refused = place.run(&[&args[..], &["--export", out.to_str().unwrap()]].concat()).await;
    assert!(refused.code == Some(1) && !out.exists(), "a refused prune leaves no file: {refused:?}");
}

async fn show_tells_how_the_journal_stands(place: Place) {
    let early = place.run(&["journal", "show"]).await;
    assert_eq!(early.code, Some(1), "{early:?}");
    place.run(&["migrate"]).await.well();
    let nobody = place.run(&["journal", "show"]).await;
    assert!(nobody.code == Some(1) && nobody.stderr.contains("no tenant yet"), "{nobody:?}");
    place.bootstrap().await;
    assert!(place.run(&["journal", "show"]).await.well().contains("head"), "the only tenant need not be named");
    let server = place.serve().await;
    let org = place.org(&server).await;
    org.append(&server, 0..3).await;
    let last = read(&server, &org).await.pop().unwrap();
    let show = ["journal", "show", "--tenant", &org.id.to_string()].map(str::to_owned);
    let show: Vec<&str> = show.iter().map(String::as_str).collect();
    let told = place.run(&[&show[..], &["--json"]].concat()).await;
    let status: Value = serde_json::from_str(told.well()).unwrap();
    assert_eq!(
        (&status["head"]["sequence"], &status["horizon"]["cursor"]),
        (&json!(last.sequence), &json!(last.cursor))
    );
    assert_eq!((&status["consumers"][0]["name"], &status["distance"]), (&json!("announcer"), &json!(0)));
    let told = place.run(&show).await;
    for word in ["head", "horizon", "floor", "kept        for ever", "announcer", &last.cursor] {
        assert!(told.well().contains(word), "{word} in {told:?}");
    }
    place.bootstrap().await;
    let which = place.run(&["journal", "show"]).await;
    assert!(which.code == Some(1) && which.stderr.contains("--tenant"), "{which:?}");
    assert!(place.run(&show).await.well().contains(&last.cursor));
    let unknown = uuid::Uuid::nil().to_string();
    let unknown = place.run(&["journal", "show", "--tenant", &unknown]).await;
    assert!(unknown.code == Some(1) && unknown.stderr.contains("tenant not found"), "{unknown:?}");
}

fn status_of(findings: &Value, check: &str) -> Value {
    let found = findings.as_array().unwrap().iter().find(|f| f["check"] == check);
    found.unwrap_or_else(|| panic!("no {check} in {findings}"))["status"].clone()
}

async fn doctor_finds_nothing_wrong_with_a_running_server(place: Place) {
    let server = place.serve().await;
    let org = place.org(&server).await;
    org.append(&server, 0..3).await;
    let ended = place.run(&["doctor", "--json"]).await;
    let findings: Value = serde_json::from_str(ended.well()).unwrap();
    for check in ["configuration", "data directory", "database", "clock", "key ring", "horizon", "floor", "retention"] {
        assert_eq!(status_of(&findings, check), "ok", "{check} in {findings}");
    }
    if place.database.is_postgres() {
        assert_eq!(status_of(&findings, "time-outs"), "ok");
    }
    assert!(findings.as_array().unwrap().iter().all(|f| f["todo"].is_null()), "{findings}");
    let told = place.run(&["doctor"]).await;
    assert!(told.well().lines().all(|line| line.starts_with("ok ")), "{told:?}");
}

async fn doctor_says_what_is_wrong_and_what_to_do(place: Place) {
    let check = async |changes: &[(&str, &str)]| {
        let ended = place.run_with(&["doctor", "--json"], changes).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let findings: Value = serde_json::from_str(&ended.stdout).unwrap();
        let failed = findings.as_array().unwrap().iter().filter(|f| f["status"] == "fail");
        assert!(failed.clone().all(|f| f["todo"].is_string()), "{findings}");
        assert!(!ended.stdout.contains("pa55word") && !ended.stderr.contains("pa55word"), "{ended:?}");
        failed.map(|f| f["check"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(check(&[]).await, ["database"], "it has no schema yet");
    assert_eq!(check(&[("COURANT_LISTEN", "nowhere")]).await, ["configuration"]);
    let nobody = [("COURANT_DATABASE_URL", "postgres://courant:pa55word@127.0.0.1:1/courant")];
    assert_eq!(check(&nobody).await, ["database"]);

    drop(place.serve().await);
    let key = place.dir().join("data").join("encryption.key");
    let kept = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    assert_eq!(check(&[]).await, ["key ring"]);
    assert!(!key.exists(), "doctor made a key");
    std::fs::write(&key, kept).unwrap();
    assert_eq!(check(&[]).await, ["key ring"], "others may read it");
    let export = [("COURANT_JOURNAL_EXPORT_DIR", "/tmp/exports")];
    assert_eq!(check(&export).await[0], "configuration");
}

on_both_databases! {
    an_export_has_what_get_shows_in_its_order,
    an_export_then_a_prune_loses_nothing,
    a_lease_blocks_the_command_and_is_named,
    show_tells_how_the_journal_stands,
    doctor_finds_nothing_wrong_with_a_running_server,
    doctor_says_what_is_wrong_and_what_to_do,
}
