//! What every case starts from: a whole server on an empty database, tenants in it, and short ways to say the usual.

pub mod http;
mod journal;
pub mod tenant;
pub mod world;

pub use courant_testkit::{Answer, Arrival, Receiver, eventually};
pub use http::{Api, Reply};
pub use serde_json::{Value, json};
pub use tenant::Tenant;
pub use world::{Engine, World};

/// Makes a test of each case on each database.
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::support::world::run(crate::support::Engine::Postgres, super::$case).await;
            })+
        }
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::support::world::run(crate::support::Engine::Sqlite, super::$case).await;
            })+
        }
    };
}
pub(crate) use on_both_databases;

/// An id that nothing has.
pub fn no_such_id() -> String {
    courant_server::ids::new_id().to_string()
}
