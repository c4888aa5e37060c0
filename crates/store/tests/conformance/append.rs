//! Appending what producers publish: ids, workspaces, and payloads that stay as they were written.

use std::future::{Future, poll_fn};
use std::task::Poll;

use courant_store::{Change, Error, EventDraft};

use crate::cases;
use crate::world::{World, at, draft, entities, id, not_found};

cases![
    an_event_carries_what_its_request_and_its_draft_say,
    a_known_id_with_the_same_content_is_a_duplicate,
    a_known_id_with_other_content_refuses_the_whole_append,
    an_id_given_twice_in_one_request_is_appended_once,
    the_same_id_of_two_tenants_is_two_events,
    an_unknown_or_archived_workspace_refuses_the_whole_append,
    payloads_are_kept_byte_for_byte,
    the_same_id_appended_at_once_is_appended_once,
    requests_at_once_are_refused_each_by_itself,
    a_dropped_append_is_appended,
];

fn with_id(n: u128, entity_id: &str) -> EventDraft {
    EventDraft { id: Some(id(n)), ..draft("task.made", entity_id) }
}

async fn an_event_carries_what_its_request_and_its_draft_say(world: World) {
    let tenant = world.tenant().await;
    let workspace_id = Some(world.workspace(&tenant, None).await);
    let begin = world.end(&tenant).await;
    let change = Change {
        request_id: Some("request-1".into()),
        correlation_id: Some("of the request".into()),
        ..tenant.change_at(7)
    };
    let own = EventDraft {
        workspace_id,
        schema_version: 3,
        correlation_id: Some("its own".into()),
        causation_id: Some("cause".into()),
        ..with_id(1, "a")
    };
    world.store.event_append(change, vec![own, draft("note.made", "b")]).await.unwrap();
    let events = world.since(&tenant, &begin).await;
    let (a, b) = (&events[0], &events[1]);
    assert_eq!((a.id, a.tenant_id, a.schema_version, a.workspace_id), (id(1), tenant.id, 3, workspace_id));
    assert_eq!((a.event_type.as_str(), a.entity_type.as_str(), a.entity_id.as_str()), ("task.made", "task", "a"));
    assert_eq!(
        (a.actor_id, a.session_id.as_deref(), a.request_id.as_deref()),
        (Some(tenant.admin), None, Some("request-1"))
    );
    assert_eq!((a.correlation_id.as_deref(), a.causation_id.as_deref()), (Some("its own"), Some("cause")));
    assert_eq!((b.correlation_id.as_deref(), b.causation_id.as_deref()), (Some("of the request"), None));
    assert_eq!((a.occurred_at, b.occurred_at), (at(7), at(7)));
}

