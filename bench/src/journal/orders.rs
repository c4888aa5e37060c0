//! What each way to order a journal asks of its writers, beside a plain insert: here "ours" is that order.

use anyhow::Result;

use crate::Scale;
use crate::place::Engine;
use crate::raw::{self, order::Order};
use crate::report::Row;
use crate::rounds::alternate;
use crate::seam::raw_append;

const CONNECTIONS: [usize; 3] = [1, 8, 32];

pub(super) async fn run(scale: &Scale) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for order in Order::ALL {
        for connections in CONNECTIONS {
            let plural = if connections == 1 { "" } else { "s" };
            let title = format!("order: {}, {connections} connection{plural}", order.name());
            if scale.wants(&format!("{} {title}", Engine::Postgres.name())) {
                rows.push(cell(order, scale, connections, title).await?);
            }
        }
    }
    Ok(rows)
}

async fn cell(order: Order, scale: &Scale, connections: usize, title: String) -> Result<Row> {
    let (here, there) = (order.place().await?, raw::tables(Engine::Postgres).await?);
    let ordered = async || order.append(&here, connections, scale.until).await;
    let plain = async || raw_append(Engine::Postgres, &there, connections, 1, scale.until, false).await;
    let pairs = alternate(scale.rounds, ordered, plain).await?;
    Ok(Row::of(Engine::Postgres.name(), title, "events", &pairs))
}
