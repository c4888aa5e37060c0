//! The client against a server on a real socket that answers as it is told.

mod calls;
mod deployments;
mod reading;
mod server;
