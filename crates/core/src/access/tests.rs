use courant_api::WorkspaceId;
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn workspace(n: u128) -> WorkspaceId {
    WorkspaceId(Uuid::from_u128(n))
}

/// 1 is at the top, 2 below it, 3 below 2; 9 is apart.
fn path(n: u128) -> Vec<WorkspaceId> {
    match n {
        1 => vec![workspace(1)],
        2 => vec![workspace(2), workspace(1)],
        3 => vec![workspace(3), workspace(2), workspace(1)],
        _ => vec![workspace(n)],
    }
}

fn integration(name: &str) -> Resource {
    Resource::NotificationIntegration(name.into())
}

fn on(resource: Resource, within: Option<u128>) -> Grant {
    Grant { permission: Permission::EventsRead, resource, within: within.map(workspace) }
}

fn reads(grant: &Grant, reach: Reach, resource: &Resource) -> bool {
    let path = match resource {
        Resource::Workspace(id) => path(id.0.as_u128()),
        _ => Vec::new(),
    };
    allows(std::slice::from_ref(grant), reach, Permission::EventsRead, Target::new(resource, &path))
}

#[test]
fn what_is_held_on_a_workspace_counts_there_and_below() {
    for (held, place, counts) in [
        (None, &path(3)[..], true),
        (None, &[], true),
        (Some(1), &path(1), true),
        (Some(1), &path(3), true),
        (Some(3), &path(1), false),
        (Some(9), &path(3), false),
        (Some(1), &[], false),
    ] {
        assert_eq!(covers(held.map(workspace), place), counts, "{held:?} at {place:?}");
    }
}

#[test]
fn every_row_of_the_table_of_reach() {
    let tenant = || Resource::Tenant;
    let ws = |n| Resource::Workspace(workspace(n));
    // The grant, what is asked, and whether it is allowed in `local` and in `policy`.
    for (grant, asked, local, policy) in [
        (on(tenant(), None), tenant(), true, true),
        (on(tenant(), None), ws(3), true, true),
        (on(tenant(), None), integration("ops"), true, true),
        (on(ws(2), None), tenant(), false, false),
        (on(ws(2), None), ws(1), false, false),
        (on(ws(2), None), ws(2), true, true),
        (on(ws(2), None), ws(3), false, true),
        (on(ws(2), None), ws(9), false, false),
        (on(ws(2), None), integration("ops"), false, false),
        (on(integration("ops"), None), integration("ops"), true, true),
        (on(integration("ops"), None), integration("ops-2"), false, false),
        (on(integration("ops*"), None), integration("ops-2"), true, true),
        (on(integration("*"), None), integration("anything"), true, true),
        (on(integration("*"), None), tenant(), false, false),
        (on(integration("*"), None), ws(1), false, false),
        // Held by a role on a workspace: within its subtree, and nothing at tenant level.
        (on(tenant(), Some(2)), tenant(), false, false),
        (on(tenant(), Some(2)), ws(1), false, false),
        (on(tenant(), Some(2)), ws(2), true, true),
        (on(tenant(), Some(2)), ws(3), true, true),
        (on(tenant(), Some(2)), integration("ops"), false, false),
        (on(ws(1), Some(2)), ws(1), false, false),
        (on(ws(1), Some(2)), ws(2), false, true),
        (on(ws(3), Some(2)), ws(3), true, true),
        (on(ws(9), Some(2)), ws(9), false, false),
        (on(integration("*"), Some(2)), integration("ops"), false, false),
    ] {
        assert_eq!(reads(&grant, Reach::Exact, &asked), local, "local: {grant:?} for {asked}");
        assert_eq!(reads(&grant, Reach::Subtree, &asked), policy, "policy: {grant:?} for {asked}");
    }
}

#[test]
fn a_grant_names_its_permission_or_every_one() {
    for &held in Permission::LIST {
        let grants = [Grant::new(held, Resource::Tenant)];
        for &asked in Permission::LIST {
            let expected = held == Permission::All || held == asked;
            let target = Target::new(&Resource::Tenant, &[]);
            assert_eq!(allows(&grants, Reach::Exact, asked, target), expected, "{held} for {asked}");
            assert_eq!(allows_any(&grants, asked), expected);
        }
    }
}

