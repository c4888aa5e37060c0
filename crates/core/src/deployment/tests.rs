use courant_api::events::core_type;

use super::*;

use DeploymentMode as M;
use DeploymentStatus as S;
use RunKind as K;

fn state(mode: M, status: S, stage: K) -> State {
    State { mode, status, stage, read_only: mode == M::PlanUnlocked, promoted: false }
}

/// Every wish there is.
fn wishes() -> Vec<Wish> {
    let mut all: Vec<_> = RunKind::ALL.iter().map(|kind| Wish::Start(*kind)).collect();
    all.extend([None, Some(true), Some(false)].map(Wish::Planned));
    all.extend([Wish::Applied, Wish::RunFailed, Wish::StartFailed, Wish::Confirm, Wish::Cancel, Wish::Skip]);
    all.extend([Wish::LeaveOut, Wish::Promote]);
    all
}

/// Mode, status and stage, the wish, and the status and what is told after it.
type Row = (M, S, K, Wish, S, Option<Told>);

fn allowed() -> Vec<Row> {
    let mut rows = Vec::new();
    for (mode, stage) in [(M::Plan, K::Plan), (M::Plan, K::Apply), (M::PlanUnlocked, K::Plan), (M::Raw, K::Command)] {
        let told = (stage == K::Command).then_some(Told::CommandExecuted);
        rows.push((mode, S::Pending, stage, Wish::Start(stage), S::Running, told));
        rows.push((mode, S::Pending, stage, Wish::StartFailed, S::Failed, Some(Told::Failed)));
        rows.push((mode, S::Running, stage, Wish::RunFailed, S::Failed, Some(Told::Failed)));
        for status in [S::Pending, S::Running] {
            rows.push((mode, status, stage, Wish::Cancel, S::Cancelled, Some(Told::Cancelled)));
            rows.push((mode, status, stage, Wish::LeaveOut, S::Skipped, Some(Told::AutoSkipped)));
        }
        rows.push((mode, S::Pending, stage, Wish::Skip, S::Skipped, Some(Told::Skipped)));
        if stage != K::Plan {
            rows.push((mode, S::Running, stage, Wish::Applied, S::Finished, Some(Told::Succeeded)));
        }
    }
    for changes in [None, Some(true)] {
        let row = (M::Plan, S::Running, K::Plan, Wish::Planned(changes), S::AwaitingConfirmation, Some(Told::Awaiting));
        rows.push(row);
        rows.push((M::PlanUnlocked, S::Running, K::Plan, Wish::Planned(changes), S::Finished, Some(Told::Succeeded)));
    }
    for mode in [M::Plan, M::PlanUnlocked] {
        rows.push((mode, S::Running, K::Plan, Wish::Planned(Some(false)), S::Finished, Some(Told::Succeeded)));
        let parked = S::AwaitingConfirmation;
        for changes in [None, Some(true), Some(false)] {
            rows.push((mode, parked, K::Plan, Wish::Planned(changes), parked, None));
        }
        rows.push((mode, parked, K::Plan, Wish::RunFailed, S::Failed, Some(Told::Failed)));
        rows.push((mode, parked, K::Plan, Wish::Confirm, S::Pending, Some(Told::Confirmed)));
        rows.push((mode, parked, K::Plan, Wish::Cancel, S::Cancelled, Some(Told::Cancelled)));
        rows.push((mode, parked, K::Plan, Wish::Skip, S::Skipped, Some(Told::Skipped)));
        rows.push((mode, parked, K::Plan, Wish::LeaveOut, S::Skipped, Some(Told::AutoSkipped)));
    }
    let parked = S::AwaitingConfirmation;
    rows.push((M::Plan, parked, K::Plan, Wish::Start(K::Plan), parked, None));
    for status in [S::Pending, S::Running, parked, S::Finished] {
        rows.push((M::PlanUnlocked, status, K::Plan, Wish::Promote, status, Some(Told::Promoted)));
    }
    rows
}

