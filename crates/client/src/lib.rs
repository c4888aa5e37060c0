//! The Rust SDK of Courant: a typed client of its HTTP API, and the loop that every consumer of the journal runs on.
//!
//! [`Client`] speaks the API; [`Follow`] reads a journal live; [`engine`] turns any source of pages and any sink that
//! keeps a position into a consumer that loses nothing. It must never move a position before its events are handled,
//! and never show a credential in a text or a `Debug`.
//!
//! ```no_run
//! # async fn run() -> Result<(), courant_client::ClientError> {
//! use courant_client::{Client, EventsQuery};
//!
//! let client = Client::builder("http://127.0.0.1:8080").api_key("cak_…").build()?;
//! let mut events = client.follow(EventsQuery { types: vec!["task.".into()], ..EventsQuery::default() });
//! loop {
//!     let event = events.next().await?;
//!     println!("{} {}", event.event_type, event.entity_id);
//! }
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod access;
mod approvals;
mod backoff;
mod deployments;
pub mod engine;
mod error;
mod follow;
mod http;
mod identity;
mod journal;
mod notify;
mod resources;
mod roles;
mod source;
#[cfg(test)]
mod tests;
mod work;

pub use courant_api as api;
pub use reqwest::Method;

pub use approvals::ApprovalsQuery;
pub use deployments::{DeploymentsQuery, StacksQuery};
pub use error::{ApiError, ClientError, TransportError};
pub use follow::Follow;
pub use http::{Client, ClientBuilder, ClientUrl, PageQuery};
pub use journal::EventsQuery;
pub use resources::{ArtifactsQuery, ResourcesQuery, SkillInvocationsQuery};
pub use source::JournalSource;
pub use work::TasksQuery;
