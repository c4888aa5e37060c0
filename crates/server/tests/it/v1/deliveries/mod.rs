//! Deliveries from the event to the receiver, and what becomes of those that do not arrive.

mod announced;
mod arrive;
mod fail;
mod hold;
mod operate;
mod retry;