#[test]
fn every_state_answers_every_wish() {
    let rows = allowed();
    let mut seen = 0;
    for (mode, stage) in [(M::Plan, K::Plan), (M::Plan, K::Apply), (M::PlanUnlocked, K::Plan), (M::Raw, K::Command)] {
        for &status in S::ALL {
            if status == S::AwaitingConfirmation && stage != K::Plan {
                continue;
            }
            for wish in wishes() {
                let before = state(mode, status, stage);
                let row = rows.iter().find(|row| (row.0, row.1, row.2, &row.3) == (mode, status, stage, &wish));
                seen += usize::from(row.is_some());
                let expected = row.map(|row| (row.4, row.5));
                let after = before.after(&wish).ok().map(|(after, told)| (after.status, told));
                assert_eq!(after, expected, "{wish:?} of {before:?}");
            }
        }
    }
    assert_eq!(seen, rows.len(), "a row stands twice or is never tried");
}

#[test]
fn confirming_a_plan_leads_to_its_apply_and_confirming_a_preview_to_its_plan() {
    let stage = |mode| state(mode, S::AwaitingConfirmation, K::Plan).after(&Wish::Confirm).unwrap().0.stage;
    assert_eq!((stage(M::Plan), stage(M::PlanUnlocked)), (K::Apply, K::Plan));
}

#[test]
fn what_only_reads_ends_with_its_plan() {
    let only_reads = State { read_only: true, ..state(M::Plan, S::Running, K::Plan) };
    for changes in [None, Some(true), Some(false)] {
        assert_eq!(only_reads.after(&Wish::Planned(changes)).unwrap().1, Some(Told::Succeeded));
    }
}

#[test]
fn a_gate_parks_previews_alone() {
    for &mode in M::ALL {
        for gated in [false, true] {
            let (made, told) = State::new(mode, false, gated);
            let parked = mode == M::PlanUnlocked && gated;
            assert_eq!(made.status == S::AwaitingConfirmation, parked);
            assert_eq!(told, parked.then_some(Told::Awaiting));
            assert_eq!(made.read_only, mode == M::PlanUnlocked);
        }
    }
}

#[test]
fn a_preview_is_promoted_once() {
    let (promoted, _) = state(M::PlanUnlocked, S::Finished, K::Plan).after(&Wish::Promote).unwrap();
    let refused = promoted.after(&Wish::Promote).unwrap_err();
    assert_eq!(refused.to_string(), "promote is not possible: the promoted preview is finished");
}

#[test]
fn every_end_has_one_type_and_previews_have_their_own() {
    for &mode in M::ALL {
        for (status, reason, end) in [
            (S::Finished, false, "succeeded"),
            (S::Failed, false, "failed"),
            (S::Cancelled, false, "cancelled"),
            (S::Skipped, true, "auto_skipped"),
            (S::Skipped, false, "skipped"),
        ] {
            let family = if mode == M::PlanUnlocked { "preview" } else { "deployment" };
            let name = event_type(mode, terminal(status, reason).unwrap());
            assert_eq!(name, format!("{family}.{end}"));
            assert!(core_type(name).is_some(), "{name}");
        }
        for status in S::ALL.iter().filter(|status| !status.is_terminal()) {
            assert_eq!(terminal(*status, false), None);
        }
    }
}

#[test]
fn a_chain_of_triggers_ends() {
    let chain: Vec<usize> = (0..MAX_CHAIN).collect();
    assert_eq!(triggers(&chain[..3], &7, false), Ok(()));
    assert_eq!(triggers(&chain[..3], &7, true), Err(NotTriggered::Active));
    assert_eq!(triggers(&chain[..3], &1, false), Err(NotTriggered::Cycle));
    assert_eq!(triggers(&chain, &99, false), Err(NotTriggered::TooLong));
    assert_eq!(triggers(&chain[..MAX_CHAIN - 1], &99, false), Ok(()));
}

#[test]
fn only_a_complete_measured_plan_proves_that_nothing_changes() {
    let plan = |complete, has_changes| PlanSummary {
        add: 0,
        change: 0,
        destroy: 0,
        has_changes,
        complete,
        gap_reasons: vec![],
    };
    assert!(proves_no_changes(Some(&plan(true, Some(false)))));
    for unproven in [Some(plan(true, None)), Some(plan(true, Some(true))), Some(plan(false, Some(false))), None] {
        assert!(!proves_no_changes(unproven.as_ref()));
    }
}
