//! Filtered pages against a plain model: whatever axis a page is read along, it holds what a filter over the whole journal
//! holds.
//!
//! Broken on purpose: with a last page that ends at its last event and not at the horizon the idle reader fails.

use courant_api::{Cursor, Event, WorkspaceId};
use courant_store::{EventDraft, EventQuery, Start};

use crate::cases;
use crate::world::{Tenant, World, after, draft, query};

cases![
    every_combination_of_filters_gives_what_a_model_gives_in_pages_of_any_size,
    more_types_and_workspaces_than_are_read_side_by_side_are_read_all_the_same,
    ranges_that_end_at_their_bound_go_on_where_they_stopped,
    an_idle_reader_whose_filter_never_matches_stands_at_the_end_after_one_page,
];

const TYPES: [&str; 7] =
    ["task.made", "task.done", "task_list.made", "taskx.made", "note.made", "tas.made", "zebra.seen"];

struct Filter {
    prefixes: &'static [&'static str],
    root: Option<usize>,
    entity: Option<(&'static str, Option<&'static str>)>,
}

/// Workspaces: 0 holds 1 and 2, 1 holds 3; 4 stands alone.
async fn tree(world: &World, tenant: &Tenant) -> Vec<WorkspaceId> {
    let top = world.workspace(tenant, None).await;
    let one = world.workspace(tenant, Some(top)).await;
    let two = world.workspace(tenant, Some(top)).await;
    let three = world.workspace(tenant, Some(one)).await;
    let alone = world.workspace(tenant, None).await;
    vec![top, one, two, three, alone]
}

fn below(root: usize) -> &'static [usize] {
    [&[0, 1, 2, 3][..], &[1, 3], &[2], &[3], &[4]][root]
}

impl Filter {
    fn query(&self, workspaces: &[WorkspaceId], limit: i64) -> EventQuery {
        EventQuery {
            prefixes: self.prefixes.iter().map(|p| (*p).to_owned()).collect(),
            workspace_id: self.root.map(|root| workspaces[root]),
            entity_type: self.entity.map(|(kind, _)| kind.to_owned()),
            entity_id: self.entity.and_then(|(_, id)| id).map(str::to_owned),
            ..query(limit)
        }
    }

    fn matches(&self, workspaces: &[WorkspaceId], event: &Event) -> bool {
        let placed = |root| below(root).iter().any(|n| Some(workspaces[*n]) == event.workspace_id);
        (self.prefixes.is_empty() || self.prefixes.iter().any(|p| event.event_type.starts_with(p)))
            && self.root.is_none_or(placed)
            && self
                .entity
                .is_none_or(|(kind, id)| event.entity_type == kind && id.is_none_or(|id| event.entity_id == id))
    }
}

async fn forwards(world: &World, tenant: &Tenant, filter: &EventQuery) -> Vec<Event> {
    let (mut seen, mut start) = (Vec::new(), Start::First);
    loop {
        let page = world.page(tenant, EventQuery { start, ..filter.clone() }).await;
        seen.extend(page.items);
        start = after(&page.next_cursor);
        if !page.has_more {
            return seen;
        }
    }
}

async fn backwards(world: &World, tenant: &Tenant, filter: &EventQuery) -> Vec<Event> {
    let (mut seen, mut start) = (Vec::new(), Start::Tail);
    loop {
        let page = world.page(tenant, EventQuery { start, ..filter.clone() }).await;
        seen.extend(page.items.into_iter().rev());
        let Some(cursor) = page.prev_cursor else {
            seen.reverse();
            return seen;
        };
        start = Start::Before(Cursor::decode(&cursor).unwrap());
    }
}

async fn every_combination_of_filters_gives_what_a_model_gives_in_pages_of_any_size(world: World) {
    let tenant = world.tenant().await;
    let other = world.tenant().await;
    let workspaces = tree(&world, &tenant).await;
    let mut drafts = Vec::new();
    for n in 0..210_usize {
        // Three numbers without a common rhythm.
        let (kind, place, entity) = (TYPES[n * n % 7], n * 5 % 6, n % 4);
        let workspace_id = workspaces.get(place).copied();
        drafts.push(EventDraft { workspace_id, ..draft(kind, entity.to_string()) });
    }
    let theirs: Vec<_> = TYPES.iter().map(|t| draft(t, "0")).collect();
    for some in drafts.chunks(30) {
        world.append(&tenant, some.to_vec()).await;
        world.append(&other, theirs.clone()).await;
    }
    let all = world.events(&tenant).await;

    let prefixes: [&[&str]; 6] = [&[], &["task."], &["task_"], &["t", "note."], &["task.done", "task."], &["never."]];
    let roots = [None, Some(0), Some(1), Some(4)];
    let entities = [None, Some(("task", None)), Some(("task", Some("1"))), Some(("never", None))];
    for prefixes in prefixes {
        for root in roots {
            for entity in entities {
                let filter = Filter { prefixes, root, entity };
                let wanted: Vec<_> = all.iter().filter(|e| filter.matches(&workspaces, e)).cloned().collect();
                let said = format!("{prefixes:?} {root:?} {entity:?}");
                for limit in [1, 7, 1000] {
                    if limit == 1 && wanted.len() > 20 {
                        continue;
                    }
                    let query = filter.query(&workspaces, limit);
                    assert_eq!(forwards(&world, &tenant, &query).await, wanted, "{said} in pages of {limit}");
                    assert_eq!(backwards(&world, &tenant, &query).await, wanted, "{said} backwards by {limit}");
                }
            }
        }
    }
}

