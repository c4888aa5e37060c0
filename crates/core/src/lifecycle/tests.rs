use super::*;

/// Every pair of a state and a wish, and the allowed ones in this order.
fn table<S, W>(states: &[S], wishes: &[W], life: fn(S, W) -> Result<S, Illegal>, allowed: &[(S, W, S)])
where
    S: Copy + PartialEq + std::fmt::Debug,
    W: Copy + PartialEq + std::fmt::Debug,
{
    let mut seen = 0;
    for &state in states {
        for &wish in wishes {
            let expected = allowed.iter().find(|(s, w, _)| *s == state && *w == wish).map(|(.., next)| *next);
            seen += usize::from(expected.is_some());
            assert_eq!(life(state, wish).ok(), expected, "{wish:?} of {state:?}");
        }
    }
    assert_eq!(seen, allowed.len(), "a row stands twice");
}

#[test]
fn a_task() {
    use TaskStatus as S;
    use TaskWish as W;
    let allowed = [
        (S::Open, W::Claim, S::InProgress),
        (S::Open, W::Verify, S::Open),
        (S::Open, W::Complete, S::Completed),
        (S::Open, W::Block, S::Blocked),
        (S::Open, W::Cancel, S::Cancelled),
        (S::InProgress, W::Release, S::Open),
        (S::InProgress, W::Verify, S::InProgress),
        (S::InProgress, W::Complete, S::Completed),
        (S::InProgress, W::Block, S::Blocked),
        (S::InProgress, W::Cancel, S::Cancelled),
        (S::Blocked, W::Reopen, S::Open),
        (S::Blocked, W::Cancel, S::Cancelled),
        (S::Cancelled, W::Reopen, S::Open),
        (S::Open, W::Invoke, S::Open),
        (S::InProgress, W::Invoke, S::InProgress),
        (S::Blocked, W::Invoke, S::Blocked),
    ];
    table(S::ALL, W::ALL, task, &allowed);
}

#[test]
fn a_claim() {
    use ClaimStatus as S;
    use ClaimWish as W;
    let allowed = [
        (S::Active, W::Extend, S::Active),
        (S::Active, W::Release, S::Released),
        (S::Active, W::Expire, S::Expired),
        (S::Active, W::Complete, S::Completed),
    ];
    table(S::ALL, W::ALL, claim, &allowed);
}

#[test]
fn a_run() {
    use RunStatus as S;
    use RunWish as W;
    let allowed = [
        (S::Running, W::Succeed, S::Succeeded),
        (S::Running, W::Fail, S::Failed),
        (S::Running, W::Cancel, S::Cancelled),
        (S::Running, W::Suspend, S::Suspended),
        (S::Suspended, W::Cancel, S::Cancelled),
    ];
    table(S::ALL, W::ALL, run, &allowed);
}

#[test]
fn a_verification() {
    use VerificationStatus as S;
    use VerificationWish as W;
    let allowed = [(S::Running, W::Pass, S::Passed), (S::Running, W::Fail, S::Failed)];
    table(S::ALL, W::ALL, verification, &allowed);
}

#[test]
fn an_approval() {
    use ApprovalStatus as S;
    use ApprovalWish as W;
    let allowed = [
        (S::Pending, W::Approve, S::Approved),
        (S::Pending, W::Reject, S::Rejected),
        (S::Pending, W::Cancel, S::Cancelled),
        (S::Pending, W::Expire, S::Expired),
        (S::Cancelled, W::Cancel, S::Cancelled),
    ];
    table(S::ALL, W::ALL, approval, &allowed);
}

#[test]
fn a_rule() {
    use RuleStatus as S;
    use RuleWish as W;
    let allowed = [
        (S::Enabled, W::Update, S::Enabled),
        (S::Enabled, W::Enable, S::Enabled),
        (S::Enabled, W::Disable, S::Disabled),
        (S::Enabled, W::Archive, S::Archived),
        (S::Disabled, W::Update, S::Disabled),
        (S::Disabled, W::Enable, S::Enabled),
        (S::Disabled, W::Disable, S::Disabled),
        (S::Disabled, W::Archive, S::Archived),
        (S::Archived, W::Archive, S::Archived),
    ];
    table(S::ALL, W::ALL, rule, &allowed);
}

#[test]
fn a_project() {
    use ProjectStatus as S;
    use ProjectWish as W;
    let allowed = [
        (S::Active, W::Update, S::Active),
        (S::Active, W::Archive, S::Archived),
        (S::Archived, W::Archive, S::Archived),
    ];
    table(S::ALL, W::ALL, project, &allowed);
}

#[test]
fn a_skill_invocation() {
    use SkillStatus as S;
    use SkillWish as W;
    let allowed = [
        (S::Requested, W::Claim, S::Claimed),
        (S::Requested, W::Cancel, S::Cancelled),
        (S::Claimed, W::Retry, S::Requested),
        (S::Claimed, W::Succeed, S::Succeeded),
        (S::Claimed, W::Fail, S::Failed),
        (S::Claimed, W::Cancel, S::Cancelled),
    ];
    table(S::ALL, W::ALL, skill, &allowed);
}

#[test]
fn a_refusal_names_state_and_wish() {
    let refused = task(TaskStatus::Completed, TaskWish::Claim).unwrap_err();
    assert_eq!(refused.to_string(), "claim is not possible: the task is completed");
}
