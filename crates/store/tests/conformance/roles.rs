//! Roles: what they grant, where, to whom, and who may hand them out.

use courant_api::access::{GrantCreate, RoleAssignmentCreate, RoleAssignmentView, RoleCreate, RolePatch, RoleView};
use courant_api::{Permission, PrincipalId, Resource, WorkspaceId};
use courant_core::access::{Grant, Reach};
use courant_store::{Authority, Change, Error, Options, Rights, Store};

use crate::cases;
use crate::world::{Tenant, World, at, conflict, denied, key, not_found, now, payload, types};

cases![
    a_roles_grants_count_for_those_who_have_it_within_the_subtree_where_they_do,
    a_role_counts_no_longer_once_it_or_its_grant_is_taken_away,
    holders_are_those_of_the_place_of_what_is_above_and_of_the_tenant,
    holders_are_paged_each_once,
    nobody_assigns_more_than_they_hold_there,
    a_role_gets_only_grants_that_its_granter_holds,
    a_role_is_managed_where_it_belongs_and_assigned_where_it_counts,
    keys_and_assignments_are_unique,
    roles_tell_the_journal_in_their_own_workspace,
    a_grant_goes_to_exactly_one,
    another_tenants_roles_do_not_exist,
    in_the_mode_policy_a_grant_reaches_what_is_below,
];

async fn role(world: &World, tenant: &Tenant, key: &str, workspace_id: Option<WorkspaceId>) -> RoleView {
    let new = RoleCreate { key: key.into(), name: "Role".into(), workspace_id };
    now(world.store.role_create(tenant.change(), new).await.unwrap())
}

async fn give(world: &World, tenant: &Tenant, role: &RoleView, permission: Permission, resource: Resource) {
    let new = GrantCreate { principal_id: None, role_id: Some(role.id), permission, resource };
    now(world.store.grant_create(tenant.change(), new).await.unwrap());
}

async fn assign(
    world: &World,
    tenant: &Tenant,
    role: &RoleView,
    principal_id: PrincipalId,
    workspace_id: Option<WorkspaceId>,
) -> RoleAssignmentView {
    let new = RoleAssignmentCreate { principal_id, workspace_id };
    now(world.store.role_assign(tenant.change(), role.id, new).await.unwrap())
}

/// The rights of a principal as a request with a key of theirs has them.
async fn rights(world: &World, tenant: &Tenant, principal: PrincipalId) -> Rights {
    let key = key(&principal.uuid().simple().to_string());
    let hash = key.hash;
    if world.store.caller_by_key(hash, at(0)).await.unwrap().is_none() {
        now(world.store.api_key_create(Change::by_server(tenant.id, at(0)), principal, key).await.unwrap());
    }
    world.store.caller_by_key(hash, at(0)).await.unwrap().unwrap().rights
}

async fn reads(world: &World, tenant: &Tenant, principal: PrincipalId, resource: &Resource) -> bool {
    let rights = rights(world, tenant, principal).await;
    world.store.allows(&rights, Permission::EventsRead, resource).await.unwrap()
}

/// Three workspaces, each below the one before, and one apart.
async fn tree(world: &World, tenant: &Tenant) -> [WorkspaceId; 4] {
    let top = world.workspace(tenant, None).await;
    let middle = world.workspace(tenant, Some(top)).await;
    [top, middle, world.workspace(tenant, Some(middle)).await, world.workspace(tenant, None).await]
}

