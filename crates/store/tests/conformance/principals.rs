//! Tenants, principals and their grants.

use courant_api::access::{GrantCreate, PrincipalCreate, PrincipalKind, PrincipalPatch, PrincipalStatus};
use courant_api::{Permission, Resource, TenantId};
use courant_core::access::Grant;
use courant_store::{Change, Error};
use serde_json::json;

use crate::cases;
use crate::world::{World, at, conflict, key, not_found, now, payload, types};

cases![
    a_tenant_begins_with_an_administrator_and_its_key,
    a_principal_is_created_changed_and_told,
    an_update_without_a_difference_is_none,
    an_update_of_another_version_is_refused,
    principals_are_listed_newest_first_in_pages,
    a_grant_is_given_once_and_taken_back,
    a_grant_needs_its_principal_and_its_workspace,
    nobody_hands_out_more_than_they_hold,
];

async fn a_tenant_begins_with_an_administrator_and_its_key(world: World) {
    assert_eq!(world.store.tenant_count().await.unwrap(), 0);
    assert_eq!(world.store.administrator_first().await.unwrap(), None);
    let nobody = Change::by_server(TenantId(uuid::Uuid::nil()), at(3));
    let made = now(world.store.tenant_bootstrap(nobody, "acme".into(), key("first")).await.unwrap());
    assert_eq!(made.api_key.as_deref(), Some("secret of first"));
    assert_eq!(world.store.tenant_count().await.unwrap(), 1);
    assert_eq!(world.store.administrator_first().await.unwrap(), Some((made.tenant_id, made.principal_id)));

    let caller = world.store.caller_by_key(key("first").hash, at(3)).await.unwrap().unwrap();
    assert_eq!((caller.tenant_id, caller.principal_id), (made.tenant_id, made.principal_id));
    assert_eq!(caller.rights.grants(), [Grant::new(Permission::All, Resource::Tenant)]);
    let administrator = world.store.principal_get(made.tenant_id, made.principal_id).await.unwrap();
    assert_eq!((administrator.kind, administrator.status), (PrincipalKind::Human, PrincipalStatus::Active));

    let tenant = crate::world::Tenant { id: made.tenant_id, admin: made.principal_id, caller };
    let told = world.events(&tenant).await;
    assert_eq!(types(&told), ["tenant.bootstrapped", "principal.created", "grant.created", "api_key.created"]);
    assert!(told.iter().all(|e| e.actor_id == Some(made.principal_id) && e.occurred_at == at(3)));
    assert_eq!(payload(&told[0]), json!({"name": "acme"}));
    assert!(!told.iter().any(|e| e.payload.text().contains("secret of")), "a secret is never told");
}

async fn a_principal_is_created_changed_and_told(world: World) {
    let tenant = world.tenant().await;
    let begin = world.end(&tenant).await;
    let new = PrincipalCreate { kind: PrincipalKind::Agent, display_name: "Reviewer".into() };
    let made = now(world.store.principal_create(tenant.change_at(1), new).await.unwrap());
    assert_eq!(
        (made.kind, made.status, made.version, made.created_at),
        (PrincipalKind::Agent, PrincipalStatus::Active, 1, at(1))
    );
    assert_eq!(world.store.principal_get(tenant.id, made.id).await.unwrap(), made);

    let update = async |patch| now(world.store.principal_update(tenant.change(), made.id, patch).await.unwrap());
    let renamed = update(PrincipalPatch { display_name: Some("Critic".into()), status: None }).await;
    assert_eq!((renamed.display_name.as_str(), renamed.version), ("Critic", 2));
    let disabled = update(PrincipalPatch { display_name: None, status: Some(PrincipalStatus::Disabled) }).await;
    assert_eq!((disabled.status, disabled.version), (PrincipalStatus::Disabled, 3));
    let enabled = update(PrincipalPatch { display_name: None, status: Some(PrincipalStatus::Active) }).await;
    assert_eq!(world.store.principal_get(tenant.id, made.id).await.unwrap(), enabled);

    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["principal.created", "principal.updated", "principal.disabled", "principal.updated"]);
    assert!(told.iter().all(|e| e.entity_id == made.id.to_string() && e.actor_id == Some(tenant.admin)));
    assert_eq!(payload(&told[2]), json!({"kind": "agent", "displayName": "Critic", "status": "disabled"}));
}

async fn an_update_without_a_difference_is_none(world: World) {
    let tenant = world.tenant().await;
    let id = world.principal(&tenant).await;
    let before = world.store.principal_get(tenant.id, id).await.unwrap();
    let begin = world.end(&tenant).await;
    let same =
        PrincipalPatch { display_name: Some(before.display_name.clone()), status: Some(PrincipalStatus::Active) };
    for patch in [PrincipalPatch::default(), same] {
        assert_eq!(now(world.store.principal_update(tenant.change(), id, patch).await.unwrap()), before);
    }
    assert_eq!(world.since(&tenant, &begin).await, []);
}

async fn an_update_of_another_version_is_refused(world: World) {
    let tenant = world.tenant().await;
    let id = world.principal(&tenant).await;
    let rename = |name: &str| PrincipalPatch { display_name: Some(name.into()), status: None };
    let at_version = |version| Change { if_match: Some(vec![version]), ..tenant.change() };
    now(world.store.principal_update(at_version(1), id, rename("a")).await.unwrap());
    let outcome = world.store.principal_update(at_version(1), id, rename("b")).await;
    assert!(matches!(outcome, Err(Error::VersionConflict { current: 2 })), "{outcome:?}");
    assert_eq!(world.store.principal_get(tenant.id, id).await.unwrap().display_name, "a");
}

