//! The client against a server on a real socket that answers as it is told.

mod calls;
mod reading;
mod server;
