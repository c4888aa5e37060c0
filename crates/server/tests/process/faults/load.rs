//! Producers that repeat until they are answered, readers that keep their cursors, and the check of what they saw.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use courant_api::catalog::EventTypeRegister;
use courant_api::event::Json;
use courant_api::{Event, EventAppend, EventId};
use courant_client::{Client, ClientError, EventsQuery};
use courant_testkit::PATIENCE;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use uuid::Uuid;

use crate::support::{Org, Value, json};

const PRODUCERS: usize = 6;
const TYPES: [&str; 2] = ["order.made", "order.paid"];

/// Chance that is the same for the same seed (xorshift).
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64, stream: u64) -> Self {
        Self((seed ^ (stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % bound as u64).unwrap()
    }
}

/// The seed that was given, or a new one.
pub fn seed() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "the one input of this test")]
    let given = std::env::var("COURANT_FAULT_SEED").ok();
    given.map_or_else(|| RandomState::new().build_hasher().finish(), |text| text.parse().expect("a number"))
}

/// The servers as clients know them now.
#[derive(Clone)]
pub struct Targets(Arc<Vec<Mutex<Client>>>);

fn client(org: &Org, address: SocketAddr) -> Client {
    let pause = Duration::from_millis(20);
    let builder = Client::builder(format!("http://{address}")).api_key(&org.key);
    // A call that failed pauses once before it is made again, perhaps at the other server.
    builder.retries(1).retry_pause(pause, pause).build().unwrap()
}

impl Targets {
    pub fn new(org: &Org, addresses: impl Iterator<Item = SocketAddr>) -> Self {
        Self(Arc::new(addresses.map(|address| Mutex::new(client(org, address))).collect()))
    }

    /// A server has a new address.
    pub fn set(&self, n: usize, org: &Org, address: SocketAddr) {
        *self.0[n].lock().unwrap() = client(org, address);
    }

    fn any(&self, chance: &mut Chance) -> Client {
        self.0[chance.below(self.0.len())].lock().unwrap().clone()
    }
}

/// Registers the second type.
pub async fn register(client: &Client) {
    let body = EventTypeRegister {
        entity_type: "order".into(),
        description: None,
        schema: json!({ "type": "object", "properties": { "n": { "type": "integer" } } }),
    };
    client.register_event_type(TYPES[1], 1, &body).await.unwrap();
}

/// Faults make calls fail in passing and never with a refusal.
#[track_caller]
fn passes(error: &ClientError) {
    let status = error.status();
    assert!(status.is_none_or(|status| status > 500 || status == 429), "{error}");
}

async fn append(targets: &Targets, chance: &mut Chance, events: &[EventAppend], until_readable: bool) {
    loop {
        match targets.any(chance).append(events, until_readable).await {
            Ok(answer) => {
                let answered: Vec<_> = answer.items.iter().map(|item| Some(item.id)).collect();
                assert_eq!(answered, events.iter().map(|event| event.id).collect::<Vec<_>>());
                return;
            }
            Err(error) => passes(&error),
        }
    }
}

fn order(event_type: &str, producer: usize, n: usize) -> EventAppend {
    let id = Uuid::from_u128(((producer as u128 + 1) << 64) | n as u128 | 7 << 76 | 2 << 62);
    EventAppend {
        id: Some(EventId(id)),
        event_type: event_type.into(),
        entity_type: "order".into(),
        entity_id: format!("p_{producer}"),
        workspace_id: None,
        payload: Json::of(&json!({ "n": n })).unwrap(),
        correlation_id: None,
        causation_id: None,
    }
}

/// What a reader asks for, and the same in Rust.
struct Filter {
    types: &'static [&'static str],
    entity: Option<&'static str>,
}

const FILTERS: [Filter; 6] = [
    Filter { types: &[], entity: None },
    Filter { types: &[], entity: None },
    Filter { types: &["order."], entity: None },
    Filter { types: &["order.paid"], entity: None },
    Filter { types: &[], entity: Some("p_0") },
    Filter { types: &["order.paid"], entity: Some("p_0") },
];

impl Filter {
    fn query(&self) -> EventsQuery {
        EventsQuery {
            types: self.types.iter().map(|t| (*t).to_owned()).collect(),
            entity_type: self.entity.map(|_| "order".to_owned()),
            entity_id: self.entity.map(Into::into),
            ..EventsQuery::default()
        }
    }

    fn lets_pass(&self, event: &Event) -> bool {
        (self.types.is_empty() || self.types.iter().any(|t| event.event_type.starts_with(t)))
            && self.entity.is_none_or(|id| event.entity_id == id && event.entity_type == "order")
    }
}

/// What runs against the servers.
pub struct Load {
    targets: Targets,
    chance: Chance,
    stop: watch::Sender<bool>,
    finish: watch::Sender<bool>,
    answered: watch::Sender<u64>,
    /// Each gives how many of its events were answered for: all of them.
    producers: JoinSet<(usize, usize)>,
    readers: JoinSet<(usize, Vec<Event>)>,
}

impl Load {
    pub fn start(targets: &Targets, seed: u64) -> Self {
        let mut load = Self {
            targets: targets.clone(),
            chance: Chance::new(seed, 1000),
            stop: watch::Sender::new(false),
            finish: watch::Sender::new(false),
            answered: watch::Sender::new(0),
            producers: JoinSet::new(),
            readers: JoinSet::new(),
        };
        for producer in 0..PRODUCERS {
            let (targets, chance) = (targets.clone(), Chance::new(seed, 1 + producer as u64));
            load.producers.spawn(produce(producer, targets, chance, load.stop.subscribe(), load.answered.clone()));
        }
        for reader in 0..FILTERS.len() {
            let (targets, chance) = (targets.clone(), Chance::new(seed, 100 + reader as u64));
            load.readers.spawn(follow(reader, targets, chance, load.finish.subscribe()));
        }
        load
    }

