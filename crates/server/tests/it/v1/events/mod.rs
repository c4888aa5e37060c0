//! `/events`: reading by filter and cursor, and appending.

mod append;
mod cursors;
mod filters;
mod unkeepable;
mod wait;
mod wake;
mod ws_follow;
mod ws_life;
mod ws_marks;
mod ws_outage;
mod ws_refused;
mod ws_silence;

use crate::support::{Reply, Value};

/// What the events of a page are about, in their order.
pub fn entities(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["entityId"].as_str().unwrap()).collect()
}

/// The items of a page.
pub fn items(reply: &Reply) -> Vec<Value> {
    let Value::Array(items) = reply.expect(200)["items"].take() else { panic!("no items: {}", reply.text()) };
    items
}
