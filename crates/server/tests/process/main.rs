//! The built binary as operators meet it: started, killed, started again, beside another, and as a command.
//!
//! What a server leaves behind when it is killed is only shown by killing one, so these tests kill real processes.
//! Nothing here sleeps: a test waits for a request at a receiver, or for a state that it can ask for.

#![expect(clippy::unwrap_used, reason = "a test says what it met by panicking")]

mod commands;
mod deployments;
mod faults;
mod journal;
mod killed;
mod peers;
mod schemathesis;
mod secrets;
mod sockets;
mod start;
mod support;