async fn a_roles_grants_count_for_those_who_have_it_within_the_subtree_where_they_do(world: World) {
    let tenant = world.tenant().await;
    let [top, middle, leaf, apart] = tree(&world, &tenant).await;
    let reader = role(&world, &tenant, "reader", None).await;
    give(&world, &tenant, &reader, Permission::EventsRead, Resource::Tenant).await;
    let (here, everywhere) = (world.principal(&tenant).await, world.principal(&tenant).await);
    assign(&world, &tenant, &reader, here, Some(middle)).await;
    assign(&world, &tenant, &reader, everywhere, None).await;
    for (workspace, counts) in [(top, false), (middle, true), (leaf, true), (apart, false)] {
        assert_eq!(reads(&world, &tenant, here, &Resource::Workspace(workspace)).await, counts, "{workspace}");
        assert!(reads(&world, &tenant, everywhere, &Resource::Workspace(workspace)).await);
    }
    assert!(!reads(&world, &tenant, here, &Resource::Tenant).await);
    assert!(reads(&world, &tenant, everywhere, &Resource::Tenant).await);
    // The place is judged as it is now.
    now(world.store.workspace_move(tenant.change(), apart, Some(leaf)).await.unwrap());
    assert!(reads(&world, &tenant, here, &Resource::Workspace(apart)).await);
    now(world.store.workspace_move(tenant.change(), leaf, None).await.unwrap());
    assert!(!reads(&world, &tenant, here, &Resource::Workspace(apart)).await);
}

async fn a_role_counts_no_longer_once_it_or_its_grant_is_taken_away(world: World) {
    let tenant = world.tenant().await;
    let reader = role(&world, &tenant, "reader", None).await;
    let new = GrantCreate {
        principal_id: None,
        role_id: Some(reader.id),
        permission: Permission::EventsRead,
        resource: Resource::Tenant,
    };
    let grant = now(world.store.grant_create(tenant.change(), new.clone()).await.unwrap());
    let somebody = world.principal(&tenant).await;
    let had = assign(&world, &tenant, &reader, somebody, None).await;
    assert!(reads(&world, &tenant, somebody, &Resource::Tenant).await);
    now(world.store.grant_delete(tenant.change(), grant.id).await.unwrap());
    assert!(!reads(&world, &tenant, somebody, &Resource::Tenant).await);
    now(world.store.grant_create(tenant.change(), new).await.unwrap());
    assert!(reads(&world, &tenant, somebody, &Resource::Tenant).await);
    now(world.store.role_revoke(tenant.change(), reader.id, had.id).await.unwrap());
    assert!(!reads(&world, &tenant, somebody, &Resource::Tenant).await);
    not_found(world.store.role_revoke(tenant.change(), reader.id, had.id).await);
}

async fn holders(world: &World, tenant: &Tenant, role: &RoleView, at: Option<WorkspaceId>) -> Vec<PrincipalId> {
    let page = world.store.role_holders(tenant.id, role.id, at, None, 50).await.unwrap();
    page.items.into_iter().map(|holder| holder.id).collect()
}

async fn holders_are_those_of_the_place_of_what_is_above_and_of_the_tenant(world: World) {
    let tenant = world.tenant().await;
    let [top, middle, leaf, apart] = tree(&world, &tenant).await;
    let approver = role(&world, &tenant, "approver", None).await;
    let mut people = Vec::new();
    for place in [None, Some(top), Some(middle), Some(leaf), Some(apart)] {
        let principal = world.principal(&tenant).await;
        assign(&world, &tenant, &approver, principal, place).await;
        people.push(principal);
    }
    let expected = |indices: &[usize]| indices.iter().rev().map(|&n| people[n]).collect::<Vec<_>>();
    assert_eq!(holders(&world, &tenant, &approver, None).await, expected(&[0]));
    assert_eq!(holders(&world, &tenant, &approver, Some(top)).await, expected(&[0, 1]));
    assert_eq!(holders(&world, &tenant, &approver, Some(middle)).await, expected(&[0, 1, 2]));
    assert_eq!(holders(&world, &tenant, &approver, Some(leaf)).await, expected(&[0, 1, 2, 3]));
    assert_eq!(holders(&world, &tenant, &approver, Some(apart)).await, expected(&[0, 4]));
    // Whoever holds it twice is told once.
    assign(&world, &tenant, &approver, people[3], Some(top)).await;
    assert_eq!(holders(&world, &tenant, &approver, Some(leaf)).await, expected(&[0, 1, 2, 3]));
    let nowhere = uuid::Uuid::from_u128(4).into();
    not_found(world.store.role_holders(tenant.id, approver.id, Some(nowhere), None, 50).await);
}