async fn principals_are_listed_newest_first_in_pages(world: World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let mut ids = vec![tenant.admin];
    for _ in 0..4 {
        ids.push(world.principal(&tenant).await);
        world.principal(&other).await;
    }
    ids.reverse();
    let (mut listed, mut key) = (Vec::new(), None);
    for pages in 1.. {
        let page = world.store.principal_list(tenant.id, key, 2).await.unwrap();
        listed.extend(page.items.iter().map(|p| p.id));
        key = page.next;
        if key.is_none() {
            assert_eq!(pages, 3);
            break;
        }
    }
    assert_eq!(listed, ids);
    let whole = world.store.principal_list(tenant.id, None, 5).await.unwrap();
    assert_eq!((whole.items.len(), whole.next), (5, None));
}

async fn a_grant_is_given_once_and_taken_back(world: World) {
    let tenant = world.tenant().await;
    let principal_id = world.principal(&tenant).await;
    now(world.store.api_key_create(tenant.change(), principal_id, key("theirs")).await.unwrap());
    let held =
        async || world.store.caller_by_key(key("theirs").hash, at(0)).await.unwrap().unwrap().rights.grants().to_vec();
    assert_eq!(held().await, []);
    let begin = world.end(&tenant).await;

    let resource = Resource::NotificationIntegration("ops chat".into());
    let new = GrantCreate::to(principal_id, Permission::NotificationIntegrationRead, resource.clone());
    let grant = now(world.store.grant_create(tenant.change_at(5), new.clone()).await.unwrap());
    assert_eq!(grant.created_at, at(5));
    assert_eq!(held().await, [Grant::new(new.permission, resource.clone())]);
    conflict(world.store.grant_create(tenant.change(), new.clone()).await);
    let listed = world.store.grant_list(tenant.id, None, 1).await.unwrap();
    assert_eq!((&listed.items[..], listed.next), (&[grant.clone()][..], Some(grant.id.uuid())));
    let rest = world.store.grant_list(tenant.id, listed.next, 10).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (1, None));

    now(world.store.grant_delete(tenant.change(), grant.id).await.unwrap());
    assert_eq!(held().await, []);
    not_found(world.store.grant_delete(tenant.change(), grant.id).await);
    let told = world.since(&tenant, &begin).await;
    assert_eq!(types(&told), ["grant.created", "grant.revoked"]);
    assert_eq!(payload(&told[1]), payload(&told[0]));
    assert_eq!(payload(&told[0])["resource"], "notification_integration:ops chat");
    now(world.store.grant_create(tenant.change(), new).await.unwrap());
}

async fn a_grant_needs_its_principal_and_its_workspace(world: World) {
    let tenant = world.tenant().await;
    let begin = world.end(&tenant).await;
    let absent = uuid::Uuid::from_u128(4);
    let new = |principal_id, resource| GrantCreate::to(principal_id, Permission::EventsRead, resource);
    not_found(world.store.grant_create(tenant.change(), new(absent.into(), Resource::Tenant)).await);
    let nowhere = Resource::Workspace(absent.into());
    not_found(world.store.grant_create(tenant.change(), new(tenant.admin, nowhere)).await);
    assert_eq!(world.since(&tenant, &begin).await, []);
}

async fn nobody_hands_out_more_than_they_hold(world: World) {
    let tenant = world.tenant().await;
    let (ops, other) =
        (Resource::NotificationIntegration("ops".into()), Resource::NotificationIntegration("other".into()));
    let held = [(Permission::EventsRead, ops.clone()), (Permission::GrantsManage, Resource::Tenant)];
    let handed = async |permission, resource: &Resource| {
        let principal_id = world.principal(&tenant).await;
        let new = GrantCreate::to(principal_id, permission, resource.clone());
        let granted = world.store.grant_create(tenant.change_with(&held), new.clone()).await;
        // A key for somebody who has the grant already comes to the same.
        let principal_id = world.principal(&tenant).await;
        now(world
            .store
            .grant_create(tenant.change(), GrantCreate { principal_id: Some(principal_id), ..new })
            .await
            .unwrap());
        let keyed = world
            .store
            .api_key_create(tenant.change_with(&held), principal_id, key(&principal_id.uuid().simple().to_string()))
            .await;
        match (granted, keyed) {
            (Ok(_), Ok(_)) => true,
            (Err(Error::Denied { .. }), Err(Error::Denied { .. })) => false,
            unlike => panic!("{permission} {resource}: {unlike:?}"),
        }
    };
    for (permission, resource) in &held {
        assert!(handed(*permission, resource).await, "{permission} {resource}");
    }
    assert!(handed(Permission::GrantsManage, &other).await);
    for (permission, resource) in [
        (Permission::All, &Resource::Tenant),
        (Permission::All, &ops),
        (Permission::EventsRead, &Resource::Tenant),
        (Permission::EventsRead, &other),
        (Permission::EventsAppend, &ops),
    ] {
        assert!(!handed(permission, resource).await, "{permission} {resource}");
    }
    let denied = world.store.api_key_create(tenant.change_with(&held), tenant.admin, key("admin's")).await;
    assert!(matches!(denied, Err(Error::Denied { .. })), "{denied:?}");
    let by_command = Change::by_server(tenant.id, at(1));
    now(world.store.api_key_create(by_command, tenant.admin, key("admin's")).await.unwrap());
}
