//! What every case starts from: a whole server on an empty database, tenants in it, and short ways to say the usual.

pub mod http;
mod journal;
pub mod socket;
pub mod tenant;
pub mod world;

pub use courant_testkit::{Answer, Arrival, Receiver, eventually};
pub use http::{Api, Reply};
pub use serde_json::{Value, json};
pub use socket::Socket;
pub use tenant::Tenant;
pub use world::{Engine, World};

/// Makes a test of each case on each database; `with` a function that gives the limits of sockets, under those.
macro_rules! on_both_databases {
    ($($case:ident),+ $(,)?) => { $crate::support::on_both_databases!(@as (run) $($case),+); };
    (with $limits:ident: $($case:ident),+ $(,)?) => {
        $crate::support::on_both_databases!(@as (run_with super::$limits()) $($case),+);
    };
    (@as $how:tt $($case:ident),+) => {
        mod postgres {
            $($crate::support::on_both_databases!(@case Postgres $how $case);)+
        }
        mod sqlite {
            $($crate::support::on_both_databases!(@case Sqlite $how $case);)+
        }
    };
    (@case $engine:ident ($run:ident $($limits:expr)?) $case:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            $crate::support::world::$run($crate::support::Engine::$engine, $($limits,)? super::$case).await;
        }
    };
}
pub(crate) use on_both_databases;

/// An id that nothing has.
pub fn no_such_id() -> String {
    courant_server::ids::new_id().to_string()
}