async fn a_known_id_with_the_same_content_is_a_duplicate(world: World) {
    let tenant = world.tenant().await;
    let draft = EventDraft { payload: r#"{"a":1,"b":["x",2]}"#.into(), ..with_id(1, "a") };
    let first = world.append(&tenant, vec![draft.clone()]).await[0];
    assert!(!first.duplicate);
    let reordered = EventDraft { payload: r#" {"b" : ["\u0078", 2], "a":1}"#.into(), ..draft.clone() };
    let of_another_request = EventDraft { correlation_id: Some("later".into()), ..draft.clone() };
    for again in [draft, reordered, of_another_request] {
        let outcome = world.store.event_append(tenant.change_at(60), vec![again]).await.unwrap()[0];
        assert_eq!((outcome.id, outcome.seq, outcome.duplicate), (first.id, first.seq, true));
    }
    assert_eq!(world.events(&tenant).await.len(), 5);
    assert_eq!(world.store.event_get(tenant.id, first.id).await.unwrap().payload.text(), r#"{"a":1,"b":["x",2]}"#);

    // Duplicates and new ones may stand together, each answered at its own place.
    let mixed = world
        .append(
            &tenant,
            vec![
                with_id(2, "b"),
                EventDraft { payload: r#"{"a":1,"b":["x",2]}"#.into(), ..with_id(1, "a") },
                with_id(3, "c"),
            ],
        )
        .await;
    assert_eq!(
        mixed.iter().map(|o| (o.id, o.duplicate)).collect::<Vec<_>>(),
        [(id(2), false), (id(1), true), (id(3), false)]
    );
    assert!(mixed[0].seq < mixed[2].seq);
    assert_eq!(mixed[1].seq, first.seq);
}

async fn a_known_id_with_other_content_refuses_the_whole_append(world: World) {
    let tenant = world.tenant().await;
    let workspace_id = Some(world.workspace(&tenant, None).await);
    let stored = EventDraft { payload: r#"{"n":12345678901234567890123}"#.into(), ..with_id(1, "a") };
    world.append(&tenant, vec![stored.clone()]).await;
    let before = world.events(&tenant).await;
    let others = [
        EventDraft { entity_id: "b".into(), ..stored.clone() },
        EventDraft { event_type: "task.done".into(), ..stored.clone() },
        EventDraft { entity_type: "job".into(), ..stored.clone() },
        EventDraft { workspace_id, ..stored.clone() },
        EventDraft { causation_id: Some("x".into()), ..stored.clone() },
        EventDraft { payload: r#"{"n":1}"#.into(), ..stored.clone() },
        EventDraft { payload: r#"{"n":12345678901234567890123,"m":null}"#.into(), ..stored.clone() },
        // As doubles the two numbers are one.
        EventDraft { payload: r#"{"n":12345678901234567890124}"#.into(), ..stored },
    ];
    for other in others {
        let outcome = world.store.event_append(tenant.change(), vec![draft("task.made", "new"), other.clone()]).await;
        assert!(matches!(outcome, Err(Error::EventIdConflict(of)) if of == id(1)), "{other:?}: {outcome:?}");
    }
    assert_eq!(world.events(&tenant).await, before, "nothing of a refused append is stored");
}

async fn an_id_given_twice_in_one_request_is_appended_once(world: World) {
    let tenant = world.tenant().await;
    let outcomes = world.append(&tenant, vec![with_id(1, "a"), with_id(2, "b"), with_id(1, "a")]).await;
    assert_eq!(outcomes.iter().map(|o| o.duplicate).collect::<Vec<_>>(), [false, false, true]);
    assert_eq!((outcomes[0].id, outcomes[0].seq), (outcomes[2].id, outcomes[2].seq));
    let before = world.events(&tenant).await;
    assert_eq!(before.len(), 6);

    let outcome = world.store.event_append(tenant.change(), vec![with_id(3, "a"), with_id(3, "b")]).await;
    assert!(matches!(outcome, Err(Error::EventIdConflict(of)) if of == id(3)), "{outcome:?}");
    assert_eq!(world.events(&tenant).await, before);
}

async fn the_same_id_of_two_tenants_is_two_events(world: World) {
    let (one, two) = (world.tenant().await, world.tenant().await);
    assert!(!world.append(&one, vec![with_id(1, "a")]).await[0].duplicate);
    assert!(!world.append(&two, vec![with_id(1, "b")]).await[0].duplicate);
    assert_eq!(world.store.event_get(one.id, id(1)).await.unwrap().entity_id, "a");
    assert_eq!(world.store.event_get(two.id, id(1)).await.unwrap().entity_id, "b");
}

async fn an_unknown_or_archived_workspace_refuses_the_whole_append(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let theirs = world.workspace(&other, None).await;
    let archived = world.workspace(&tenant, None).await;
    world.store.workspace_archive(tenant.change(), archived).await.unwrap();
    let before = world.events(&tenant).await;
    for workspace in [uuid::Uuid::from_u128(9).into(), theirs, archived] {
        let lost = EventDraft { workspace_id: Some(workspace), ..draft("task.made", "b") };
        not_found(world.store.event_append(tenant.change(), vec![draft("task.made", "a"), lost]).await);
    }
    assert_eq!(world.events(&tenant).await, before);
}

async fn payloads_are_kept_byte_for_byte(world: World) {
    let tenant = world.tenant().await;
    let texts = [
        r#"{ "b" : 1 ,  "a":2, "A" : 3 }"#,
        r#"{"n":12345678901234567890123.4500,"e":1E+2,"z":-0.0,"i":1.0}"#,
        r#"{"t":"\u00e9 é \u00E9 \/ \ud83d\ude00 😀 \t"}"#,
        "{\n\t\"x\": []\r\n}",
        r#"{"quotes":"'; DROP TABLE event; --","percent":"%_","dollar":"$1 ?1 {uuids}"}"#,
        "{\"\u{2028}\":\"\u{feff}\u{10ffff}\"}",
    ];
    let begin = world.end(&tenant).await;
    world
        .append(&tenant, texts.iter().map(|t| EventDraft { payload: (*t).into(), ..draft("task.made", "a") }).collect())
        .await;
    let large = format!(r#"{{"x":"{}"}}"#, "ä".repeat(100_000));
    world.append(&tenant, vec![EventDraft { payload: large.clone(), ..draft("task.made", "large") }]).await;
    let events = world.since(&tenant, &begin).await;
    let kept: Vec<_> = events.iter().map(|e| e.payload.text()).collect();
    assert_eq!(kept, texts.into_iter().chain([large.as_str()]).collect::<Vec<_>>());
    assert_eq!(entities(&events[6..]), ["large"]);
}

async fn the_same_id_appended_at_once_is_appended_once(world: World) {
    let tenant = world.tenant().await;
    let before = world.events(&tenant).await.len();
    let start = std::sync::Arc::new(tokio::sync::Barrier::new(8));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let (store, change, start) = (world.store.clone(), tenant.change(), start.clone());
        tasks.spawn(async move {
            start.wait().await;
            store.event_append(change, vec![with_id(1, "a"), draft("task.made", n.to_string())]).await.unwrap()[0]
        });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|o| !o.duplicate).count(), 1);
    assert!(outcomes.iter().all(|o| o.seq == outcomes[0].seq), "{outcomes:?}");
    assert_eq!(world.events(&tenant).await.len(), before + 9);
}

/// Requests that arrive together may share a transaction; they never share a fate.
async fn requests_at_once_are_refused_each_by_itself(world: World) {
    const ROUNDS: u128 = 10;
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let theirs = Some(world.workspace(&other, None).await);
    world.append(&tenant, vec![with_id(1, "a")]).await;
    let begin = world.end(&tenant).await;
    let start = std::sync::Arc::new(tokio::sync::Barrier::new(40));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40_u128 {
        let drafts = move |round: u128| match n % 4 {
            0 => vec![with_id(1, "a"), draft("task.made", format!("fine {n} {round}"))],
            1 => vec![draft("task.made", "refused"), with_id(1, "other content")],
            2 => vec![
                draft("task.made", "refused"),
                EventDraft { workspace_id: theirs, ..draft("task.made", "refused") },
            ],
            // The same new id from ten requests at once, twice with other content.
            _ => vec![with_id(100 + round, if n % 20 == 19 { "other" } else { "same" })],
        };
        let (store, tenant, start) = (world.store.clone(), tenant.clone(), start.clone());
        tasks.spawn(async move {
            let mut outcomes = Vec::new();
            for round in 0..ROUNDS {
                start.wait().await;
                outcomes.push(store.event_append(tenant.change(), drafts(round)).await);
            }
            (n, outcomes)
        });
    }
    let (mut fine, mut new) = (0, 0);
    for (n, outcomes) in tasks.join_all().await {
        for outcome in outcomes {
            match (n % 4, outcome) {
                (0, Ok(outcome)) => fine += usize::from(outcome[0].duplicate && !outcome[1].duplicate),
                (1, Err(Error::EventIdConflict(of))) if of == id(1) => {}
                (2, Err(Error::NotFound(_))) => {}
                (3, Ok(outcome)) => new += usize::from(!outcome[0].duplicate),
                (3, Err(Error::EventIdConflict(of))) if of != id(1) => {}
                (_, outcome) => panic!("{n}: {outcome:?}"),
            }
        }
    }
    assert_eq!((fine, new), (100, 10));
    let events = world.since(&tenant, &begin).await;
    assert_eq!(events.len(), 110);
    assert!(!entities(&events).contains(&"refused"));
}

async fn a_dropped_append_is_appended(world: World) {
    let tenant = world.tenant().await;
    let begin = world.end(&tenant).await;
    let mut appended = world.store.appended();
    appended.mark_unchanged();
    let mut request = Box::pin(world.store.event_append(tenant.change(), vec![draft("task.made", "a")]));
    poll_fn(|context| {
        let _ = request.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
    drop(request);
    appended.changed().await.unwrap();
    assert_eq!(entities(&world.since(&tenant, &begin).await), ["a"]);
}
