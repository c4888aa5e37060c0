//! The server as its callers meet it: a whole server in this process, asked over HTTP, on both databases.
//!
//! Every case gets a server and a database of its own, and ends with a check of every event that it has left in the
//! journal. Nothing here sleeps: a case waits for a request at a receiver, or for a state that it can ask for.

#![expect(clippy::unwrap_used, reason = "a test says what it met by panicking")]

mod coverage;
mod exchange;
mod identity;
mod operation;
mod support;
mod told;
mod v1;
