//! The journal beside its raw limits: appending, what other orders would cost, how soon an event is readable and told of,
//! catching up, and filtered pages of a large journal.

mod catch_up;
mod filtered;
mod orders;
mod visible;
mod wake;

use anyhow::Result;

use crate::place::Engine;
use crate::report::Row;
use crate::{Scale, append, seam};

/// Events a transaction, on SQLite.
const UNITS: [u64; 2] = [1, 100];

pub(crate) async fn run(scale: &Scale) -> Result<Vec<Row>> {
    let mut rows = append::on(Engine::Postgres, scale).await?;
    rows.extend(orders::run(scale).await?);
    rows.extend(visible::run(scale).await?);
    rows.extend(wake::run(scale).await?);
    rows.extend(catch_up::run(Engine::Postgres, scale).await?);
    rows.extend(filtered::run(Engine::Postgres, scale).await?);
    for events in UNITS {
        let title = format!("append, {events} event{} a transaction", if events == 1 { "" } else { "s" });
        if scale.wants(&format!("{} {title}", Engine::Sqlite.name())) {
            rows.push(seam::append(Engine::Sqlite, scale, 1, events, title).await?);
        }
    }
    rows.extend(catch_up::run(Engine::Sqlite, scale).await?);
    rows.extend(filtered::run(Engine::Sqlite, scale).await?);
    Ok(rows)
}
