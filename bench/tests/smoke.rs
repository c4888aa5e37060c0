//! Every bench runs to its end on both databases. No figure is looked at: this is no place to measure.

use courant_bench::{Bench, Machine, Scale, Table, run, text};

async fn smoke(bench: Bench, postgres: usize, sqlite: usize) {
    let table: Table = run(bench, &Scale::smoke()).await.expect("the bench runs to its end");
    assert_eq!(table.rows.len(), postgres + sqlite, "{}", text(&table));
    for row in &table.rows {
        assert!(row.ours.per_second > 0.0 && row.raw.per_second > 0.0, "{}", text(&table));
        assert!(row.ratio.min <= row.ratio.median && row.ratio.median <= row.ratio.max, "{}", text(&table));
    }
    for (database, rows) in [("PostgreSQL", postgres), ("SQLite", sqlite)] {
        assert_eq!(table.rows.iter().filter(|row| row.database == database).count(), rows, "{}", text(&table));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seam_is_measured_beside_the_drivers() {
    smoke(Bench::Seam, 8, 8).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_over_http_are_measured_beside_inserts() {
    smoke(Bench::Append, 4, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_measured_beside_a_plain_loop() {
    smoke(Bench::Deliver, 1, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_is_measured_beside_its_raw_limits() {
    smoke(Bench::Journal, 29, 7).await;
}

#[tokio::test]
async fn a_run_tells_what_it_was_made_with() {
    let machine = Machine::look().await.unwrap();
    assert!(machine.fdatasync_per_second > 0 && machine.memory_gib > 0);
    assert!(machine.rustc.starts_with("rustc ") && !machine.commit.is_empty() && !machine.postgres.is_empty());
}
