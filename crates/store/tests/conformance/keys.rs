//! API keys: who a key stands for, and when it stands for nobody.

use courant_api::access::{PrincipalPatch, PrincipalStatus};
use courant_store::KeyDraft;
use serde_json::json;

use crate::cases;
use crate::world::{World, at, key, not_found, now, payload, types};

cases![
    a_key_stands_for_its_principal_until_it_is_revoked,
    an_expired_key_stands_for_nobody,
    a_disabled_principals_key_stands_for_nobody_until_it_is_enabled,
    keys_are_listed_without_their_secrets,
    a_key_needs_its_principal,
    the_first_administrator_is_an_active_one,
];

async fn a_key_stands_for_its_principal_until_it_is_revoked(world: World) {
    let tenant = world.tenant().await;
    let principal = world.principal(&tenant).await;
    let begin = world.end(&tenant).await;
    let made = now(world.store.api_key_create(tenant.change_at(1), principal, key("one")).await.unwrap());
    assert_eq!((made.api_key.as_deref(), made.prefix.as_str()), (Some("secret of one"), "ck_one"));
    assert_eq!((made.created_at, made.revoked_at, made.expires_at), (at(1), None, None));
    let holder = async || world.store.caller_by_key(key("one").hash, at(9)).await.unwrap().map(|c| c.principal_id);
    assert_eq!(holder().await, Some(principal));
    assert!(world.store.caller_by_key(key("other").hash, at(9)).await.unwrap().is_none());

    let revoked = now(world.store.api_key_revoke(tenant.change_at(2), made.id).await.unwrap());
    assert_eq!((revoked.revoked_at, revoked.api_key.as_deref()), (Some(at(2)), None));
    assert_eq!(holder().await, None);
    let again = now(world.store.api_key_revoke(tenant.change_at(3), made.id).await.unwrap());
    assert_eq!(again, revoked, "a revoked key stays as it was");
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["api_key.created", "api_key.revoked"]);
    assert_eq!(payload(&told[0]), json!({"principalId": principal, "prefix": "ck_one", "expiresAt": null}));
}

async fn an_expired_key_stands_for_nobody(world: World) {
    let tenant = world.tenant().await;
    let draft = KeyDraft { expires_at: Some(at(10)), ..key("short") };
    let made = now(world.store.api_key_create(tenant.change(), tenant.admin, draft).await.unwrap());
    assert_eq!(made.expires_at, Some(at(10)));
    let known = async |now| world.store.caller_by_key(key("short").hash, now).await.unwrap().is_some();
    assert!(known(at(9)).await);
    assert!(known(at(10).plus_micros(-1)).await);
    assert!(!known(at(10)).await);
    assert!(!known(at(11)).await);
}

async fn a_disabled_principals_key_stands_for_nobody_until_it_is_enabled(world: World) {
    let tenant = world.tenant().await;
    let principal = world.principal(&tenant).await;
    now(world.store.api_key_create(tenant.change(), principal, key("one")).await.unwrap());
    for (status, known) in [(PrincipalStatus::Disabled, false), (PrincipalStatus::Active, true)] {
        let patch = PrincipalPatch { display_name: None, status: Some(status) };
        now(world.store.principal_update(tenant.change(), principal, patch).await.unwrap());
        assert_eq!(world.store.caller_by_key(key("one").hash, at(0)).await.unwrap().is_some(), known);
    }
}

async fn keys_are_listed_without_their_secrets(world: World) {
    let tenant = world.tenant().await;
    let mut ids = Vec::new();
    for name in ["one", "two", "three"] {
        ids.push(now(world.store.api_key_create(tenant.change(), tenant.admin, key(name)).await.unwrap()).id);
    }
    ids.reverse();
    let first = world.store.api_key_list(tenant.id, None, 2).await.unwrap();
    assert_eq!(first.items.iter().map(|k| k.id).collect::<Vec<_>>(), ids[..2]);
    let rest = world.store.api_key_list(tenant.id, first.next, 2).await.unwrap();
    assert_eq!((rest.items[0].id, rest.items.len(), rest.next), (ids[2], 2, None));
    assert!(first.items.iter().chain(&rest.items).all(|k| k.api_key.is_none()));
}

async fn a_key_needs_its_principal(world: World) {
    let tenant = world.tenant().await;
    let nobody = uuid::Uuid::from_u128(3).into();
    not_found(world.store.api_key_create(tenant.change(), nobody, key("one")).await);
    not_found(world.store.api_key_revoke(tenant.change(), uuid::Uuid::from_u128(3).into()).await);
}

async fn the_first_administrator_is_an_active_one(world: World) {
    let (one, two) = (world.tenant().await, world.tenant().await);
    world.principal(&two).await;
    assert_eq!(world.store.administrator_first().await.unwrap(), Some((one.id, one.admin)));
    let patch = PrincipalPatch { display_name: None, status: Some(PrincipalStatus::Disabled) };
    now(world.store.principal_update(one.change(), one.admin, patch).await.unwrap());
    assert_eq!(world.store.administrator_first().await.unwrap(), Some((two.id, two.admin)));
}
