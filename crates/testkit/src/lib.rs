//! Test support: what a test needs around the thing it tests, and nothing that stands in for it.
//!
//! Only tests depend on this crate; nothing in it may be reachable from the shipped binary.

pub mod backends;
pub mod database;
mod driven;
mod eventually;
pub mod issuer;
pub mod policy;
pub mod postgres;
pub mod proxy;
pub mod receiver;
pub mod slack;
pub mod wire;

pub use backends::{Backends, Which};
pub use database::TestDatabase;
pub use driven::DrivenClock;
pub use eventually::{PATIENCE, eventually};
pub use issuer::{Issuer, Published, SigningKey};
pub use policy::{PolicyService, Verdict};
pub use proxy::{Fault, Proxy};
pub use receiver::{Answer, Arrival, Receiver};
