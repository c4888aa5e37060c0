//! Deliveries from the event to the receiver, and what becomes of those that do not arrive.

mod arrive;
mod fail;
mod hold;
mod retry;
