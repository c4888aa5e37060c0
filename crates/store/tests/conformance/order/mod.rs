//! The order of the journal where it is hard: PostgreSQL, whose transactions commit in another order than they drew
//! their positions in, and whose crashes take positions back.
//!
//! Each test runs a reader of the obvious kind beside ours, and shows that it misses what ours does not.

mod crash;
mod holders;
mod incarnations;
mod locks;
mod stuck;
mod transactions;
mod writers;
