//! A private PostgreSQL server for tests and benchmarks: own data directory, own port, gone when its owner is.
//!
//! Both the test kit and `cargo xtask` use it, so it depends on next to nothing and builds in seconds. It must never
//! touch a cluster it did not make, and never leave a server behind, however its owner ends.

mod account;
mod install;
mod process;
mod server;

pub use install::Installation;
pub use server::{Options, PrivatePostgres};

/// The environment variable that names a running server for tests, as a URL of its `postgres` database.
pub const URL_VARIABLE: &str = "COURANT_TEST_POSTGRES";
