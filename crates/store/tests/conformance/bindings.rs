//! Logins of issuers: whom each stands for, until when, and who may say so.

use std::sync::Arc;

use courant_api::access::{IdentityBindingCreate, PrincipalPatch, PrincipalStatus};
use courant_api::{Permission, PrincipalId, Resource, Scope};
use courant_core::access::Ceiling;
use courant_store::{Error, PageKey, Token};
use serde_json::json;

use crate::cases;
use crate::world::{World, at, conflict, denied, not_found, now, payload, types};

cases![
    a_login_stands_for_its_principal_until_it_is_ended,
    a_disabled_principals_login_stands_for_nobody,
    a_token_goes_as_far_as_its_scope_and_its_principal,
    a_login_is_bound_once_whatever_the_tenant,
    nobody_binds_a_login_to_somebody_who_may_do_more,
    bindings_are_listed_newest_first_and_each_tenants_apart,
];

const ISSUER: &str = "https://login.example.com";

fn login(subject: &str, principal_id: PrincipalId) -> IdentityBindingCreate {
    IdentityBindingCreate { issuer: ISSUER.into(), subject: subject.into(), principal_id }
}

fn token(subject: &str, ceiling: Ceiling) -> Arc<Token> {
    let (issuer, subject) = (ISSUER.into(), subject.into());
    Arc::new(Token { issuer, subject, expires_at: at(100), ceiling, purpose: None, channel: None })
}

async fn stands_for(world: &World, subject: &str) -> Option<PrincipalId> {
    let token = token(subject, Ceiling::of(["control-plane:admin"]));
    let caller = world.store.caller_by_token(token).await.unwrap();
    assert!(caller.iter().all(|caller| caller.expires_at == Some(at(100))));
    caller.map(|caller| caller.principal_id)
}

async fn a_login_stands_for_its_principal_until_it_is_ended(world: World) {
    let tenant = world.tenant().await;
    let principal = world.principal(&tenant).await;
    let begin = world.end(&tenant).await;
    let made = now(world.store.identity_bind(tenant.change_at(1), login("ada", principal)).await.unwrap());
    assert_eq!((made.issuer.as_str(), made.subject.as_str(), made.created_at), (ISSUER, "ada", at(1)));
    assert_eq!(stands_for(&world, "ada").await, Some(principal));
    assert_eq!(stands_for(&world, "Ada").await, None);
    assert_eq!(world.store.identity_binding_get(tenant.id, made.id).await.unwrap(), made);
    now(world.store.identity_unbind(tenant.change_at(2), made.id).await.unwrap());
    assert_eq!(stands_for(&world, "ada").await, None);
    not_found(world.store.identity_unbind(tenant.change_at(3), made.id).await);
    not_found(world.store.identity_binding_get(tenant.id, made.id).await);
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["identity_binding.created", "identity_binding.revoked"]);
    for event in &told {
        assert_eq!(payload(event), json!({ "principalId": principal, "issuer": ISSUER }));
    }
}

async fn a_disabled_principals_login_stands_for_nobody(world: World) {
    let tenant = world.tenant().await;
    let principal = world.principal(&tenant).await;
    now(world.store.identity_bind(tenant.change(), login("ada", principal)).await.unwrap());
    for (status, expected) in [(PrincipalStatus::Disabled, None), (PrincipalStatus::Active, Some(principal))] {
        let patch = PrincipalPatch { display_name: None, status: Some(status) };
        now(world.store.principal_update(tenant.change(), principal, patch).await.unwrap());
        assert_eq!(stands_for(&world, "ada").await, expected);
    }
}

async fn a_token_goes_as_far_as_its_scope_and_its_principal(world: World) {
    let tenant = world.tenant().await;
    now(world.store.identity_bind(tenant.change(), login("ada", tenant.admin)).await.unwrap());
    for (scopes, reads, manages) in [
        (&["control-plane:admin"][..], true, true),
        (&["control-plane:write"], true, false),
        (&["control-plane:read"], true, false),
        (&[], false, false),
    ] {
        let token = token("ada", Ceiling::of(scopes.iter().copied()));
        let rights = world.store.caller_by_token(token).await.unwrap().unwrap().rights;
        for (permission, expected) in [(Permission::EventsRead, reads), (Permission::GrantsManage, manages)] {
            let allowed = world.store.allows(&rights, permission, &Resource::Tenant).await.unwrap();
            assert_eq!(allowed, expected, "{scopes:?} {permission}");
            let denied = rights.denied(permission, Resource::Tenant);
            assert_eq!(matches!(denied, Error::BeyondScope(_)), !expected, "{denied}");
        }
    }
    assert_eq!(Permission::GrantsManage.scope(), Scope::Admin);
}

async fn a_login_is_bound_once_whatever_the_tenant(world: World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    now(world.store.identity_bind(mine.change(), login("ada", mine.admin)).await.unwrap());
    conflict(world.store.identity_bind(mine.change(), login("ada", mine.admin)).await);
    conflict(world.store.identity_bind(theirs.change(), login("ada", theirs.admin)).await);
    not_found(world.store.identity_bind(theirs.change(), login("grace", mine.admin)).await);
    assert_eq!(stands_for(&world, "ada").await, Some(mine.admin));
}

async fn nobody_binds_a_login_to_somebody_who_may_do_more(world: World) {
    let tenant = world.tenant().await;
    let keeper = tenant.change_with(&[(Permission::IdentityBindingsManage, Resource::Tenant)]);
    denied(world.store.identity_bind(keeper.clone(), login("me", tenant.admin)).await);
    let harmless = world.principal(&tenant).await;
    now(world.store.identity_bind(keeper, login("me", harmless)).await.unwrap());
}

async fn bindings_are_listed_newest_first_and_each_tenants_apart(world: World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    let mut made = Vec::new();
    for subject in ["a", "b", "c"] {
        made.push(now(world.store.identity_bind(mine.change(), login(subject, mine.admin)).await.unwrap()));
    }
    let other = now(world.store.identity_bind(theirs.change(), login("d", theirs.admin)).await.unwrap());
    let page = world.store.identity_binding_list(mine.id, PageKey::default(), 10).await.unwrap();
    made.reverse();
    assert_eq!(page.items, made);
    not_found(world.store.identity_binding_get(mine.id, other.id).await);
    not_found(world.store.identity_unbind(mine.change(), other.id).await);
}
