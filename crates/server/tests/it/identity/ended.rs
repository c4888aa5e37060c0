//! What ends access, on a clock that the test drives: over HTTP within five seconds on every server, on an open socket
//! at the next look, which is a minute away at most, or when a credential ends by itself.

use std::time::Duration;

use courant_testkit::DrivenClock;

use crate::support::{Api, Engine, Socket, Tenant, World, json, tenant};

const HTTP: Duration = Duration::from_secs(5);
const PING: Duration = Duration::from_secs(20);

/// A way in, and what ends it.
struct Way {
    name: &'static str,
    api: Api,
    end: End,
    /// Status and code over HTTP, and the close code on a socket, when it has ended.
    refused: (u16, &'static str, u16),
}

enum End {
    /// This request does.
    Request(Box<dyn Fn(&Tenant) -> crate::support::http::Call>),
    /// Time does.
    Time,
}

const OUT: (u16, &str, u16) = (401, "unauthenticated", 4401);
const DENIED: (u16, &str, u16) = (403, "permission_denied", 4403);

fn request(call: impl Fn(&Tenant) -> crate::support::http::Call + 'static) -> End {
    End::Request(Box::new(call))
}

/// Everything that ends access, each with a principal of its own. What time ends lasts `seconds`.
async fn ways(world: &World, tenant: &Tenant, seconds: i64) -> Vec<Way> {
    let reader = [("events.read", "tenant")];
    let now = courant_server::clock::now();
    let mut ways = Vec::new();

    let member = tenant.member(&reader).await;
    let path = format!("/principals/{}", member.id);
    let disable = request(move |tenant| tenant.patch(&path, &json!({ "status": "disabled" })));
    ways.push(Way { name: "a disabled principal's key", api: member.api, end: disable, refused: OUT });

    let member = tenant.member(&reader).await;
    tenant.bind(world, &member.id, &member.id).await;
    let path = format!("/principals/{}", member.id);
    let disable = request(move |tenant| tenant.patch(&path, &json!({ "status": "disabled" })));
    let api = world.bearer(&member.id, json!({}));
    ways.push(Way { name: "a disabled principal's token", api, end: disable, refused: OUT });

    let member = tenant.member(&reader).await;
    let path = format!("/api-keys/{}:revoke", member.key_id);
    ways.push(Way { name: "a revoked key", api: member.api, end: request(move |t| t.act(&path)), refused: OUT });

    let member = tenant.member(&reader).await;
    let until = now.plus_micros(seconds * 1_000_000).to_string();
    let made = tenant.post("/api-keys", &json!({ "principalId": member.id, "expiresAt": until })).await.expect(201);
    let api = world.api.with(made["apiKey"].as_str().unwrap());
    ways.push(Way { name: "an expired key", api, end: End::Time, refused: OUT });

    let member = tenant.member(&reader).await;
    tenant.bind(world, &member.id, &member.id).await;
    let leeway = courant_server::identity::LEEWAY_SECONDS;
    let api = world.bearer(&member.id, json!({ "exp": now.micros() / 1_000_000 + seconds - leeway }));
    ways.push(Way { name: "an expired token", api, end: End::Time, refused: OUT });

    let member = tenant.member(&reader).await;
    let path = format!("/identity-bindings/{}", tenant.bind(world, &member.id, &member.id).await);
    let api = world.bearer(&member.id, json!({}));
    ways.push(Way { name: "a revoked binding", api, end: request(move |t| t.delete(&path)), refused: OUT });

    let member = tenant.member(&[]).await;
    let path = format!("/grants/{}", tenant.grant(&member.id, "events.read", "tenant").await);
    ways.push(Way {
        name: "a removed grant",
        api: member.api,
        end: request(move |t| t.delete(&path)),
        refused: DENIED,
    });

    let member = tenant.member(&[]).await;
    let role = json!({ "key": "reader", "name": "Reader" });
    let role = tenant::id(&tenant.post("/roles", &role).await.expect(201));
    let grant = json!({ "roleId": role, "permission": "events.read", "resource": "tenant" });
    tenant.post("/grants", &grant).await.expect(201);
    let assigned = tenant.post(&format!("/roles/{role}/assignments"), &json!({ "principalId": member.id })).await;
    let path = format!("/roles/{role}/assignments/{}", tenant::id(&assigned.expect(201)));
    ways.push(Way { name: "a revoked role", api: member.api, end: request(move |t| t.delete(&path)), refused: DENIED });
    ways
}

async fn ended(way: &Way, api: &Api, place: &str) {
    let reply = api.get("/events?limit=1").await;
    let (status, code, _) = way.refused;
    assert_eq!(reply.status, status, "{} {place}: {}", way.name, reply.text());
    reply.refused(status, code);
}

async fn requests_end_within_five_seconds_on_every_server(engine: Engine) {
    let clock = DrivenClock::take();
    let world = World::start(engine, &[]).await;
    let tenant = world.tenant().await;
    // A SQLite file has one server; a second application on it has caches of its own just as well.
    let second = world.second_server().await;
    let ways = ways(&world, &tenant, 4).await;
    for way in &ways {
        for api in [&way.api, &way.api.at(second)] {
            assert_eq!(api.get("/events?limit=1").await.status, 200, "{}", way.name);
        }
    }
    for way in &ways {
        if let End::Request(request) = &way.end {
            let status = request(&tenant).await.status;
            assert!((200..300).contains(&status), "{}: {status}", way.name);
            // Here it counts at once.
            ended(way, &way.api, "at once, where it was ended").await;
        }
    }
    clock.pass(HTTP).await;
    for way in &ways {
        ended(way, &way.api, "after five seconds").await;
        ended(way, &way.api.at(second), "after five seconds, on the other server").await;
    }
    clock.release();
    world.finish().await;
}

async fn sockets_end_at_the_next_look_or_when_the_credential_does(engine: Engine) {
    let clock = DrivenClock::take();
    let world = World::start(engine, &[]).await;
    let tenant = world.tenant().await;
    let mut open = Vec::new();
    for way in ways(&world, &tenant, 50).await {
        let mut socket = Socket::events(&way.api, "").await;
        assert_eq!(socket.event().await["type"], "tenant.bootstrapped", "{}", way.name);
        open.push((way, socket));
    }
    let witness = tenant.member(&[("events.read", "tenant")]).await;
    let mut witness = Socket::events(&witness, "types=workspace.").await;
    for (way, _) in &open {
        if let End::Request(request) = &way.end {
            let status = request(&tenant).await.status;
            assert!((200..300).contains(&status), "{}: {status}", way.name);
        }
    }
    // Everybody answers what the server asks them meanwhile.
    for _ in 0..2 {
        clock.pass(PING).await;
        for socket in open.iter_mut().map(|(_, socket)| socket).chain([&mut witness]) {
            socket.pinged().await;
        }
    }
    // Short of the next look: what time ends has ended, and by itself.
    clock.pass(Duration::from_secs(15)).await;
    for (way, socket) in open.iter_mut().filter(|(way, _)| matches!(way.end, End::Time)) {
        let (_, code, close) = way.refused;
        assert_eq!(socket.closed().await, (close, code.to_owned()), "{}", way.name);
    }
    clock.pass(Duration::from_secs(5)).await;
    for (way, socket) in open.iter_mut().filter(|(way, _)| matches!(way.end, End::Request(_))) {
        let (_, code, close) = way.refused;
        assert_eq!(socket.closed().await, (close, code.to_owned()), "{}", way.name);
    }
    // Whoever kept what they had goes on.
    clock.release();
    let workspace = tenant.workspace(None).await;
    assert_eq!(witness.event().await["entityId"], workspace.as_str());
    world.finish().await;
}

macro_rules! on_both {
    ($($case:ident),+ $(,)?) => {
        mod postgres { $(#[tokio::test] async fn $case() { super::$case(super::Engine::Postgres).await; })+ }
        mod sqlite { $(#[tokio::test] async fn $case() { super::$case(super::Engine::Sqlite).await; })+ }
    };
}

on_both! {
    requests_end_within_five_seconds_on_every_server,
    sockets_end_at_the_next_look_or_when_the_credential_does,
}