async fn more_types_and_workspaces_than_are_read_side_by_side_are_read_all_the_same(world: World) {
    let tenant = world.tenant().await;
    let top = world.workspace(&tenant, None).await;
    let mut drafts = Vec::new();
    for n in 0..60 {
        let workspace_id = Some(world.workspace(&tenant, Some(top)).await);
        drafts.push(EventDraft { workspace_id, ..draft(&format!("kind_{n}.made"), n.to_string()) });
    }
    world.append(&tenant, drafts).await;
    let ids: Vec<_> = (0..60).map(|n| n.to_string()).collect();
    let of = async |query: EventQuery| {
        let events = forwards(&world, &tenant, &query).await;
        let back = backwards(&world, &tenant, &query).await;
        assert_eq!(events, back);
        let made = events.into_iter().filter(|e| e.event_type.starts_with("kind_"));
        made.map(|e| e.entity_id).collect::<Vec<_>>()
    };
    let typed = EventQuery { prefixes: vec!["kind_".into()], ..query(7) };
    let placed = EventQuery { workspace_id: Some(top), ..query(7) };
    assert_eq!(of(typed.clone()).await, ids);
    assert_eq!(of(placed.clone()).await, ids);
    assert_eq!(of(EventQuery { workspace_id: Some(top), ..typed }).await, ids);
    // Few of the one and many of the other.
    let one = EventQuery { prefixes: vec!["kind_7.".into()], ..placed };
    assert_eq!(of(one).await, ["7"]);
}

async fn ranges_that_end_at_their_bound_go_on_where_they_stopped(world: World) {
    let tenant = world.tenant().await;
    let (here, there) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let place = |workspace_id, kind: &str, id: &str| EventDraft { workspace_id: Some(workspace_id), ..draft(kind, id) };
    let begin = world.end(&tenant).await;
    world.append(&tenant, vec![place(here, "task.made", "first")]).await;
    // Both the type and the workspace are frequent, and hardly ever together.
    for _ in 0..12 {
        let mut some = vec![place(there, "task.made", "b"); 250];
        some.extend(vec![place(here, "note.made", "b"); 250]);
        world.append(&tenant, some).await;
    }
    world.append(&tenant, vec![place(here, "task.made", "last")]).await;
    let both = EventQuery { prefixes: vec!["task.".into()], workspace_id: Some(here), ..query(10) };
    let page = world.page(&tenant, EventQuery { start: after(&begin), ..both.clone() }).await;
    assert!(page.has_more, "what was not read proves nothing");
    let ids = |events: Vec<Event>| events.into_iter().map(|e| e.entity_id).collect::<Vec<_>>();
    assert_eq!(ids(forwards(&world, &tenant, &both).await), ["first", "last"]);
    assert_eq!(ids(backwards(&world, &tenant, &both).await), ["first", "last"]);
}

async fn an_idle_reader_whose_filter_never_matches_stands_at_the_end_after_one_page(world: World) {
    let tenant = world.tenant().await;
    let workspace = world.workspace(&tenant, None).await;
    let begin = world.end(&tenant).await;
    for _ in 0..2 {
        world.append(&tenant, vec![draft("task.made", "b"); 500]).await;
    }
    let end = world.end(&tenant).await;
    for filter in [
        EventQuery { prefixes: vec!["never.".into()], ..query(50) },
        EventQuery { workspace_id: Some(workspace), ..query(50) },
        EventQuery { prefixes: vec!["task.".into()], workspace_id: Some(workspace), ..query(50) },
        EventQuery { entity_type: Some("never".into()), ..query(50) },
        EventQuery { entity_type: Some("task".into()), entity_id: Some("never".into()), ..query(50) },
    ] {
        let page = world.page(&tenant, EventQuery { start: after(&begin), ..filter.clone() }).await;
        assert_eq!((page.items.len(), page.has_more, &page.next_cursor), (0, false, &end), "{filter:?}");
        let again = world.page(&tenant, EventQuery { start: after(&end), ..filter }).await;
        assert_eq!((again.items.len(), again.has_more, again.next_cursor), (0, false, end.clone()));
    }
}
