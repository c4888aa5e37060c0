//! A journal driven at random, beside a model of what its readers must be handed.
//!
//! Writers that hold their transactions open and commit or roll back in any order, moves of workspaces, prunes, restarts, and
//! readers with all kinds of filters that page forward in small pages and look backward now and then. What is true is asked
//! of the database itself: the rows that are committed. After every page the model checks the promises of a cursor:
//!
//! 1. a page is exactly the slice of the one order between two positions that the filter leaves;
//! 2. nothing is ever committed at or below a position that was handed out;
//! 3. a page that reaches the end carries a position over all that the filter dropped;
//! 4. only transactions that have appended and not ended hold visibility back;
//! 5. below the floor, and only there, reading is refused.
//!
//! To see it fail, take the lock out of the append in `twin/postgres/append.rs` (2), let a page end at its last event
//! instead of the horizon (3), or leave out `above_floor` in `journal/page.rs` (5).

use std::collections::{BTreeMap, HashMap};

use courant_api::{Cursor, WorkspaceId};
use courant_store::{Error, EventDraft, EventQuery, Options, PruneRequest, PruneStep, Start, Store, WhenBlocked};
use tokio::task::JoinSet;

use crate::cases;
use crate::gate::{Gate, Held};
use crate::world::{Chance, Tenant, World, at, draft, now, query};

cases![a_journal_driven_at_random_keeps_its_promises];

const STEPS: usize = 500;
const TYPES: [&str; 5] = ["task.made", "task.done", "task_list.made", "note.made", "zebra.seen"];
const PREFIXES: [&[&str]; 4] = [&[], &["task."], &["note.", "z"], &["never."]];

/// What is committed.
#[derive(Clone, Debug)]
struct Row {
    tenant: usize,
    event_type: String,
    workspace: Option<WorkspaceId>,
}

struct Reader {
    tenant: usize,
    prefixes: &'static [&'static str],
    workspace: Option<WorkspaceId>,
    /// None before the first page.
    cursor: Option<String>,
}

struct Model {
    world: World,
    tenants: Vec<Tenant>,
    chance: Chance,
    /// Each with its parent, by tenant.
    trees: Vec<HashMap<WorkspaceId, Option<WorkspaceId>>>,
    /// Everything that was ever committed.
    rows: BTreeMap<i64, Row>,
    floors: Vec<i64>,
    /// The greatest position in any cursor that was handed out.
    handed_out: i64,
    /// Units between append and commit, each with the greatest position that was committed when it appended.
    held: Vec<(Held, i64)>,
    counts: BTreeMap<&'static str, usize>,
}

fn position(cursor: &str) -> i64 {
    Cursor::decode(cursor).unwrap().seq
}

async fn a_journal_driven_at_random_keeps_its_promises(mut world: World) {
    let options = Options { read_wait: std::time::Duration::ZERO, ..Options::server(world.url()) };
    if world.is_postgres() {
        world.store = Store::open(&options).await.unwrap();
    }
    let tenants = vec![world.tenant().await, world.tenant().await];
    let mut model = Model {
        tenants,
        chance: Chance(0x0dd5_eed5_0f0d_d5ee),
        trees: vec![HashMap::new(), HashMap::new()],
        rows: BTreeMap::new(),
        floors: vec![0, 0],
        handed_out: 0,
        held: Vec::new(),
        counts: BTreeMap::new(),
        world,
    };
    model.plant().await;
    let mut readers = model.readers();
    let (store, mut gate) = if model.world.is_postgres() {
        let (store, gate) = Gate::store(model.world.url(), 12).await;
        (Some(store), Some(gate))
    } else {
        (None, None)
    };
    let mut writers = JoinSet::new();
    for _ in 0..STEPS {
        match model.chance.below(20) {
            0..=4 => model.append().await,
            5..=6 => {
                if let (Some(store), Some(gate)) = (&store, &mut gate)
                    && model.held.len() < 6
                {
                    let (tenant, drafts) = model.drafts();
                    let (store, change) = (store.clone(), model.tenants[tenant].change());
                    let head = model.head();
                    writers.spawn(async move { store.event_append(change, drafts).await.is_ok() });
                    model.held.push((gate.next().await, head));
                } else {
                    model.refused().await;
                }
            }
            7..=8 if !model.held.is_empty() => {
                let (unit, _) = {
                    let n = model.chance.below(model.held.len());
                    model.held.swap_remove(n)
                };
                let commits = model.chance.below(3) > 0;
                if commits {
                    unit.commit();
                } else {
                    unit.roll_back();
                }
                assert_eq!(writers.join_next().await.unwrap().unwrap(), commits);
                model.note(if commits { "held commits" } else { "roll-backs" });
                model.look().await;
            }
            9 => model.move_one().await,
            10 if model.chance.below(4) == 0 => model.prune().await,
            11 if model.chance.below(8) == 0 => model.restart(&options).await,
            _ => {
                let n = model.chance.below(readers.len());
                model.read(&mut readers[n]).await;
            }
        }
    }
    while let Some((unit, _)) = model.held.pop() {
        unit.commit();
        writers.join_next().await.unwrap().unwrap();
        model.look().await;
    }
    for reader in &mut readers {
        while model.read(reader).await {}
    }
    for what in ["appends", "refused", "moves", "prunes", "restarts", "pages", "backward pages", "below the floor"] {
        let needed = what != "refused" || !model.world.is_postgres();
        assert!(
            !needed || model.counts.contains_key(what),
            "{what} never happened, the test proves too little: {:?}",
            model.counts
        );
    }
}