async fn holders_are_paged_each_once(world: World) {
    let tenant = world.tenant().await;
    let [top, middle, leaf, apart] = tree(&world, &tenant).await;
    let approver = role(&world, &tenant, "approver", None).await;
    let mut people = Vec::new();
    for n in 0..7 {
        let principal = world.principal(&tenant).await;
        let places: &[_] = if n % 2 == 0 { &[None, Some(top), Some(middle)] } else { &[Some(apart), Some(leaf)] };
        for place in places {
            assign(&world, &tenant, &approver, principal, *place).await;
        }
        people.push(principal);
    }
    let (mut told, mut key) = (Vec::new(), None);
    loop {
        let page = world.store.role_holders(tenant.id, approver.id, Some(middle), key, 1).await.unwrap();
        told.extend(page.items.iter().map(|holder| holder.id));
        key = page.next;
        if key.is_none() {
            break;
        }
    }
    let expected: Vec<_> = people.into_iter().step_by(2).rev().collect();
    assert_eq!(told, expected);
}

async fn nobody_assigns_more_than_they_hold_there(world: World) {
    let tenant = world.tenant().await;
    let [top, middle, ..] = tree(&world, &tenant).await;
    let reader = role(&world, &tenant, "reader", None).await;
    give(&world, &tenant, &reader, Permission::EventsRead, Resource::Tenant).await;
    let workspace = Resource::Workspace;
    let tries = async |held: &[Grant], reach, at: Option<WorkspaceId>| {
        let mut held = held.to_vec();
        held.push(Grant::new(Permission::RolesManage, Resource::Tenant));
        let rights = Rights::new(&Authority::Grants(reach), tenant.id, tenant.admin, held);
        let change = Change { rights, ..tenant.change() };
        let new = RoleAssignmentCreate { principal_id: world.principal(&tenant).await, workspace_id: at };
        match world.store.role_assign(change, reader.id, new).await {
            Ok(_) => true,
            Err(Error::Denied { permission: Permission::EventsRead, .. }) => false,
            unlike => panic!("{unlike:?}"),
        }
    };
    let on = |resource| [Grant::new(Permission::EventsRead, resource)];
    let by_role = |within| [Grant { within: Some(within), ..Grant::new(Permission::EventsRead, Resource::Tenant) }];
    assert!(tries(&on(Resource::Tenant), Reach::Exact, None).await);
    assert!(tries(&on(Resource::Tenant), Reach::Exact, Some(top)).await);
    // A role counts below its workspace, which a grant on just that workspace does not reach in the mode `local`.
    assert!(!tries(&on(workspace(middle)), Reach::Exact, Some(middle)).await);
    assert!(tries(&on(workspace(middle)), Reach::Subtree, Some(middle)).await);
    assert!(tries(&on(workspace(top)), Reach::Subtree, Some(middle)).await);
    assert!(!tries(&on(workspace(middle)), Reach::Subtree, Some(top)).await);
    assert!(!tries(&on(workspace(top)), Reach::Subtree, None).await);
    assert!(tries(&by_role(top), Reach::Exact, Some(middle)).await);
    assert!(!tries(&by_role(middle), Reach::Exact, Some(top)).await);
    assert!(!tries(&[], Reach::Subtree, Some(top)).await);
}

