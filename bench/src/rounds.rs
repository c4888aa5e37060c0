//! Rounds: ours and the baseline in turn, so that whatever else the machine does meets both.

use std::time::Duration;

use anyhow::Result;

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// Units a second.
    pub rate: f64,
    /// Latency of one call, half of them and all but one in a hundred.
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Processor time of this process and its PostgreSQL for a thousand units, clients included.
    pub cpu_ms: f64,
}

/// Processor time, and all units that were done in it, those of the warm-up included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub cpu: Duration,
    pub units: u64,
}

impl Measure {
    /// So many units in this time, with the latencies of the calls that did them and what a thousand units cost.
    #[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
    pub(crate) fn new(units: u64, time: Duration, calls: Vec<Duration>, cost: Cost) -> Self {
        let cpu_ms = cost.cpu.as_secs_f64() * 1_000_000.0 / cost.units as f64;
        let measure = Self { rate: units as f64 / time.as_secs_f64(), p50_ms: f64::NAN, p99_ms: f64::NAN, cpu_ms };
        measure.with_times(calls)
    }

    /// The same with other times in place of the calls'.
    pub(crate) fn with_times(self, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let place = times.len() * percent / 100;
            times.get(place).map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
        };
        Self { p50_ms: at(50), p99_ms: at(99), ..self }
    }
}

/// The measurements of all rounds, in pairs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    pub ours: Vec<Measure>,
    pub raw: Vec<Measure>,
}

/// Measures both sides once a round; who goes first changes from round to round.
pub(crate) async fn alternate(
    rounds: usize,
    mut ours: impl AsyncFnMut() -> Result<Measure>,
    mut raw: impl AsyncFnMut() -> Result<Measure>,
) -> Result<Pairs> {
    let mut pairs = Pairs::default();
    for round in 0..rounds {
        if round % 2 == 0 {
            pairs.ours.push(ours().await?);
            pairs.raw.push(raw().await?);
        } else {
            pairs.raw.push(raw().await?);
            pairs.ours.push(ours().await?);
        }
    }
    Ok(pairs)
}

/// The middle one of these values; of an even number, the upper middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const NOTHING: Measure = Measure { rate: 1.0, p50_ms: 0.0, p99_ms: 0.0, cpu_ms: 0.0 };

    #[tokio::test]
    async fn sides_alternate_and_change_who_goes_first() {
        let order = RefCell::new(String::new());
        let side = async |name| {
            order.borrow_mut().push(name);
            Ok(NOTHING)
        };
        let pairs = alternate(3, async || side('o').await, async || side('r').await).await.unwrap();
        assert_eq!(order.into_inner(), "orroor");
        assert_eq!((pairs.ours.len(), pairs.raw.len()), (3, 3));
    }

    #[test]
    fn the_median_is_the_middle_value() {
        assert!((median(vec![9.0, 1.0, 5.0]) - 5.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).is_nan());
    }
}
