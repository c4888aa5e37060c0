//! The order of the journal where it is hard: PostgreSQL, whose transactions commit in another order than they drew
//! their positions in, and whose crashes take positions back.
//!
//! Each test runs a reader of the obvious kind beside ours, and shows that it misses what ours does not.
//!
//! How each was seen to fail, by a build that was broken on purpose:
//!
//! | broken | what fails |
//! |---|---|
//! | the append takes no lock | `writers`, `locks::a_unit_between…`, `stuck`, `holders`, and `model` beside this folder |
//! | the horizon is the oldest open transaction of the snapshot | `writers` (its foreign transaction), `transactions` |
//! | a workspace is changed without its row's lock | `locks::changes_of_one_entity…` |
//! | the horizon waits for gaps to close | `stuck::a_writer_killed…` |
//! | a look's whole time is charged twice | `stalled` |
//! | no incarnation is opened for another database, or at an embedded start | `incarnations` |

mod crash;
mod holders;
mod incarnations;
mod locks;
mod stalled;
mod stuck;
mod transactions;
mod writers;
