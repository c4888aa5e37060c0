//! What every test starts from: a place where servers can run, and short ways to say the usual.

mod place;
mod process;

pub use courant_testkit::{Answer, Receiver, eventually};
pub use place::{Engine, Org, Place, WEBHOOK_SECRET};
pub use process::{Ended, Process};
pub use serde_json::{Value, json};

/// Makes a test of each case on each database.
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::support::Place::new(crate::support::Engine::Postgres).await).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::$case(crate::support::Place::new(crate::support::Engine::Sqlite).await).await;
            })+
        }
    };
}
pub(crate) use on_both_databases;
