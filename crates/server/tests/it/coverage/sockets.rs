//! Every route that becomes a socket: the same matrix, told by close codes.

use courant_api::Permission;

use super::routes::{ROUTES, Route, Who};
use super::{Things, fill, things};
use crate::support::{Api, Socket, World, no_such_id, on_both_databases};

fn sockets() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| route.is_socket())
}

async fn ended(api: &Api, route: &Route, things: &Things, more: &str) -> (u16, String) {
    Socket::open(api, &format!("{}{more}", fill(route.path, things))).await.closed().await
}

fn told(code: u16, reason: &str) -> (u16, String) {
    (code, reason.to_owned())
}

async fn a_socket_without_a_good_credential_is_closed_whatever_it_asks_for(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    for route in sockets() {
        for api in [world.api.anonymous(), world.api.with("not a key"), world.api.with("cak_AAAAAAAAAAAAAAAAAAAA")] {
            for more in ["", "&colour=red", "&types=A"] {
                assert_eq!(ended(&api, route, &things, more).await, told(4401, "unauthenticated"));
            }
        }
    }
}

async fn a_socket_needs_the_permission_that_its_route_names_and_no_other(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    for route in sockets() {
        let Who::Holders(needs) = route.who else { panic!("{}: a socket for everybody", route.template) };
        for need in needs {
            let names = Permission::LIST.iter().map(|p| p.as_str());
            let others: Vec<_> = names.filter(|name| *name != "*" && *name != need.permission).collect();
            let grants: Vec<_> = others.into_iter().map(|name| (name, "tenant")).collect();
            for member in [tenant.member(&[]).await, tenant.member(&grants).await] {
                assert_eq!(ended(&member, route, &things, "").await, told(4403, "permission_denied"));
            }
        }
        let places: Vec<_> = needs.iter().map(|need| fill(need.on, &things)).collect();
        let grants: Vec<_> = needs.iter().zip(&places).map(|(need, on)| (need.permission, on.as_str())).collect();
        let member = tenant.member(&grants).await;
        let mut socket = Socket::open(&member, &fill(route.path, &things)).await;
        assert_eq!(socket.event().await["type"], "workspace.created");
    }
}

async fn another_tenants_id_ends_a_socket_as_one_that_does_not_exist(world: &World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    let own = things(world, &mine, "mine.made").await;
    let foreign = things(world, &theirs, "theirs.made").await["workspace"].clone();
    for route in sockets().filter(|route| route.names("workspace")) {
        for id in [foreign.clone(), no_such_id()] {
            let mut named = own.clone();
            named.insert("workspace", id);
            assert_eq!(ended(&mine, route, &named, "").await, told(4404, "not_found"));
        }
    }
}

async fn an_unknown_parameter_ends_a_socket(world: &World) {
    let tenant = world.tenant().await;
    let things = things(world, &tenant, "sample.made").await;
    for route in sockets() {
        for more in ["&colour=red", "&no%zz", "&types=a&limit=1"] {
            assert_eq!(ended(&tenant, route, &things, more).await, told(4400, "invalid_request"), "{more}");
        }
    }
}

on_both_databases! {
    a_socket_without_a_good_credential_is_closed_whatever_it_asks_for,
    a_socket_needs_the_permission_that_its_route_names_and_no_other,
    another_tenants_id_ends_a_socket_as_one_that_does_not_exist,
    an_unknown_parameter_ends_a_socket,
}
