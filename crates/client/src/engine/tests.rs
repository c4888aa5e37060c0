//! The engine over a journal and a sink in memory, in virtual time: every pause below is exact and none is waited for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::*;

const HOUR: Duration = Duration::from_hours(1);
const SECOND: Duration = Duration::from_secs(1);

/// A journal of numbers: the item at position `n` is `n`, counted from 1; only even positions match the filter if one
/// is set. What is scripted happens at the next reads, in order.
#[derive(Default)]
struct Journal {
    head: u64,
    even_only: bool,
    script: VecDeque<Read>,
    reads: Vec<(Instant, Option<u64>)>,
    wake: watch::Sender<u64>,
}

enum Read {
    Fails,
    FailsFor(Duration),
    Refuses,
    /// Another item is appended and announced after the page was taken and before it is handed out.
    IsOvertaken,
    /// Claims that there is more and gives nothing.
    Stalls,
}

#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Journal>>);

impl Scripted {
    fn of(head: u64) -> Self {
        let journal = Self::default();
        journal.lock().head = head;
        journal
    }

    fn script(self, reads: impl IntoIterator<Item = Read>) -> Self {
        self.lock().script.extend(reads);
        self
    }

    fn lock(&self) -> MutexGuard<'_, Journal> {
        self.0.lock().unwrap()
    }

    fn append(&self) {
        self.lock().head += 1;
    }

    fn wake(&self) -> watch::Receiver<u64> {
        self.lock().wake.subscribe()
    }

    fn read_times(&self) -> Vec<Instant> {
        self.lock().reads.iter().map(|(at, _)| *at).collect()
    }
}

impl Source for Scripted {
    type Item = u64;
    type Position = u64;

    async fn read(&self, after: Option<&u64>, limit: u32) -> Result<Batch<u64, u64>, SourceError> {
        let mut journal = self.lock();
        journal.reads.push((Instant::now(), after.copied()));
        let from = after.copied().unwrap_or(0);
        let scripted = journal.script.pop_front();
        match scripted {
            Some(Read::Fails) => return Err(SourceError::failed("no connection")),
            Some(Read::FailsFor(pause)) => {
                return Err(SourceError::Failed { cause: "too many requests".into(), retry_after: Some(pause) });
            }
            Some(Read::Refuses) => return Err(SourceError::refused("no such workspace")),
            Some(Read::Stalls) => {
                return Ok(Batch { items: vec![], next: from, has_more: true });
            }
            Some(Read::IsOvertaken) | None => {}
        }
        let end = journal.head.min(from + u64::from(limit));
        let items = (from + 1..=end).filter(|n| !journal.even_only || n % 2 == 0).collect();
        let batch = Batch { items, next: end, has_more: end < journal.head };
        if matches!(scripted, Some(Read::IsOvertaken)) {
            journal.head += 1;
            journal.wake.send_modify(|n| *n += 1);
        }
        Ok(batch)
    }

    async fn latest(&self) -> Result<u64, SourceError> {
        Ok(self.lock().head)
    }
}

/// What the sinks of one name share: position and handled items, changed together.
#[derive(Default)]
struct Stored {
    position: Option<u64>,
    handled: Vec<u64>,
    applied: Vec<(Option<u64>, usize, u64)>,
    script: VecDeque<Apply>,
}

enum Apply {
    Fails,
    /// It is handled, but the answer is lost.
    FailsAfterwards,
    /// Another consumer of this name handles the first so many items before this one comes.
    IsOvertaken(u64),
    /// Another consumer of this name holds the position for now.
    IsHeld,
}

#[derive(Clone)]
struct Ledger {
    stored: Arc<Mutex<Stored>>,
    /// Announces that an apply has begun.
    entered: watch::Sender<u64>,
    /// An apply waits for a permit.
    gate: Arc<Semaphore>,
}

impl Default for Ledger {
    fn default() -> Self {
        let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        Self { stored: Arc::default(), entered: watch::Sender::default(), gate }
    }
}

impl Ledger {
    fn script(self, applies: impl IntoIterator<Item = Apply>) -> Self {
        self.lock().script.extend(applies);
        self
    }

    fn gated() -> Self {
        Self { gate: Arc::new(Semaphore::new(0)), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap()
    }

    fn handled(&self) -> Vec<u64> {
        self.lock().handled.clone()
    }
}

impl Sink<u64, u64> for Ledger {
    type Error = Cause;

    async fn load(&mut self) -> Result<Option<u64>, Cause> {
        Ok(self.lock().position)
    }

