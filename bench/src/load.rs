//! Closed loops: so many clients, each sending its next call when the last one is answered.

use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::task::JoinSet;

use crate::cpu;
use crate::rounds::{Cost, Measure};

/// One client that awaits its answers.
pub(crate) trait Client: Send + 'static {
    /// One call; how many units it did.
    fn call(&mut self) -> impl Future<Output = Result<u64>> + Send;
}

/// One client that blocks its thread.
pub(crate) trait Blocking: Send {
    /// One call; how many units it did.
    fn call(&mut self) -> Result<u64>;
}

/// When a loop ends, and so what it counts.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time and a fifth of it as warm-up before; counted are calls that end within it.
    Passed(Duration),
    /// After so many calls of each client; everything counts.
    Calls(usize),
    /// When a call finds nothing to do; everything counts.
    Empty,
}

/// What one client counted.
struct Tally {
    until: Until,
    start: Instant,
    units: u64,
    calls: Vec<Duration>,
    /// Units of the warm-up, too.
    all_units: u64,
}

impl Tally {
    fn new(until: Until, start: Instant) -> Self {
        Self { until, start, units: 0, calls: Vec::new(), all_units: 0 }
    }

    /// Counts a call; whether another one is to follow.
    fn count(&mut self, began: Instant, units: u64) -> bool {
        let ended = Instant::now();
        let (counts, goes_on) = match self.until {
            Until::Calls(calls) => (true, self.calls.len() + 1 < calls),
            Until::Empty => (units > 0, units > 0),
            Until::Passed(length) => {
                let since = ended - self.start;
                (since >= length / 5 && since <= length + length / 5, since < length + length / 5)
            }
        };
        self.all_units += units;
        if counts {
            self.units += units;
            self.calls.push(ended - began);
        }
        goes_on
    }
}

/// Lets the clients call at the same time, and gives them back.
pub(crate) async fn run<C: Client>(clients: Vec<C>, until: Until) -> Result<(Measure, Vec<C>)> {
    let (start, cpu) = (Instant::now(), cpu::spent());
    let mut tasks = JoinSet::new();
    for mut client in clients {
        tasks.spawn(async move {
            let mut tally = Tally::new(until, start);
            loop {
                let began = Instant::now();
                let units = client.call().await?;
                if !tally.count(began, units) {
                    return anyhow::Ok((tally, client));
                }
            }
        });
    }
    let (mut tallies, mut clients) = (Vec::new(), Vec::new());
    while let Some(ended) = tasks.join_next().await {
        let (tally, client) = ended.context("a client panicked")??;
        tallies.push(tally);
        clients.push(client);
    }
    Ok((measure(tallies, until, start, cpu), clients))
}

/// The same with a thread for each client.
pub(crate) fn run_threads<C: Blocking>(clients: &mut [C], until: Until) -> Result<Measure> {
    let (start, cpu) = (Instant::now(), cpu::spent());
    let work = |client: &mut C| {
        let mut tally = Tally::new(until, start);
        loop {
            let began = Instant::now();
            let units = client.call()?;
            if !tally.count(began, units) {
                return anyhow::Ok(tally);
            }
        }
    };
    let tallies: Result<Vec<Tally>> = thread::scope(|scope| {
        let running: Vec<_> = clients.iter_mut().map(|client| scope.spawn(|| work(client))).collect();
        running.into_iter().map(|t| t.join().map_err(|_| anyhow!("a client panicked"))?).collect()
    });
    Ok(measure(tallies?, until, start, cpu))
}

fn measure(tallies: Vec<Tally>, until: Until, start: Instant, cpu_before: Duration) -> Measure {
    let length = match until {
        Until::Passed(length) => length,
        Until::Calls(_) | Until::Empty => start.elapsed(),
    };
    let units: u64 = tallies.iter().map(|t| t.units).sum();
    let cost = Cost { cpu: cpu::spent().saturating_sub(cpu_before), units: tallies.iter().map(|t| t.all_units).sum() };
    let calls = tallies.into_iter().flat_map(|t| t.calls).collect();
    Measure::new(units, length, calls, cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Countdown(u64);

    impl Client for Countdown {
        async fn call(&mut self) -> Result<u64> {
            Blocking::call(self)
        }
    }

    impl Blocking for Countdown {
        fn call(&mut self) -> Result<u64> {
            self.0 = self.0.saturating_sub(1);
            Ok(self.0)
        }
    }

    #[tokio::test]
    async fn a_loop_until_empty_counts_every_unit() {
        let start = Instant::now();
        let (measure, clients) = run(vec![Countdown(4), Countdown(3)], Until::Empty).await.unwrap();
        assert!(measure.rate >= 9.0 / start.elapsed().as_secs_f64(), "3 + 2 + 1 and 2 + 1 units: {measure:?}");
        assert!(clients.iter().all(|c| c.0 == 0));
        let measure = run_threads(&mut [Countdown(4), Countdown(3)], Until::Empty).unwrap();
        assert!(measure.rate > 0.0);
    }

    #[test]
    fn a_loop_of_so_many_calls_makes_just_those() {
        let mut clients = [Countdown(10), Countdown(10)];
        run_threads(&mut clients, Until::Calls(4)).unwrap();
        assert!(clients.iter().all(|c| c.0 == 6));
    }

    #[test]
    fn warm_up_and_what_ends_late_are_not_counted() {
        let (start, length) = (Instant::now(), Duration::from_hours(1));
        let mut early = Tally::new(Until::Passed(length), start);
        assert!(early.count(start, 7), "the loop goes on");
        assert_eq!((early.units, early.calls.len()), (0, 0));
        let Some(before) = start.checked_sub(length / 2) else { return };
        let mut within = Tally::new(Until::Passed(length), before);
        assert!(within.count(before, 7));
        assert_eq!((within.units, within.calls.len()), (7, 1));
    }
}
