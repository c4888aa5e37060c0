//! A database that hangs for a while costs its readers that while, and not the same once more.

use std::time::Duration;

use courant_store::{Options, Store};
use courant_testkit::{DrivenClock, TestDatabase};
use futures_util::FutureExt;

/// What a look that took long is charged for at most.
const CHARGED: Duration = Duration::from_millis(100);

#[tokio::test]
async fn a_look_that_took_long_does_not_keep_the_next_one_waiting_as_long() {
    let database = TestDatabase::postgres().await;
    let store = Store::open(&Options::server(database.url())).await.unwrap();
    store.ping().await.unwrap();
    let clock = DrivenClock::take();
    let mut slow = Box::pin(store.ping());
    assert!((&mut slow).now_or_never().is_none(), "it has begun");
    clock.pass(Duration::from_mins(1)).await;
    slow.await.unwrap();

    let mut next = Box::pin(store.ping());
    assert!((&mut next).now_or_never().is_none());
    clock.pass(CHARGED).await;
    // No more time passes, so a longer wait would never end; it is the database that answers when it likes.
    let (_done, ended) = std::sync::mpsc::channel::<()>();
    let patience = tokio::task::spawn_blocking(move || ended.recv_timeout(Duration::from_secs(20)));
    tokio::select! {
        done = next => done.unwrap(),
        _ = patience => panic!("it waits for time to pass"),
    }
    clock.release();
}
