//! The WebSocket's close codes for what is wrong from the start, and its handshake.

use courant_api::Cursor;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::support::tenant::order;
use crate::support::{Api, Socket, Tenant, World, json, no_such_id, on_both_databases};

async fn refused(tenant: &Tenant, query: &str) -> (u16, String) {
    Socket::events(tenant, query).await.closed().await
}

fn told(code: u16, reason: &str) -> (u16, String) {
    (code, reason.to_owned())
}

async fn what_cannot_be_read_is_closed_with_4400_and_the_error_code(world: &World) {
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    let end = Cursor::decode(&tenant.end().await).unwrap();
    let ahead = Cursor { seq: end.seq + 1_000_000, ..end }.encode();
    let foreign = other.end().await;
    for (query, code) in [
        ("after=x".to_owned(), "invalid_cursor"),
        ("after=1".to_owned(), "invalid_cursor"),
        ("after=ec2_AAAA".to_owned(), "unsupported_cursor_version"),
        (format!("after={foreign}"), "cursor_from_other_journal"),
        (format!("after={ahead}"), "cursor_from_other_journal"),
        ("after=".to_owned(), "invalid_request"),
        ("types=A".to_owned(), "invalid_event_type_filter"),
        ("types=".to_owned(), "invalid_event_type_filter"),
        ("entityId=o_1".to_owned(), "invalid_request"),
        ("workspaceId=7".to_owned(), "invalid_request"),
        ("cursor=ec1_".to_owned(), "invalid_request"),
        ("wait=5".to_owned(), "invalid_request"),
        ("limit=5".to_owned(), "invalid_request"),
    ] {
        assert_eq!(refused(&tenant, &query).await, told(4400, code), "{query}");
    }
}

async fn a_cursor_below_the_floor_is_closed_with_4400_and_none_begins_at_the_floor(world: &World) {
    let tenant = world.tenant().await;
    tenant.register(&["order.made"]).await;
    let first = tenant.append(order("order.made", "o_1")).await;
    tenant.append(order("order.made", "o_2")).await;
    world.database.raise_floor(first["sequence"].as_i64().unwrap()).await;
    let below = Cursor::decode(first["cursor"].as_str().unwrap()).unwrap();
    let below = Cursor { seq: below.seq - 1, ..below }.encode();
    assert_eq!(refused(&tenant, &format!("after={below}")).await, told(4400, "cursor_below_journal_floor"));
    for start in ["", "after=0"] {
        assert_eq!(Socket::events(&tenant, start).await.entities(1).await, ["o_2"]);
    }
}

async fn who_may_not_read_is_closed_with_4401_4403_or_4404(world: &World) {
    let tenant = world.tenant().await;
    let workspace = tenant.workspace(None).await;
    let reader = tenant.member(&[("events.read", &format!("workspace:{workspace}"))]).await;
    let ended = async |api: &Api, query: &str| Socket::events(api, query).await.closed().await;
    assert_eq!(ended(&world.api, "").await, told(4401, "unauthenticated"));
    assert_eq!(ended(&world.api.with("cak_unknown"), "").await, told(4401, "unauthenticated"));
    assert_eq!(ended(&reader, "").await, told(4403, "permission_denied"));
    assert_eq!(ended(&reader, &format!("workspaceId={}", no_such_id())).await, told(4403, "permission_denied"));
    assert_eq!(ended(&tenant, &format!("workspaceId={}", no_such_id())).await, told(4404, "not_found"));
    assert_eq!(Socket::events(&reader, &format!("workspaceId={workspace}")).await.entities(1).await, [workspace]);
}

async fn a_fault_of_the_server_is_closed_with_1011(world: &World) {
    let tenant = world.tenant().await;
    let tag = Cursor::decode(&tenant.end().await).unwrap().incarnation;
    world.database.set_incarnation(-1).await;
    let told_by = refused(&tenant, "").await;
    world.database.set_incarnation(tag.into()).await;
    assert_eq!(told_by, told(1011, "internal"));
}

