//! The machinery from the outside: a small application, its router, and requests.

mod answers;
mod app;
mod bodies;
mod document;
mod refusals;