    /// Waits until so many more events were answered for.
    pub async fn goes_on(&mut self, more: u64) {
        let mut answered = self.answered.subscribe();
        let target = *answered.borrow() + more;
        let goes_on = timeout(PATIENCE, answered.wait_for(|n| *n >= target)).await.is_ok();
        if !goes_on {
            // Whoever has panicked says more.
            while let Some(ended) = self.producers.try_join_next() {
                ended.unwrap();
            }
            panic!("no producer gets an answer");
        }
    }

    /// Ends the load and checks all that was answered for and all that was read; how many events and readers.
    pub async fn finish_and_check(mut self) -> (usize, usize) {
        self.stop.send_replace(true);
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        while let Some(ended) = self.producers.join_next().await {
            let (producer, count) = ended.unwrap();
            counts.insert(producer, count);
        }
        // Every reader wants this one, and it is readable once it is answered for: so is all that lies before it.
        let first = counts[&0];
        append(&self.targets, &mut self.chance, &[order(TYPES[1], 0, first)], true).await;
        counts.insert(0, first + 1);
        self.finish.send_replace(true);
        let mut readers = BTreeMap::new();
        while let Some(ended) = timeout(PATIENCE, self.readers.join_next()).await.expect("readers at the head") {
            let (reader, seen) = ended.unwrap();
            readers.insert(reader, seen);
        }
        let journal = walk(&self.targets, &mut self.chance).await;
        check(&journal, &counts, &readers);
        (journal.len(), readers.len())
    }
}

async fn produce(
    producer: usize,
    targets: Targets,
    mut chance: Chance,
    stop: watch::Receiver<bool>,
    answered: watch::Sender<u64>,
) -> (usize, usize) {
    let mut n = 0;
    while !*stop.borrow() {
        let count = 1 + chance.below(3);
        let events: Vec<_> = (n..n + count).map(|n| order(TYPES[chance.below(TYPES.len())], producer, n)).collect();
        // The next is only sent when this one was answered for.
        let until_readable = chance.below(10) == 0;
        append(&targets, &mut chance, &events, until_readable).await;
        n += count;
        answered.send_modify(|all| *all += count as u64);
    }
    (producer, n)
}

async fn follow(
    reader: usize,
    targets: Targets,
    mut chance: Chance,
    finish: watch::Receiver<bool>,
) -> (usize, Vec<Event>) {
    let mut query = FILTERS[reader].query();
    let mut seen = Vec::new();
    loop {
        let finishing = *finish.borrow();
        query.limit = Some(u32::try_from(1 + chance.below(100)).unwrap());
        query.wait = Some(if finishing { 0 } else { 1 + u32::try_from(chance.below(3)).unwrap() });
        match targets.any(&mut chance).events(&query).await {
            Ok(page) => {
                let at_head = page.items.is_empty() && !page.has_more;
                seen.extend(page.items);
                query.cursor = Some(page.next_cursor);
                if at_head && finishing {
                    return (reader, seen);
                }
            }
            Err(error) => passes(&error),
        }
    }
}

/// The whole journal, read in one go by somebody who met no fault.
async fn walk(targets: &Targets, chance: &mut Chance) -> Vec<Event> {
    let mut query = EventsQuery { limit: Some(1000), ..EventsQuery::default() };
    let (client, mut all) = (targets.any(chance), Vec::new());
    loop {
        let page = client.events(&query).await.unwrap();
        all.extend(page.items);
        if !page.has_more {
            return all;
        }
        query.cursor = Some(page.next_cursor);
    }
}

fn check(journal: &[Event], counts: &BTreeMap<usize, usize>, readers: &BTreeMap<usize, Vec<Event>>) {
    assert!(journal.is_sorted_by(|a, b| a.sequence < b.sequence));
    // Each producer's events, each once, in the order in which it sent them, and no others.
    let mut of_producers = 0;
    for (producer, count) in counts {
        let entity = format!("p_{producer}");
        let own = journal.iter().filter(|event| event.entity_type == "order" && event.entity_id == entity);
        let numbers = own.map(|event| {
            let payload: Value = serde_json::from_str(event.payload.text()).unwrap();
            usize::try_from(payload["n"].as_u64().unwrap()).unwrap()
        });
        let numbers: Vec<_> = numbers.collect();
        assert!(numbers.iter().copied().eq(0..*count), "{entity}: {count} answered for, {numbers:?} in the journal");
        of_producers += count;
    }
    assert_eq!(journal.iter().filter(|event| event.entity_type == "order").count(), of_producers);
    for (reader, seen) in readers {
        let due: Vec<_> = journal.iter().filter(|event| FILTERS[*reader].lets_pass(event)).collect();
        // A server that starts on SQLite spells cursors anew, which stay good.
        let bare = |event: &Event| Event { cursor: String::new(), ..event.clone() };
        let differs = seen.iter().zip(&due).position(|(seen, due)| bare(seen) != bare(due));
        assert_eq!((seen.len(), differs), (due.len(), None), "reader {reader}");
        assert_eq!(seen.last().map(|event| &event.id), journal.last().map(|event| &event.id));
    }
}