    async fn apply(&mut self, from: Option<&u64>, batch: Batch<u64, u64>) -> Result<Applied, Cause> {
        self.entered.send_modify(|n| *n += 1);
        self.gate.acquire().await?.forget();
        let mut stored = self.lock();
        let scripted = stored.script.pop_front();
        match scripted {
            Some(Apply::Fails) => return Err("disk full".into()),
            Some(Apply::IsHeld) => return Ok(Applied::Stale),
            Some(Apply::IsOvertaken(count)) => {
                let start = stored.position.unwrap_or(0);
                stored.handled.extend(start + 1..=start + count);
                stored.position = Some(start + count);
            }
            Some(Apply::FailsAfterwards) | None => {}
        }
        if stored.position.as_ref() != from {
            return Ok(Applied::Stale);
        }
        stored.applied.push((from.copied(), batch.items.len(), batch.next));
        stored.handled.extend(batch.items);
        stored.position = Some(batch.next);
        if matches!(scripted, Some(Apply::FailsAfterwards)) {
            Err("connection lost".into())
        } else {
            Ok(Applied::Moved)
        }
    }
}

fn options() -> Options {
    Options { page_size: 10, poll_interval: HOUR, retry_initial: SECOND, retry_max: 8 * SECOND, ..Options::default() }
}

/// Runs an engine until its progress satisfies `until`, then stops it.
async fn run_until(source: &Scripted, sink: &Ledger, options: Options, until: impl Fn(&Progress) -> bool) -> Progress {
    let mut engine = Engine::new(source.clone(), sink.clone(), options);
    let (mut progress, stop, wake) = (engine.progress(), CancellationToken::new(), source.wake());
    let watch = async {
        let seen = progress.wait_for(until).await.unwrap().clone();
        stop.cancel();
        seen
    };
    let (ran, seen) = timeout(100 * HOUR, async { tokio::join!(engine.run(wake, stop.clone()), watch) }).await.unwrap();
    ran.unwrap();
    seen
}

fn all(range: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    range.collect()
}

#[tokio::test(start_paused = true)]
async fn pages_are_read_on_without_a_pause_and_in_order() {
    let (source, sink) = (Scripted::of(95), Ledger::default());
    let begin = Instant::now();
    let seen = run_until(&source, &sink, options(), |p| p.caught_up).await;
    assert_eq!(sink.handled(), all(1..=95));
    assert_eq!(source.lock().reads.len(), 10);
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert_eq!((seen.handled, seen.position.as_deref(), seen.last_success), (95, Some("95"), Some(begin)));
}

#[tokio::test(start_paused = true)]
async fn a_stored_position_is_gone_on_from() {
    let (source, sink) = (Scripted::of(9), Ledger::default());
    sink.lock().position = Some(6);
    run_until(&source, &sink, options(), |p| p.caught_up).await;
    assert_eq!(sink.handled(), [7, 8, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_page_without_items_moves_the_position_and_one_without_a_move_is_not_applied() {
    let (source, sink) = (Scripted::of(1), Ledger::default());
    source.lock().even_only = true;
    let mut engine = Engine::new(source.clone(), sink.clone(), options());
    assert_eq!(engine.drain().await.unwrap(), 0);
    assert_eq!(engine.drain().await.unwrap(), 0);
    assert_eq!(source.lock().reads.len(), 2);
    assert_eq!(sink.lock().applied, [(None, 0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn latest_stores_its_position_at_once_and_then_misses_nothing() {
    let (source, sink) = (Scripted::of(5), Ledger::default());
    let latest = || Options { start: Start::Latest, ..options() };
    assert_eq!(Engine::new(source.clone(), sink.clone(), latest()).drain().await.unwrap(), 0);
    assert_eq!(sink.lock().position, Some(5));
    source.append();
    assert_eq!(Engine::new(source.clone(), sink.clone(), latest()).drain().await.unwrap(), 1);
    assert_eq!(sink.handled(), [6]);
}

#[tokio::test(start_paused = true)]
async fn latest_on_an_empty_journal_begins_with_the_first_item() {
    let (source, sink) = (Scripted::of(0), Ledger::default());
    let mut engine = Engine::new(source.clone(), sink.clone(), Options { start: Start::Latest, ..options() });
    engine.drain().await.unwrap();
    assert_eq!(sink.lock().position, Some(0));
    source.append();
    assert_eq!(engine.drain().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stale_page_is_given_up_and_read_again_from_where_the_position_stands() {
    let source = Scripted::of(25);
    let sink = Ledger::default().script([Apply::IsOvertaken(4)]);
    let begin = Instant::now();
    let seen = run_until(&source, &sink, options(), |p| p.caught_up).await;
    assert_eq!(sink.handled(), all(1..=25));
    assert_eq!(
        source.lock().reads.iter().map(|(_, after)| *after).collect::<Vec<_>>(),
        [None, Some(4), Some(14), Some(24)]
    );
    assert_eq!((seen.stale, seen.handled, begin.elapsed()), (1, 21, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_position_that_is_held_elsewhere_is_asked_for_again_after_a_pause() {
    let source = Scripted::of(3);
    let sink = Ledger::default().script([Apply::IsHeld, Apply::IsHeld]);
    let seen = run_until(&source, &sink, options(), |p| p.caught_up).await;
    assert_eq!(sink.handled(), [1, 2, 3]);
    assert_doubling(&source.read_times(), &[1, 2]);
    assert_eq!((seen.stale, seen.failures, seen.last_error), (2, 0, None));
}

/// Pauses between reads: each between half and all of its ceiling in seconds, give or take the timer's millisecond.
fn assert_doubling(times: &[Instant], ceilings: &[u64]) {
    assert_eq!(times.len(), ceilings.len() + 1, "{times:?}");
    for (pair, ceiling) in times.windows(2).zip(ceilings) {
        let (pause, ceiling) = (pair[1] - pair[0], Duration::from_secs(*ceiling));
        assert!(pause >= ceiling / 2 && pause <= ceiling + Duration::from_millis(2), "{pause:?} against {ceiling:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_source_is_asked_with_doubling_pauses_that_fall_back_on_success() {
    let source = Scripted::of(3).script((0..6).map(|_| Read::Fails));
    let sink = Ledger::default();
    let mut engine = Engine::new(source.clone(), sink.clone(), options());
    let (stop, mut progress, wake) = (CancellationToken::new(), engine.progress(), source.wake());
    let story = async {
        let failing = progress.wait_for(|p| p.failures == 6).await.unwrap().clone();
        assert_eq!(failing.last_error.as_deref(), Some("no connection"));
        let well = progress.wait_for(|p| p.caught_up).await.unwrap().clone();
        assert_eq!((well.failures, well.last_error), (0, None));
        assert_doubling(&source.read_times(), &[1, 2, 4, 8, 8, 8]);

        source.lock().reads.clear();
        source.lock().script.push_back(Read::Fails);
        source.append();
        source.lock().wake.send_modify(|n| *n += 1);
        progress.wait_for(|p| p.handled == 4).await.unwrap();
        assert_doubling(&source.read_times(), &[1]);
        stop.cancel();
    };
    let (ran, ()) = tokio::join!(engine.run(wake, stop.clone()), story);
    ran.unwrap();
    assert_eq!(sink.handled(), all(1..=4));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_the_source_asks_for_is_kept() {
    let source = Scripted::of(1).script([Read::FailsFor(90 * SECOND)]);
    let begin = Instant::now();
    run_until(&source, &Ledger::default(), options(), |p| p.handled == 1).await;
    assert!(begin.elapsed() >= 90 * SECOND && begin.elapsed() < 91 * SECOND, "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_failed_page_is_read_again_from_the_stored_position() {
    let source = Scripted::of(25);
    let sink = Ledger::default().script([Apply::Fails, Apply::Fails, Apply::FailsAfterwards]);
    let seen = run_until(&source, &sink, options(), |p| p.caught_up).await;
    assert_eq!(sink.handled(), all(1..=25), "nothing lost, nothing twice");
    assert_eq!(seen.position.as_deref(), Some("25"));
    let read_from: Vec<_> = source.lock().reads.iter().map(|(_, after)| *after).collect();
    assert_eq!(read_from, [None, None, None, Some(10), Some(20)]);
}

#[tokio::test(start_paused = true)]
async fn a_wake_during_a_read_is_not_lost() {
    let source = Scripted::of(3).script([Read::IsOvertaken]);
    let sink = Ledger::default();
    let begin = Instant::now();
    run_until(&source, &sink, options(), |p| p.handled == 4).await;
    assert_eq!(begin.elapsed(), Duration::ZERO, "without the wake the poll interval of an hour would have passed");
}

#[tokio::test(start_paused = true)]
async fn without_a_wake_the_poll_interval_finds_what_is_new() {
    let (source, sink) = (Scripted::of(1), Ledger::default());
    let mut engine = Engine::new(source.clone(), sink.clone(), options());
    let (stop, mut progress) = (CancellationToken::new(), engine.progress());
    // Its sender is gone: that must neither end the engine nor have it spin.
    let wake = watch::channel(()).1;
    let begin = Instant::now();
    let story = async {
        progress.wait_for(|p| p.handled == 1).await.unwrap();
        source.append();
        progress.wait_for(|p| p.handled == 2).await.unwrap();
        stop.cancel();
    };
    let (ran, ()) = tokio::join!(engine.run(wake, stop.clone()), story);
    ran.unwrap();
    assert_eq!(source.lock().reads.len(), 2);
    assert!(begin.elapsed() >= HOUR);
}

#[tokio::test(start_paused = true)]
async fn a_stop_finishes_the_page_in_hand_and_reads_no_other() {
    let (source, sink) = (Scripted::of(25), Ledger::gated());
    let mut engine = Engine::new(source.clone(), sink.clone(), options());
    let (stop, wake, mut entered) = (CancellationToken::new(), source.wake(), sink.entered.subscribe());
    let story = async {
        entered.wait_for(|n| *n == 1).await.unwrap();
        stop.cancel();
        tokio::time::advance(HOUR).await;
        assert!(sink.handled().is_empty());
        sink.gate.add_permits(1);
    };
    let (ran, ()) = tokio::join!(engine.run(wake, stop.clone()), story);
    ran.unwrap();
    assert_eq!((sink.handled(), sink.lock().position), (all(1..=10), Some(10)));
    assert_eq!(source.lock().reads.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_wait_and_a_pause_at_once() {
    let waiting = Scripted::of(1);
    let pausing = Scripted::of(1).script([Read::FailsFor(HOUR)]);
    let begin = Instant::now();
    run_until(&waiting, &Ledger::default(), options(), |p| p.caught_up).await;
    run_until(&pausing, &Ledger::default(), options(), |p| p.failures == 1).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_engine_dropped_while_applying_goes_on_from_the_stored_position() {
    let (source, sink) = (Scripted::of(25), Ledger::gated());
    let mut engine = Engine::new(source.clone(), sink.clone(), options());
    let mut entered = sink.entered.subscribe();
    tokio::select! {
        _ = engine.run(source.wake(), CancellationToken::new()) => panic!("nothing ended it"),
        seen = entered.wait_for(|n| *n == 1) => { seen.unwrap(); }
    }
    // As if the sink's transaction had been committed after all.
    sink.lock().handled.extend(1..=10);
    sink.lock().position = Some(10);
    sink.gate.add_permits(100);
    assert_eq!(engine.drain().await.unwrap(), 15);
    assert_eq!(sink.handled(), all(1..=25));
    assert_eq!(sink.lock().applied.first(), Some(&(Some(10), 10, 20)));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_ends_the_engine_with_the_error() {
    let source = Scripted::of(3).script([Read::Refuses]);
    let mut engine = Engine::new(source.clone(), Ledger::default(), options());
    let refused = engine.run(source.wake(), CancellationToken::new()).await.unwrap_err();
    assert_eq!(refused.to_string(), "no such workspace");
    let seen = engine.progress().borrow().clone();
    assert_eq!((seen.refused, seen.last_error.as_deref()), (true, Some("no such workspace")));
    assert_eq!(source.lock().reads.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_promises_more_and_does_not_move_is_waited_for() {
    let source = Scripted::of(2).script([Read::Stalls]);
    let sink = Ledger::default();
    sink.lock().position = Some(0);
    let begin = Instant::now();
    run_until(&source, &sink, options(), |p| p.handled == 2).await;
    assert!(begin.elapsed() >= HOUR);
}

#[tokio::test(start_paused = true)]
async fn drain_counts_what_it_handled_and_hands_out_the_first_failure() {
    let source = Scripted::of(25);
    let sink = Ledger::default().script([Apply::Fails]);
    let mut engine = Engine::new(source.clone(), sink.clone(), options());
    assert!(matches!(engine.drain().await, Err(DrainError::Sink(cause)) if cause.to_string() == "disk full"));
    assert_eq!(engine.drain().await.unwrap(), 25);
    assert_eq!(engine.drain().await.unwrap(), 0);
    source.lock().script.push_back(Read::Refuses);
    assert!(matches!(engine.drain().await, Err(DrainError::Source(SourceError::Refused(_)))));
}

#[tokio::test(start_paused = true)]
async fn two_engines_of_one_name_handle_everything_once() {
    let (source, sink) = (Scripted::of(1_000), Ledger::default());
    let mut first = Engine::new(source.clone(), sink.clone(), options());
    let mut second = Engine::new(source.clone(), sink.clone(), Options { page_size: 7, ..options() });
    let (a, b) = tokio::join!(first.drain(), second.drain());
    assert_eq!(a.unwrap() + b.unwrap(), 1_000);
    assert_eq!(sink.handled(), all(1..=1_000));
}

#[test]
fn a_running_engine_can_be_a_task_of_its_own() {
    fn is_send<T: Send>(_: &T) {}
    let mut engine = Engine::new(Scripted::of(0), Ledger::default(), options());
    is_send(&engine.run(watch::channel(0_u64).1, CancellationToken::new()));
}
