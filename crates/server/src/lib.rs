//! The server: routes, background work and commands around the store.
//!
//! `ops` holds the use cases; `http`, `work` and `cli` call them and have no rules of their own.

pub mod app;
mod attempt;
mod cache;
pub mod cli;
pub mod clock;
pub mod config;
pub mod decision;
pub mod demo;
pub mod export;
pub mod http;
pub mod identity;
pub mod ids;
pub mod live;
pub mod logging;
pub mod metrics;
pub mod ops;
pub mod outbound;
pub mod secrets;
pub mod serve;
pub mod work;
