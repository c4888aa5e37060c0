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
        let titled = CONNECTIONS.map(|connections| {
            let plural = if connections == 1 { "" } else { "s" };
            (connections, format!("order: {}, {connections} connection{plural}", order.name()))
        });
        let wanted = |title: &str| scale.wants(&format!("{} {title}", Engine::Postgres.name()));
        let wanted: Vec<_> = titled.into_iter().filter(|(_, title)| wanted(title)).collect();
        if !wanted.is_empty() {
            rows.extend(of(order, scale, wanted).await?);
        }
    }
    Ok(rows)
}

async fn of(order: Order, scale: &Scale, cells: Vec<(usize, String)>) -> Result<Vec<Row>> {
    // A table of its own for each side, so that both grow alike.
    let (here, there) = (order.place().await?, raw::tables(Engine::Postgres).await?);
    let mut rows = Vec::new();
    for (connections, title) in cells {
        let ordered = async || order.append(&here, connections, scale.until).await;
        let plain = async || raw_append(Engine::Postgres, &there, connections, 1, scale.until, false).await;
        let pairs = alternate(scale.rounds, ordered, plain).await?;
        rows.push(Row::of(Engine::Postgres.name(), title, "events", &pairs));
    }
    Ok(rows)
}