async fn a_role_gets_only_grants_that_its_granter_holds(world: World) {
    let tenant = world.tenant().await;
    let team = role(&world, &tenant, "team", None).await;
    let pattern = |text: &str| Resource::NotificationIntegration(text.into());
    let held =
        [(Permission::GrantsManage, Resource::Tenant), (Permission::NotificationIntegrationRead, pattern("team-*"))];
    let tries = async |permission, resource| {
        let new = GrantCreate { principal_id: None, role_id: Some(team.id), permission, resource };
        world.store.grant_create(tenant.change_with(&held), new).await
    };
    now(tries(Permission::NotificationIntegrationRead, pattern("team-a-*")).await.unwrap());
    now(tries(Permission::NotificationIntegrationRead, pattern("team-a")).await.unwrap());
    denied(tries(Permission::NotificationIntegrationRead, pattern("*")).await);
    denied(tries(Permission::NotificationIntegrationRead, pattern("te*")).await);
    denied(tries(Permission::NotificationIntegrationUpdate, pattern("team-a")).await);
    conflict(tries(Permission::NotificationIntegrationRead, pattern("team-a")).await);
}

async fn a_role_is_managed_where_it_belongs_and_assigned_where_it_counts(world: World) {
    let tenant = world.tenant().await;
    let [top, middle, ..] = tree(&world, &tenant).await;
    let owned = role(&world, &tenant, "owned", Some(top)).await;
    let here = tenant.change_with(&[(Permission::RolesManage, Resource::Workspace(top))]);
    let there = tenant.change_with(&[(Permission::RolesManage, Resource::Workspace(middle))]);
    let rename = || RolePatch { name: Some("Other".into()) };
    denied(world.store.role_update(there.clone(), owned.id, rename()).await);
    let renamed = now(world.store.role_update(here.clone(), owned.id, rename()).await.unwrap());
    assert_eq!((renamed.name.as_str(), renamed.version), ("Other", 2));
    let stale = Change { if_match: Some(vec![1]), ..here.clone() };
    assert!(matches!(
        world.store.role_update(stale, owned.id, RolePatch { name: Some("Third".into()) }).await,
        Err(Error::VersionConflict { current: 2 })
    ));
    let principal_id = world.principal(&tenant).await;
    let to = RoleAssignmentCreate { principal_id, workspace_id: Some(middle) };
    denied(world.store.role_assign(here.clone(), owned.id, to.clone()).await);
    let had = now(world.store.role_assign(there.clone(), owned.id, to).await.unwrap());
    denied(world.store.role_revoke(here.clone(), owned.id, had.id).await);
    now(world.store.role_revoke(there, owned.id, had.id).await.unwrap());
    let new = RoleCreate { key: "another".into(), name: "Role".into(), workspace_id: None };
    denied(world.store.role_create(here, new).await);
}

async fn keys_and_assignments_are_unique(world: World) {
    let tenant = world.tenant().await;
    let workspace = world.workspace(&tenant, None).await;
    let one = role(&world, &tenant, "one", None).await;
    let again = RoleCreate { key: "one".into(), name: "Other".into(), workspace_id: Some(workspace) };
    conflict(world.store.role_create(tenant.change(), again).await);
    let principal_id = world.principal(&tenant).await;
    for workspace_id in [None, Some(workspace)] {
        assign(&world, &tenant, &one, principal_id, workspace_id).await;
        let again = RoleAssignmentCreate { principal_id, workspace_id };
        conflict(world.store.role_assign(tenant.change(), one.id, again).await);
    }
    let other = world.tenant().await;
    role(&world, &other, "one", None).await;
}

async fn roles_tell_the_journal_in_their_own_workspace(world: World) {
    let tenant = world.tenant().await;
    let (own, other) = (world.workspace(&tenant, None).await, world.workspace(&tenant, None).await);
    let principal = world.principal(&tenant).await;
    let begin = world.end(&tenant).await;
    let made = role(&world, &tenant, "made", Some(own)).await;
    now(world.store.role_update(tenant.change(), made.id, RolePatch::default()).await.unwrap());
    let rename = RolePatch { name: Some("Other".into()) };
    now(world.store.role_update(tenant.change(), made.id, rename).await.unwrap());
    let had = assign(&world, &tenant, &made, principal, Some(other)).await;
    now(world.store.role_revoke(tenant.change(), made.id, had.id).await.unwrap());
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["role.created", "role.updated", "role.assigned", "role.revoked"]);
    assert!(told.iter().all(|e| e.workspace_id == Some(own) && e.entity_id == made.id.to_string()));
    assert_eq!(payload(&told[2])["workspaceId"], other.to_string());
    assert_eq!(payload(&told[3]), payload(&told[2]));
}