async fn more_sockets_than_may_be_are_closed_with_1013(world: &World) {
    let world = World::start(world.engine, &[("COURANT_MAX_SOCKETS", "2")]).await;
    let tenant = world.tenant().await;
    let mut open = [Socket::events(&tenant, "").await, Socket::events(&tenant, "").await];
    assert_eq!(refused(&tenant, "").await, told(1013, "unavailable"));
    assert_eq!(refused(&tenant, "types=A").await, told(1013, "unavailable"));
    let [first, _] = &mut open;
    first.send(Message::Close(None)).await;
    crate::support::eventually("a free place", async || (world.app.sockets.open() == 1).then_some(())).await;
    Socket::events(&tenant, "").await.event().await;
    world.finish().await;
}

async fn a_frame_over_4_kib_is_closed_with_1009_and_smaller_ones_are_ignored(world: &World) {
    let tenant = world.tenant().await;
    let mut socket = Socket::events(&tenant, "types=order.").await;
    socket.send(Message::text("x".repeat(4096))).await;
    socket.send(Message::binary(vec![0; 4096])).await;
    socket.send(Message::text("{\"type\":\"progress\"}")).await;
    tenant.register(&["order.made"]).await;
    tenant.append(order("order.made", "o_1")).await;
    assert_eq!(socket.entities(1).await, ["o_1"]);
    socket.send(Message::text("x".repeat(4097))).await;
    assert_eq!(socket.closed().await, told(1009, "payload_too_large"));
}

async fn a_client_that_breaks_the_protocol_is_closed_with_1002(world: &World) {
    let tenant = world.tenant().await;
    // A frame without a mask, one with an opcode that is none, and a text that is no UTF-8.
    for bytes in [&[0x81, 0x01, b'x'][..], &[0x83, 0x80, 0, 0, 0, 0], &[0x81, 0x81, 0, 0, 0, 0, 0xff]] {
        let mut socket = Socket::events(&tenant, "types=order.").await;
        socket.raw(bytes).await;
        assert_eq!(socket.closed().await, told(1002, "invalid_request"), "{bytes:x?}");
    }
}

async fn browsers_give_their_key_as_a_subprotocol_that_is_not_sent_back(world: &World) {
    let tenant = world.tenant().await;
    let protocols = |text: String| [("sec-websocket-protocol", text)];
    let open = async |headers: &[(&'static str, String)]| Socket::open_with(&tenant, "/events/ws", headers).await;
    let key = &tenant.key;
    let (mut socket, response) = open(&protocols(format!("courant.events.v1, courant.bearer.{key}"))).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "courant.events.v1");
    assert!(!format!("{response:?}").contains(key));
    socket.event().await;
    let (mut socket, _) = open(&protocols("courant.events.v1, courant.bearer.cak_no".to_owned())).await.unwrap();
    assert_eq!(socket.closed().await, told(4401, "unauthenticated"));
    // Offered without the protocol itself it is no credential, and nothing is chosen.
    let refused = open(&protocols(format!("courant.bearer.{key}"))).await;
    assert!(matches!(refused, Err(Error::Protocol(_))), "a protocol was chosen");
}

async fn a_request_that_is_no_handshake_is_refused_over_http(world: &World) {
    let tenant = world.tenant().await;
    tenant.get("/events/ws").await.refused(400, "invalid_request");
    world.api.get("/events/ws").await.refused(401, "unauthenticated");
    let error = tenant.get("/events/ws?colour=red").await.refused(400, "invalid_request");
    assert_eq!(error["details"], json!({ "parameter": "colour" }));
    let old = tenant.get("/events/ws").header("upgrade", "websocket").header("connection", "upgrade");
    old.header("sec-websocket-version", "8").header("sec-websocket-key", "x").await.refused(400, "invalid_request");
}

on_both_databases! {
    what_cannot_be_read_is_closed_with_4400_and_the_error_code,
    a_cursor_below_the_floor_is_closed_with_4400_and_none_begins_at_the_floor,
    who_may_not_read_is_closed_with_4401_4403_or_4404,
    a_fault_of_the_server_is_closed_with_1011,
    more_sockets_than_may_be_are_closed_with_1013,
    a_frame_over_4_kib_is_closed_with_1009_and_smaller_ones_are_ignored,
    a_client_that_breaks_the_protocol_is_closed_with_1002,
    browsers_give_their_key_as_a_subprotocol_that_is_not_sent_back,
    a_request_that_is_no_handshake_is_refused_over_http,
}
