//! x
pub mod http;
pub mod ids;
pub mod outbound;