impl Model {
    fn note(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    async fn plant(&mut self) {
        for tenant in 0..2 {
            for n in 0..6 {
                let parents: Vec<_> = self.trees[tenant].keys().copied().collect();
                let parent = if n < 2 { None } else { Some(parents[self.chance.below(parents.len())]) };
                let id = self.world.workspace(&self.tenants[tenant], parent).await;
                self.trees[tenant].insert(id, parent);
            }
        }
        self.look().await;
    }

    fn readers(&mut self) -> Vec<Reader> {
        let mut readers = Vec::new();
        for tenant in 0..2 {
            for prefixes in PREFIXES {
                let place = self.some_workspace(tenant);
                readers.push(Reader { tenant, prefixes, workspace: None, cursor: None });
                readers.push(Reader { tenant, prefixes, workspace: Some(place), cursor: None });
            }
        }
        readers
    }

    fn some_workspace(&mut self, tenant: usize) -> WorkspaceId {
        let mut all: Vec<_> = self.trees[tenant].keys().copied().collect();
        all.sort_unstable_by_key(|id| id.uuid());
        all[self.chance.below(all.len())]
    }

    fn drafts(&mut self) -> (usize, Vec<EventDraft>) {
        let tenant = self.chance.below(2);
        let mut drafts = Vec::new();
        for _ in 0..=self.chance.below(4) {
            let kind = TYPES[self.chance.below(TYPES.len())];
            let workspace_id = if self.chance.below(3) == 0 { None } else { Some(self.some_workspace(tenant)) };
            drafts.push(EventDraft { workspace_id, ..draft(kind, "x") });
        }
        (tenant, drafts)
    }

    async fn append(&mut self) {
        let (tenant, drafts) = self.drafts();
        self.world.append(&self.tenants[tenant], drafts).await;
        self.note("appends");
        self.look().await;
    }

    /// A request of which one event is refused appends none of them.
    async fn refused(&mut self) {
        let (tenant, mut drafts) = self.drafts();
        let missing = Some(WorkspaceId(uuid::Uuid::from_u128(7)));
        drafts.push(EventDraft { workspace_id: missing, ..draft("task.made", "x") });
        self.world.store.event_append(self.tenants[tenant].change(), drafts).await.unwrap_err();
        self.note("refused");
        let before = self.rows.len();
        self.look().await;
        assert_eq!(self.rows.len(), before);
    }

    async fn move_one(&mut self) {
        let tenant = self.chance.below(2);
        let (id, parent) = (self.some_workspace(tenant), self.some_workspace(tenant));
        let parent = if self.chance.below(3) == 0 { None } else { Some(parent) };
        if self.world.store.workspace_move(self.tenants[tenant].change(), id, parent).await.is_ok() {
            self.trees[tenant].insert(id, parent);
            self.note("moves");
        }
        self.look().await;
    }

    /// Deletes some of a tenant's oldest events.
    async fn prune(&mut self) {
        let tenant = self.chance.below(2);
        self.world.announce(at(1)).await;
        let max_events = 1 + i64::try_from(self.chance.below(40)).unwrap();
        let request = PruneRequest { before: at(9), max_events, dry_run: false, blocked: WhenBlocked::StopThere };
        let change = self.tenants[tenant].change();
        let begun = now(self.world.store.prune_begin(change.clone(), request).await.unwrap());
        if begun.deleted > 0 {
            let pruned = loop {
                match self.world.store.prune_step(change.clone(), i64::MAX).await.unwrap() {
                    PruneStep::More => {}
                    PruneStep::Ended { pruned, .. } => break pruned,
                    PruneStep::Idle => panic!("a prune that was begun is not there"),
                }
            };
            assert_eq!(pruned.deleted, begun.deleted);
            self.floors[tenant] = position(&pruned.floor_cursor);
            self.note("prunes");
        }
        self.look().await;
    }

    async fn restart(&mut self, options: &Options) {
        if !self.world.is_postgres() {
            // The file has one server at a time, and its lock ends a moment after the store.
            self.world.store = Store::open(&Options::command(self.world.url())).await.unwrap();
        }
        self.world.store = loop {
            match Store::open(options).await {
                Ok(store) => break store,
                Err(Error::Configuration(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{error}"),
            }
        };
        self.note("restarts");
    }

    fn head(&self) -> i64 {
        self.rows.last_key_value().map_or(0, |(seq, _)| *seq)
    }

    /// Learns what is committed, and that none of it is new below what was handed out.
    async fn look(&mut self) {
        let raw = self.world.raw().await;
        let known: Vec<i64> = raw.numbers("SELECT seq FROM event ORDER BY seq").await;
        for tenant in 0..2 {
            let id = self.tenants[tenant].id;
            for (seq, event_type, workspace) in raw.placed(id).await {
                if !self.rows.contains_key(&seq) {
                    assert!(
                        seq > self.handed_out,
                        "{seq} was committed below {}, which was handed out",
                        self.handed_out
                    );
                    self.rows.insert(seq, Row { tenant, event_type, workspace });
                }
            }
        }
        for (seq, row) in &self.rows {
            let kept = *seq > self.floors[row.tenant];
            assert_eq!(known.binary_search(seq).is_ok(), kept, "{seq} with the floor at {:?}", self.floors);
        }
    }

    fn matches(&self, reader: &Reader, row: &Row) -> bool {
        let tree = &self.trees[reader.tenant];
        let mut place = row.workspace;
        let placed = reader.workspace.is_none_or(|root| {
            while let Some(id) = place {
                if id == root {
                    return true;
                }
                place = tree.get(&id).copied().flatten();
            }
            false
        });
        let typed = reader.prefixes.is_empty() || reader.prefixes.iter().any(|p| row.event_type.starts_with(p));
        row.tenant == reader.tenant && placed && typed
    }

    /// The matching events between two positions.
    fn between(&self, reader: &Reader, after: i64, upto: i64) -> Vec<i64> {
        let after = after.max(self.floors[reader.tenant]);
        if after >= upto {
            return Vec::new();
        }
        let range = self.rows.range(after + 1..=upto);
        range.filter(|(_, row)| self.matches(reader, row)).map(|(seq, _)| *seq).collect()
    }

    fn query(&self, reader: &Reader, start: Start, limit: i64) -> EventQuery {
        let prefixes = reader.prefixes.iter().map(|p| (*p).to_owned()).collect();
        let _ = self;
        EventQuery { prefixes, workspace_id: reader.workspace, start, ..query(limit) }
    }

    /// Reads a page; whether there may be more.
    async fn read(&mut self, reader: &mut Reader) -> bool {
        let limit = 1 + i64::try_from(self.chance.below(5)).unwrap();
        let start = reader.cursor.as_ref().map_or(Start::First, |c| Start::After(Cursor::decode(c).unwrap()));
        let from = reader.cursor.as_deref().map_or(0, position);
        let id = self.tenants[reader.tenant].id;
        let floor = self.floors[reader.tenant];
        let page = match self.world.store.event_page(id, self.query(reader, start, limit)).await {
            Err(Error::CursorBelowFloor { floor: cursor }) => {
                assert!(reader.cursor.is_some() && from < floor, "{from} is not below {floor}");
                assert_eq!(position(&cursor), floor);
                reader.cursor = Some(cursor);
                self.note("below the floor");
                return true;
            }
            page => page.unwrap(),
        };
        assert!(reader.cursor.is_none() || from >= floor, "{from} is below {floor}");
        let next = position(&page.next_cursor);
        let items: Vec<_> = page.items.iter().map(|e| e.sequence).collect();
        assert_eq!(items, self.between(reader, from, next), "after {from} up to {next} by {limit}");
        assert!(next >= from && i64::try_from(items.len()).unwrap() <= limit);
        if !page.has_more {
            // Held units hide what is committed above where they began, and nothing else does.
            let visible = self.held.iter().map(|(_, head)| *head).min().unwrap_or_else(|| self.head());
            assert!(next >= visible, "{next} reaches not to {visible}");
        }
        self.handed_out = self.handed_out.max(next);
        reader.cursor = Some(page.next_cursor);
        self.note("pages");
        if self.chance.below(4) == 0 {
            self.read_back(reader, limit).await;
        }
        page.has_more
    }

    /// What lies just before where the reader stands.
    async fn read_back(&mut self, reader: &Reader, limit: i64) {
        let cursor = Cursor::decode(reader.cursor.as_ref().unwrap()).unwrap();
        if cursor.seq < self.floors[reader.tenant] {
            return;
        }
        let id = self.tenants[reader.tenant].id;
        let page = self.world.store.event_page(id, self.query(reader, Start::Before(cursor), limit)).await.unwrap();
        let mut wanted = self.between(reader, 0, cursor.seq - 1);
        let dropped = wanted.len().saturating_sub(usize::try_from(limit).unwrap());
        let items: Vec<_> = page.items.iter().map(|e| e.sequence).collect();
        assert_eq!(items, wanted.split_off(dropped), "before {} by {limit}", cursor.seq);
        assert!(page.has_more || dropped == 0);
        self.note("backward pages");
    }
}
