//! Reports of findings: who wants them, and that a report and its stamp are one.

use std::sync::Arc;

use courant_api::announced::{AnnouncedFindings, AnnouncedType};
use courant_api::deployments::FindingCounts;
use courant_api::{DeliveryId, IntegrationId, Timestamp};
use courant_core::announce::{Told, report};
use courant_store::{DeliveryQuery, Digest, DigestWanted, Edit, Edited, Error, Fault, Integration, Options, Store};
use uuid::Uuid;

use crate::world::{Tenant, World, at, now};
use crate::{cases, second_server};

cases![
    enabled_integrations_with_a_schedule_and_the_type_want_reports,
    a_report_is_sent_once_for_an_occurrence_whoever_sends_it,
    a_report_and_its_stamp_are_one,
    only_a_person_moves_the_anchor,
];

const SCHEDULE: &str = "0 10 * * mon";

async fn subscriber(world: &World, tenant: &Tenant, edit: impl Fn(&mut Integration)) -> IntegrationId {
    let mut new = tenant.integration(&world.name("report"), &[]);
    new.events = vec![AnnouncedType::ExploreFindingsChanged];
    new.findings_digest_schedule = Some(SCHEDULE.into());
    edit(&mut new);
    now(world.store.integration_create(tenant.change(), new, None).await.unwrap()).id
}

async fn wanted(world: &World) -> Vec<DigestWanted> {
    world.store.digests_wanted(None, 100).await.unwrap()
}

fn digest(to: &DigestWanted, occurrence: Timestamp, id: u128) -> Digest {
    let counts = FindingCounts { cycles: Some(2), orphans: None, duplicates: 1 };
    let findings = AnnouncedFindings { counts, previous: to.previous, unchecked: vec!["orphans".into()] };
    let told = Told { id: DeliveryId(Uuid::from_u128(id)), org_id: to.tenant_id, at: occurrence, base_url: None };
    Digest { to: to.clone(), occurrence, counts, notification: report(told, findings) }
}

async fn enabled_integrations_with_a_schedule_and_the_type_want_reports(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let first = subscriber(&world, &tenant, |_| {}).await;
    subscriber(&world, &tenant, |i| i.enabled = false).await;
    subscriber(&world, &tenant, |i| i.findings_digest_schedule = None).await;
    subscriber(&world, &tenant, |i| i.events = vec![AnnouncedType::StackCreated]).await;
    let both = |i: &mut Integration| i.events.insert(0, AnnouncedType::TaskCompleted);
    let second = subscriber(&world, &other, both).await;
    let ids: Vec<_> = wanted(&world).await.into_iter().map(|wanted| wanted.integration_id).collect();
    assert_eq!(ids, [first, second]);
    let of_first = &wanted(&world).await[0];
    assert_eq!((of_first.tenant_id, of_first.schedule.as_str()), (tenant.id, SCHEDULE));
    assert_eq!((of_first.since, of_first.previous), (at(0), None));
    let rest = world.store.digests_wanted(Some(first), 100).await.unwrap();
    assert_eq!((rest.len(), rest[0].integration_id), (1, second));
    assert_eq!(world.store.digests_wanted(None, 1).await.unwrap().len(), 1);
}

async fn a_report_is_sent_once_for_an_occurrence_whoever_sends_it(world: World) {
    let tenant = world.tenant().await;
    subscriber(&world, &tenant, |_| {}).await;
    let to = wanted(&world).await.remove(0);
    let second = second_server(&world).await;
    let (one, other) = futures_util::future::join(
        world.store.digest_send(digest(&to, at(60), 1), at(61)),
        second.digest_send(digest(&to, at(60), 2), at(62)),
    )
    .await;
    assert_ne!(one.unwrap(), other.unwrap());
    let deliveries = world.store.delivery_list(&tenant.caller, DeliveryQuery::default(), None, 10).await.unwrap().items;
    assert_eq!((deliveries.len(), deliveries[0].event_type.as_str()), (1, "explore_findings_changed"));
    let next = wanted(&world).await.remove(0);
    assert!(next.since > at(60));
    assert_eq!(next.previous, Some(FindingCounts { cycles: Some(2), orphans: None, duplicates: 1 }));
    assert!(!world.store.digest_send(digest(&to, at(60), 3), at(63)).await.unwrap(), "what was looked at before");
    assert!(world.store.digest_send(digest(&next, at(120), 4), at(121)).await.unwrap());
}

async fn a_report_and_its_stamp_are_one(world: World) {
    let tenant = world.tenant().await;
    subscriber(&world, &tenant, |_| {}).await;
    let to = wanted(&world).await.remove(0);
    let fault = Fault::default();
    let options = Options { fault: Some(fault.clone()), ..Options::command(world.url()) };
    let faulty = Store::open(&options).await.unwrap();
    let before = world.contents().await;
    for step in 1.. {
        fault.set(step);
        let outcome = faulty.digest_send(digest(&to, at(60), 1), at(61)).await;
        if fault.is_set() {
            fault.set(0);
            assert!(outcome.unwrap() && step > 4, "lock, delivery, stamp and commit");
            break;
        }
        assert!(matches!(outcome, Err(Error::Unavailable(_))), "{step}");
        assert!(world.contents().await == before, "step {step} leaves something");
    }
    assert_eq!(wanted(&world).await[0].since, at(61));
}

async fn only_a_person_moves_the_anchor(world: World) {
    let tenant = world.tenant().await;
    let id = subscriber(&world, &tenant, |_| {}).await;
    let edit: Edit = Arc::new(|i| Ok(Edited::from(Integration { paused: true, ..i.clone() })));
    world.store.integration_update(tenant.change_at(50), id, edit).await.unwrap();
    assert_eq!(wanted(&world).await[0].since, at(50));
    let to = wanted(&world).await.remove(0);
    assert!(world.store.digest_send(digest(&to, at(60), 1), at(61)).await.unwrap());
    assert_eq!(wanted(&world).await[0].since, at(61));
    let stale: Edit = Arc::new(|i| Ok(Edited::from(Integration { findings_digest_schedule: None, ..i.clone() })));
    let to = wanted(&world).await.remove(0);
    world.store.integration_update(tenant.change_at(70), id, stale).await.unwrap();
    assert!(!world.store.digest_send(digest(&to, at(80), 2), at(81)).await.unwrap(), "the schedule is gone");
    assert_eq!(wanted(&world).await, []);
}
