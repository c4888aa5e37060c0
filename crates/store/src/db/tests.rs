//! What a unit of work may and may not do, seen from inside the seam.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use courant_api::Timestamp;
use courant_testkit::TestDatabase;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{Db, Statement, params};
use crate::{Error, Options};

static ADD: Statement =
    Statement::new("seam.ADD", "INSERT INTO server (id, started_at, heartbeat_at) VALUES ($1, $2, $2)");
static RAISE: Statement =
    Statement::new("seam.RAISE", "UPDATE server SET heartbeat_at = heartbeat_at + $2 WHERE id = $1");
static BEAT: Statement = Statement::new("seam.BEAT", "SELECT heartbeat_at FROM server WHERE id = $1");
static BROKEN: Statement = Statement::new("seam.BROKEN", "SELECT id FROM server {no such marker}");

async fn databases() -> Vec<(Db, TestDatabase)> {
    let mut all = Vec::new();
    for database in [TestDatabase::postgres().await, TestDatabase::sqlite()] {
        all.push((Db::open(&Options::server(database.url())).await.unwrap(), database));
    }
    all
}

async fn add(db: &Db, id: Uuid) {
    let added = db.write(id, |tx, id| Box::pin(async move { tx.execute(&ADD, params![*id, 0_i64]).await }));
    assert_eq!(added.await.unwrap().value, 1);
}

async fn beat(db: &Db, id: Uuid) -> Result<Option<Timestamp>, Error> {
    let read = db.read(id, |tx, id| {
        Box::pin(async move { tx.query_opt(&BEAT, params![*id]).await?.map(|row| row.get(0)).transpose() })
    });
    read.await
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite_a_unit_that_waits_for_something_else_is_rolled_back_and_reported() {
    let database = TestDatabase::sqlite();
    let db = Db::open(&Options::server(database.url())).await.unwrap();
    let (lost, kept) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let waits = db.write(lost, |tx, id| {
        Box::pin(async move {
            tx.execute(&ADD, params![*id, 0_i64]).await?;
            tokio::task::yield_now().await;
            Ok(())
        })
    });
    assert!(matches!(waits.await, Err(Error::Panicked(_))));
    add(&db, kept).await;
    assert_eq!(beat(&db, lost).await.unwrap(), None);
    assert!(beat(&db, kept).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_fails_or_panics_after_a_write_leaves_nothing_on_its_connection() {
    for (db, _database) in databases().await {
        let lost = Uuid::from_u128(1);
        for _ in 0..40 {
            let fails = db.write(lost, |tx, id| {
                Box::pin(async move {
                    tx.execute(&ADD, params![*id, 0_i64]).await?;
                    Err::<(), _>(Error::NotFound("thing"))
                })
            });
            assert!(matches!(fails.await, Err(Error::NotFound(_))));
            let panics = db.write(lost, |tx, id| {
                Box::pin(async move {
                    tx.execute(&ADD, params![*id, 0_i64]).await?;
                    assert!(id.is_nil(), "a unit that panics on purpose");
                    Ok(())
                })
            });
            assert!(matches!(panics.await, Err(Error::Panicked(_))));
        }
        assert_eq!(beat(&db, lost).await.unwrap(), None);
        add(&db, lost).await;
        let twice = db.write(lost, |tx, id| Box::pin(async move { tx.execute(&ADD, params![*id, 0_i64]).await }));
        assert!(matches!(twice.await, Err(Error::NotUnique(_))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_the_database_refuses_is_an_error_and_the_next_one_is_not() {
    for (db, _database) in databases().await {
        let refused = db.read((), |tx, ()| Box::pin(async move { tx.query(&BROKEN, params![]).await.map(|_| ()) }));
        assert!(matches!(refused.await, Err(Error::Database(_))));
        let prepared = db.prepare(&BROKEN).await;
        assert!(matches!(&prepared, Err(Error::Corrupt(why)) if why.contains("seam.BROKEN")), "{prepared:?}");
        assert_eq!(beat(&db, Uuid::from_u128(1)).await.unwrap(), None);
    }
}

/// Two units that lock two rows crosswise: PostgreSQL ends one of them, and the seam runs it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_met_a_deadlock_runs_again() {
    let database = TestDatabase::postgres().await;
    let db = Db::open(&Options::server(database.url())).await.unwrap();
    let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
    add(&db, one).await;
    add(&db, two).await;
    let (both_hold_one, runs) = (Arc::new(Barrier::new(2)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = JoinSet::new();
    for order in [[one, two], [two, one]] {
        let (db, both, runs) = (db.clone(), Arc::clone(&both_hold_one), Arc::clone(&runs));
        tasks.spawn(async move {
            let unit = db.write((order, both, runs), |tx, (order, both, runs)| {
                Box::pin(async move {
                    tx.execute(&RAISE, params![order[0], 1_i64]).await?;
                    if runs.fetch_add(1, Ordering::SeqCst) < 2 {
                        both.wait().await;
                    }
                    tx.execute(&RAISE, params![order[1], 1_i64]).await
                })
            });
            unit.await.unwrap();
        });
    }
    tasks.join_all().await;
    assert!(runs.load(Ordering::SeqCst) > 2, "nobody met a deadlock");
    for id in [one, two] {
        assert_eq!(beat(&db, id).await.unwrap(), Some(Timestamp::from_micros(2)), "each unit counts once");
    }
}
