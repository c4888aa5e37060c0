//! Starting and ending: first start, key ring, wrong configuration, signals.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Answer, Engine, Place, on_both_databases};

const ONE: &str = "one:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const TWO: &str = "two:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const OTHER_ONE: &str = "one:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

async fn a_server_that_is_asked_to_end_ends_well(place: Place) {
    for signal in ["TERM", "INT"] {
        let server = place.serve().await;
        server.signal(signal);
        assert_eq!(server.ended().await.code(), Some(0), "{signal}");
    }
}

async fn a_server_that_is_asked_to_end_first_finishes_what_it_sends(place: Place) {
    let server = place.serve().await;
    let org = place.org(&server).await;
    org.webhook(&server, &place.sink, false).await;
    org.append(&server, 0..1).await;
    let in_hand = place.sink.next().await;
    server.signal("TERM");
    // It listens no more once it has begun to end.
    let address = server.address;
    crate::support::eventually("the end of listening", async || {
        tokio::net::TcpStream::connect(address).await.is_err().then_some(())
    })
    .await;
    in_hand.answer(Answer::status(200));
    assert_eq!(server.ended().await.code(), Some(0));
    let server = place.serve().await;
    assert_eq!(org.deliveries(&server).await, []);
    assert!(place.sink.waiting().is_none());
}

async fn a_key_ring_that_lacks_a_needed_key_stops_the_start_and_names_it(place: Place) {
    let ring = |keys: &str| [("COURANT_ENCRYPTION_KEYS", keys.to_owned())];
    let start = async |keys: &str| {
        let ring = ring(keys);
        place.serve_with(&ring.each_ref().map(|(name, value)| (*name, value.as_str()))).await
    };
    drop(start(ONE).await.expect("a first start"));
    // A further key is welcome, in any place.
    drop(start(&format!("{TWO},{ONE}")).await.expect("a start with both"));
    for (keys, missing) in [(TWO, "`one`"), (ONE, "`two`"), (&format!("{OTHER_ONE},{TWO}"), "`one`")] {
        let refused = start(keys).await.expect_err("a refusal");
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains(missing), "{refused:?}");
        assert!(!refused.stderr.contains("AQEB"), "a refusal shows a key");
    }
    drop(start(&format!("{ONE},{TWO}")).await.expect("a start with both"));
}

async fn the_key_that_a_server_makes_itself_is_kept_for_the_next_start(place: Place) {
    drop(place.serve().await);
    let file = place.dir().join("data/encryption.key");
    let made = fs::read_to_string(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    drop(place.serve().await);
    assert_eq!(fs::read_to_string(&file).unwrap(), made);
    fs::remove_file(&file).unwrap();
    let refused = place.serve_with(&[]).await.expect_err("a refusal");
    let id = made.split_once(':').unwrap().0;
    assert!(refused.stderr.contains(&format!("`{id}`")), "{refused:?}");
}

async fn a_wrong_setting_is_named_and_a_wrong_flag_is_wrong_usage(place: Place) {
    for (name, value) in [
        ("COURANT_LISTEN", "nowhere"),
        ("COURANT_NOTIFICATION_MAX_ATTEMPTS", "0"),
        ("COURANT_NOTIFICATION_DELIVERY_RETENTION", "soon"),
        ("COURANT_EGRESS_ALLOW", "a/b"),
        ("COURANT_LOG_FORMAT", "xml"),
        ("COURANT_ENCRYPTION_KEYS", "one:c2VjcmV0"),
        ("COURANT_ENCRYPTION_KEYS_FILE", "/nonexistent/keys"),
        ("COURANT_CONFIG", "/nonexistent/courant.toml"),
        ("COURANT_DATABASE_URL", "mysql://localhost/courant"),
    ] {
        let refused = place.serve_with(&[(name, value)]).await.expect_err("a refusal");
        assert_eq!(refused.code, Some(1), "{name}: {refused:?}");
        assert!(refused.stderr.starts_with("courant: ") && refused.stderr.lines().count() == 1, "{name}: {refused:?}");
        let told = [name, value, "database"].iter().any(|part| refused.stderr.contains(part));
        assert!(told && !refused.stderr.contains("c2VjcmV0"), "{name}: {refused:?}");
    }
    for usage in [&["serve", "--listen", "nowhere"][..], &["serve", "--colour"], &["sing"], &[], &["bootstrap"]] {
        let refused = place.run(usage).await;
        assert_eq!(refused.code, Some(2), "{usage:?}: {refused:?}");
    }
    let file = place.dir().join("courant.toml");
    fs::write(&file, "colour = 'red'\n").unwrap();
    let refused = place.serve_with(&[]).await.expect_err("a refusal");
    assert!(refused.code == Some(1) && refused.stderr.contains("colour"), "{refused:?}");
    fs::remove_file(file).unwrap();
}

async fn an_address_that_is_taken_stops_the_start(place: Place) {
    let taken = place.sink.address().to_string();
    let refused = place.serve_with(&[("COURANT_LISTEN", &taken)]).await.expect_err("a refusal");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains(&format!("listening on {taken}")), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_start_with_nothing_configured_makes_a_tenant_and_keeps_its_key_private() {
    let place = Place::new(Engine::Sqlite).await;
    let nothing = [("COURANT_DATABASE_URL", ""), ("COURANT_DATA_DIR", ""), ("COURANT_EGRESS_ALLOW", "")];
    let server = place.serve_with(&nothing).await.expect("a start");
    let file = place.dir().join("courant-data/first-key");
    let key = crate::support::eventually("the first key", async || {
        fs::read_to_string(&file).ok().filter(|key| key.ends_with('\n'))
    });
    let key = key.await;
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let client =
        courant_client::Client::builder(format!("http://{}", server.address)).api_key(key.trim()).build().unwrap();
    let grants = client.grants(&courant_client::PageQuery::default()).await.unwrap();
    assert_eq!(grants.items[0].permission, courant_api::Permission::All);
    assert!(!server.log().contains(key.trim()), "the log shows the key");
    server.signal("TERM");
    server.ended().await;
    // The second start makes none.
    fs::remove_file(&file).unwrap();
    let server = place.serve_with(&nothing).await.expect("a start");
    client_at(&server, key.trim()).grants(&courant_client::PageQuery::default()).await.unwrap();
    server.signal("TERM");
    server.ended().await;
    assert!(!file.exists());
}

fn client_at(server: &crate::support::Process, key: &str) -> courant_client::Client {
    courant_client::Client::builder(format!("http://{}", server.address)).api_key(key).build().unwrap()
}

on_both_databases! {
    a_server_that_is_asked_to_end_ends_well,
    a_server_that_is_asked_to_end_first_finishes_what_it_sends,
    a_key_ring_that_lacks_a_needed_key_stops_the_start_and_names_it,
    the_key_that_a_server_makes_itself_is_kept_for_the_next_start,
    a_wrong_setting_is_named_and_a_wrong_flag_is_wrong_usage,
    an_address_that_is_taken_stops_the_start,
}
