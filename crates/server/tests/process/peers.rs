//! Two servers on one database: refused on a SQLite file, and sharing the work on PostgreSQL.

use std::collections::BTreeMap;

use courant_testkit::Arrival;

use crate::support::{Answer, Engine, Org, Place, Process, Receiver, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_server_on_one_sqlite_file_is_refused_as_long_as_the_first_runs() {
    let place = Place::new(Engine::Sqlite).await;
    let first = place.serve().await;
    let org = place.org(&first).await;
    let refused = place.serve_with(&[]).await.expect_err("a refusal");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("another server runs on"), "{refused:?}");
    // By another path it is the same file.
    let link = place.dir().join("link.db");
    let file = place.database.url().strip_prefix("sqlite://").unwrap();
    std::os::unix::fs::symlink(file, &link).unwrap();
    let url = format!("sqlite://{}", link.display());
    let refused = place.serve_with(&[("COURANT_DATABASE_URL", &url)]).await.expect_err("a refusal");
    assert!(refused.stderr.contains("another server runs on"), "{refused:?}");
    org.deliveries(&first).await;
    first.kill();
    org.deliveries(&place.serve().await).await;
}

/// Two servers on one PostgreSQL database; each sends Slack's messages to a stand-in of its own, which tells them apart.
struct Pair {
    place: Place,
    org: Org,
    servers: [Option<Process>; 2],
    stand_ins: [Receiver; 2],
}

impl Pair {
    async fn start() -> Self {
        let place = Place::new(Engine::Postgres).await;
        let stand_ins = [Receiver::start().await, Receiver::start().await];
        let mut servers = [None, None];
        for (server, stand_in) in servers.iter_mut().zip(&stand_ins) {
            let base = [("SLACK_API_BASE_URL", stand_in.url("/api"))];
            let started = place.serve_with(&base.each_ref().map(|(name, value)| (*name, value.as_str()))).await;
            *server = Some(started.unwrap_or_else(|ended| panic!("{ended:?}")));
        }
        let first = servers[0].as_ref().unwrap();
        let org = place.org(first).await;
        let config = json!({ "defaultChannel": "#ops" });
        org.integration(first, "slack", false, config, json!({ "botToken": "xoxb-1" })).await;
        Self { place, org, servers, stand_ins }
    }

    fn server(&self, n: usize) -> &Process {
        self.servers[n].as_ref().unwrap()
    }

    /// The next message at either stand-in, and at which.
    async fn next(&self) -> (usize, Arrival) {
        let [one, other] = &self.stand_ins;
        tokio::select! {
            arrival = one.next() => (0, arrival),
            arrival = other.next() => (1, arrival),
        }
    }
}

fn delivery(arrival: &Arrival) -> String {
    arrival.json()["metadata"]["event_payload"]["delivery_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_send_each_delivery_once() {
    let pair = Pair::start().await;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for round in 0..4 {
        pair.org.append(pair.server(round % 2), 0..30).await;
        for _ in 0..30 {
            let (_, arrival) = pair.next().await;
            *seen.entry(delivery(&arrival)).or_default() += 1;
            arrival.answer(Answer::slack_posted());
        }
    }
    pair.org.stored(pair.server(0), 0).await;
    assert_eq!((seen.len(), seen.values().copied().max()), (120, Some(1)));
    assert!(pair.stand_ins.iter().all(|stand_in| stand_in.waiting().is_none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_server_had_in_hand_is_sent_by_the_other() {
    let mut pair = Pair::start().await;
    pair.org.append(pair.server(0), 0..10).await;
    // Each is in the hands of one of them, and answered by nobody yet.
    let mut held: [Vec<Arrival>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..10 {
        let (at, arrival) = pair.next().await;
        held[at].push(arrival);
    }
    let victim = usize::from(held[1].len() > held[0].len());
    let survivor = 1 - victim;
    let mut lost: Vec<_> = held[victim].iter().map(delivery).collect();
    assert!(!lost.is_empty());
    pair.servers[victim].take().unwrap().kill();
    for arrival in std::mem::take(&mut held[survivor]) {
        arrival.answer(Answer::slack_posted());
    }
    // The other notices by the heartbeat that stopped, and sends just those again.
    let mut repeated = Vec::new();
    for _ in 0..lost.len() {
        let arrival = pair.stand_ins[survivor].next().await;
        repeated.push(delivery(&arrival));
        arrival.answer(Answer::slack_posted());
    }
    lost.sort();
    repeated.sort();
    assert_eq!(repeated, lost);
    pair.org.stored(pair.server(survivor), 0).await;
    assert!(pair.stand_ins.iter().all(|stand_in| stand_in.waiting().is_none()));
    drop(pair.place);
}