#[test]
fn nobody_is_allowed_anything_without_a_grant() {
    for reach in [Reach::Exact, Reach::Subtree] {
        assert!(!allows(&[], reach, Permission::EventsRead, Target::new(&Resource::Tenant, &[])));
    }
    assert!(!allows_any(&[], Permission::EventsRead));
}

#[test]
fn two_grants_do_not_add_up_to_a_third() {
    let grants = [
        Grant::new(Permission::EventsRead, integration("ops")),
        Grant::new(Permission::EventsAppend, Resource::Tenant),
    ];
    assert!(!allows(&grants, Reach::Subtree, Permission::EventsRead, Target::new(&Resource::Tenant, &[])));
}

#[test]
fn a_whole_subtree_needs_more_than_its_root() {
    let root = Resource::Workspace(workspace(2));
    let path = path(2);
    let whole = Target { resource: &root, path: &path, subtree: true };
    let may = |grant: Grant, reach| allows(&[grant], reach, Permission::EventsRead, whole);
    assert!(!may(on(Resource::Workspace(workspace(2)), None), Reach::Exact));
    assert!(may(on(Resource::Workspace(workspace(2)), None), Reach::Subtree));
    assert!(may(on(Resource::Workspace(workspace(1)), None), Reach::Subtree));
    assert!(may(on(Resource::Tenant, Some(2)), Reach::Exact));
    assert!(may(on(Resource::Tenant, None), Reach::Exact));
    assert!(!may(on(Resource::Tenant, Some(3)), Reach::Exact));
}

#[test]
fn a_pattern_is_matched_whole() {
    for (name, pattern, expected) in [
        ("ops", "ops", true),
        ("ops", "op", false),
        ("ops", "", false),
        ("ops", "*", true),
        ("ops", "o*s", true),
        ("os", "o*s", true),
        ("ops-a", "o*s", false),
        ("team-a-slack", "team-*-slack", true),
        ("team-a-b-slack", "team-*-slack", true),
        ("aab", "*ab", true),
        ("aaab", "a*ab*", true),
        ("a.b", "a_b", false),
        // A narrower pattern fits a wider one, and no wider one a narrower.
        ("team-a-*", "team-*", true),
        ("team-*", "team-a-*", false),
        ("*", "ops", false),
    ] {
        assert_eq!(fits(name, pattern), expected, "{name} in {pattern}");
    }
}

#[test]
fn a_scope_is_a_ceiling() {
    use Permission as P;
    let up_to = |scopes: &[&str]| Ceiling::of(scopes.iter().copied());
    let read = up_to(&["openid", "control-plane:read"]);
    assert!(read.admits(P::EventsRead) && !read.admits(P::EventsAppend) && !read.admits(P::GrantsManage));
    let write = up_to(&["control-plane:write", "control-plane:read"]);
    assert!(write.admits(P::EventsRead) && write.admits(P::EventsAppend) && !write.admits(P::GrantsManage));
    let admin = up_to(&["control-plane:admin"]);
    assert!(Permission::LIST.iter().all(|&p| admin.admits(p) && Ceiling::None.admits(p)));
    for none in [up_to(&[]), up_to(&["control-plane:Read", "control-plane:decide", "read"])] {
        assert!(Permission::LIST.iter().all(|&p| !none.admits(p)));
    }
}

#[test]
fn what_is_only_read_needs_no_more_than_the_scope_of_reading() {
    for &permission in Permission::LIST {
        let reads = permission.as_str().rsplit_once('.').is_some_and(|(_, verb)| verb == "read");
        assert_eq!(reads, permission.scope() == Scope::Read, "{permission}");
    }
}

proptest! {
    #[test]
    fn a_pattern_that_fits_another_covers_no_name_beyond_it(
        narrow in "[ab*]{0,6}", wide in "[ab*]{0,6}", name in "[ab]{0,6}",
    ) {
        if fits(&narrow, &wide) && fits(&name, &narrow) {
            prop_assert!(fits(&name, &wide));
        }
    }
}
