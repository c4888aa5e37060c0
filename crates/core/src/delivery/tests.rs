use proptest::prelude::*;

use super::*;

fn failure() -> Failure {
    Failure::new(FailureClass::Transient, "HTTP 503")
}

fn retry(after: Option<Duration>) -> Verdict {
    Verdict::Retry { after, error: failure() }
}

fn delay(policy: &RetryPolicy, attempt: i64, after: Option<Duration>, chance: f64) -> Duration {
    match after_attempt(policy, attempt, retry(after), chance) {
        Transition::Retry { delay, .. } => delay,
        other => panic!("attempt {attempt}: {other:?}"),
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn the_schedule_doubles_from_five_seconds_to_an_hour() {
    let policy = RetryPolicy { max_attempts: 20, ..RetryPolicy::default() };
    let seconds: Vec<u64> = (1..=12).map(|attempt| delay(&policy, attempt, None, 1.0).as_secs()).collect();
    assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]);
}

#[test]
fn chance_spreads_the_delay_from_nothing_to_the_whole() {
    let policy = RetryPolicy::default();
    assert_eq!(delay(&policy, 2, None, 0.0), Duration::ZERO);
    assert_eq!(delay(&policy, 2, None, 0.5), 5 * SECOND);
    assert_eq!(delay(&policy, 2, None, 1.0), 10 * SECOND);
}

#[test]
fn chance_out_of_range_is_brought_into_it() {
    let policy = RetryPolicy::default();
    assert_eq!(delay(&policy, 1, None, -3.0), Duration::ZERO);
    assert_eq!(delay(&policy, 1, None, 3.0), 5 * SECOND);
    assert_eq!(delay(&policy, 1, None, f64::NAN), 5 * SECOND);
    assert_eq!(delay(&policy, 1, None, f64::INFINITY), 5 * SECOND);
}

#[test]
fn retry_after_wins_over_the_schedule() {
    assert_eq!(delay(&RetryPolicy::default(), 1, Some(60 * SECOND), 1.0), 60 * SECOND);
}

#[test]
fn retry_after_never_shortens_the_schedule() {
    assert_eq!(delay(&RetryPolicy::default(), 3, Some(SECOND), 1.0), 20 * SECOND);
}

#[test]
fn retry_after_waits_no_longer_than_the_cap() {
    assert_eq!(delay(&RetryPolicy::default(), 1, Some(Duration::MAX), 0.0), 3600 * SECOND);
}

#[test]
fn the_eighth_failure_is_the_last() {
    let policy = RetryPolicy::default();
    assert!(
        matches!(after_attempt(&policy, 7, retry(None), 0.0), Transition::Retry { error, .. } if error == failure())
    );
    assert_eq!(
        after_attempt(&policy, 8, retry(Some(SECOND)), 0.0),
        Transition::Dead { error: failure(), disable_integration: false }
    );
}

#[test]
fn a_success_on_the_last_attempt_is_a_success() {
    assert_eq!(after_attempt(&RetryPolicy::default(), 8, Verdict::Sent, 0.0), Transition::Sent);
}

#[test]
fn a_permanent_failure_is_dead_at_once() {
    assert_eq!(
        after_attempt(&RetryPolicy::default(), 1, Verdict::Permanent { error: failure() }, 0.0),
        Transition::Dead { error: failure(), disable_integration: false }
    );
}

#[test]
fn a_target_that_is_gone_takes_its_integration_with_it() {
    assert_eq!(
        after_attempt(&RetryPolicy::default(), 1, Verdict::DisableIntegration { error: failure() }, 0.0),
        Transition::Dead { error: failure(), disable_integration: true }
    );
}

#[test]
fn a_lost_attempt_is_repeated_while_the_budget_lasts() {
    let policy = RetryPolicy::default();
    assert_eq!(recover(&policy, 7), Recovery::Pending);
    for attempt in [8, 9, i64::MAX] {
        assert!(matches!(recover(&policy, attempt), Recovery::Dead(Failure { class: FailureClass::Transient, .. })));
    }
}

#[test]
fn only_the_dead_are_requeued() {
    for status in DeliveryStatus::ALL {
        assert_eq!(requeue(status) == RetryOutcome::Requeued, status == DeliveryStatus::Dead, "{status:?}");
    }
}

#[test]
fn a_failure_text_is_one_bounded_line() {
    let failure = Failure::new(FailureClass::Payload, format!("a\r\nb\0c\u{85}d\u{7f}{}", "é".repeat(600)));
    assert!(failure.text.starts_with("a  b c d é"), "{}", failure.text);
    assert_eq!(failure.text.chars().count(), 500);
}

fn policies() -> impl Strategy<Value = RetryPolicy> {
    let durations =
        || prop_oneof![Just(Duration::ZERO), Just(Duration::MAX), any::<u64>().prop_map(Duration::from_nanos)];
    (any::<u32>(), durations(), durations()).prop_map(|(max_attempts, base, cap)| RetryPolicy {
        max_attempts,
        base,
        cap,
    })
}

proptest! {
    #[test]
    fn every_retry_lies_within_the_cap_and_the_budget(
        policy in policies(),
        attempt in any::<i64>(),
        after in proptest::option::of(any::<u64>().prop_map(Duration::from_secs)),
        chance in any::<f64>(),
    ) {
        let spent = attempt >= i64::from(policy.max_attempts);
        match after_attempt(&policy, attempt, retry(after), chance) {
            Transition::Retry { delay, .. } => prop_assert!(!spent && delay <= policy.cap),
            Transition::Dead { disable_integration, .. } => prop_assert!(spent && !disable_integration),
            Transition::Sent => prop_assert!(false, "a failure was taken for a success"),
        }
        prop_assert_eq!(matches!(recover(&policy, attempt), Recovery::Dead(_)), spent);
    }

    #[test]
    fn later_attempts_never_wait_less(policy in policies(), attempt in 1..i64::MAX) {
        prop_assert!(policy.ceiling(attempt) <= policy.ceiling(attempt + 1));
    }

    #[test]
    fn any_failure_text_is_cut_and_printable(text in any::<String>()) {
        let failure = Failure::new(FailureClass::Transient, &text);
        prop_assert!(failure.text.chars().count() <= 500);
        prop_assert!(!failure.text.chars().any(char::is_control));
        prop_assert_eq!(failure.text.chars().count(), text.chars().count().min(500));
    }
}