async fn a_grant_goes_to_exactly_one(world: World) {
    let tenant = world.tenant().await;
    let one = role(&world, &tenant, "one", None).await;
    for (principal_id, role_id) in [(None, None), (Some(tenant.admin), Some(one.id))] {
        let new = GrantCreate { principal_id, role_id, permission: Permission::EventsRead, resource: Resource::Tenant };
        let refused = world.store.grant_create(tenant.change(), new).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }
}

async fn another_tenants_roles_do_not_exist(world: World) {
    let (tenant, stranger) = (world.tenant().await, world.tenant().await);
    let own = role(&world, &tenant, "own", None).await;
    let had = assign(&world, &tenant, &own, tenant.admin, None).await;
    let store = &world.store;
    not_found(store.role_get(stranger.id, own.id).await);
    not_found(store.role_update(stranger.change(), own.id, RolePatch::default()).await);
    not_found(store.role_revoke(stranger.change(), own.id, had.id).await);
    not_found(store.role_holders(stranger.id, own.id, None, None, 10).await);
    let to = |principal_id| RoleAssignmentCreate { principal_id, workspace_id: None };
    not_found(store.role_assign(stranger.change(), own.id, to(stranger.admin)).await);
    let theirs = role(&world, &stranger, "theirs", None).await;
    not_found(store.role_assign(stranger.change(), theirs.id, to(tenant.admin)).await);
    assert!(store.role_list(stranger.id, None, 10).await.unwrap().items.iter().all(|r| r.id == theirs.id));
    assert!(store.role_assignment_list(stranger.id, own.id, None, 10).await.unwrap().items.is_empty());
}

async fn in_the_mode_policy_a_grant_reaches_what_is_below(world: World) {
    let tenant = world.tenant().await;
    let [top, middle, leaf, apart] = tree(&world, &tenant).await;
    let options = Options { authority: Authority::Grants(Reach::Subtree), ..Options::command(world.url()) };
    let policy = Store::open(&options).await.unwrap();
    let somebody = world.principal(&tenant).await;
    let new = GrantCreate::to(somebody, Permission::EventsRead, Resource::Workspace(middle));
    now(world.store.grant_create(tenant.change(), new).await.unwrap());
    rights(&world, &tenant, somebody).await;
    let hash = key(&somebody.uuid().simple().to_string()).hash;
    let far = policy.caller_by_key(hash, at(0)).await.unwrap().unwrap().rights;
    let near = rights(&world, &tenant, somebody).await;
    for (workspace, local, in_policy) in
        [(top, false, false), (middle, true, true), (leaf, false, true), (apart, false, false)]
    {
        let place = Resource::Workspace(workspace);
        assert_eq!(policy.allows(&far, Permission::EventsRead, &place).await.unwrap(), in_policy);
        assert_eq!(world.store.allows(&near, Permission::EventsRead, &place).await.unwrap(), local);
    }
    let absent = Resource::Workspace(uuid::Uuid::from_u128(9).into());
    let asked = vec![
        (Permission::EventsRead, Resource::Workspace(leaf)),
        (Permission::EventsRead, absent),
        (Permission::EventsRead, Resource::Tenant),
    ];
    let check = async |store: &Store, rights: Rights| {
        let change = Change { rights, ..tenant.change() };
        let answers = now(store.rights_check(change, asked.clone()).await.unwrap()).items;
        answers.into_iter().map(|answer| answer.allowed).collect::<Vec<_>>()
    };
    assert_eq!(check(&policy, far).await, [true, false, false]);
    // Who may do everything may do nothing to what is not there.
    assert_eq!(check(&world.store, tenant.caller.rights.clone()).await, [true, false, true]);
}
