//! HTTP: from a list of endpoints to a router and its documentation.
//!
//! A route is one [`Endpoint`]: path, handler, access and documentation in one value. The router, the OpenAPI
//! document and the tests of authorisation are all made from the same list, so none of them can drift. Every request
//! takes the same steps: request id, credential, path, query, body, idempotency key, handler, answer.
//!
//! It must never hold a rule of the product: a handler turns input into one call of `ops` and its result into a
//! [`Reply`], nothing more.

mod body;
mod client;
mod endpoint;
mod error;
mod exchange;
mod front;
mod header;
pub mod listen;
mod observe;
pub mod openapi;
mod path;
mod query;
pub mod reference;
mod reply;
mod request_id;
mod router;
mod shape;
pub mod socket;
#[cfg(test)]
mod tests;
mod throttle;
pub mod v1;

pub use body::DEFAULT_BODY_LIMIT;
pub use client::{Peer, neighbourhood};
pub use endpoint::{Access, Endpoint};
pub use error::ApiError;
pub use exchange::{Authenticate, Cx, Entry, Gate, Handler, IdempotencyRequest, Input, Open, Signed};
pub use front::Front;
pub use reply::Reply;
pub use request_id::RequestMeta;
pub use router::router;
pub use throttle::Throttle;
