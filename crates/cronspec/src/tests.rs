//! What a schedule says, and what says none.

use proptest::prelude::*;

use super::*;

/// 2026-11-02T00:00:00Z, a Monday.
const MONDAY: i64 = 1_793_577_600;
const HOUR: i64 = 3600;

fn schedule(text: &str) -> Schedule {
    text.parse().unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

/// The weekdays on which it is due, Sunday first.
fn days(text: &str) -> String {
    let schedule = schedule(&format!("0 0 * * {text}"));
    schedule.days.iter().map(|due| if *due { '1' } else { '0' }).collect()
}

#[test]
fn a_monday_report_is_due_on_monday_and_seen_late() {
    let ten = schedule("0 10 * * mon");
    for (now, due) in [
        (MONDAY + 10 * HOUR, MONDAY + 10 * HOUR),
        (MONDAY + 10 * HOUR - 1, MONDAY - 7 * 24 * HOUR + 10 * HOUR),
        (MONDAY + 10 * HOUR + 7 * 60, MONDAY + 10 * HOUR),
        (MONDAY + 6 * 24 * HOUR, MONDAY + 10 * HOUR),
        (MONDAY + 7 * 24 * HOUR + 9 * HOUR, MONDAY + 10 * HOUR),
    ] {
        assert_eq!(ten.previous_fire(now), due, "{now}");
    }
}

#[test]
fn days_are_named_numbered_listed_and_ranged() {
    for (text, expected) in [
        ("*", "1111111"),
        ("0", "1000000"),
        ("7", "1000000"),
        ("Sun", "1000000"),
        ("MON,wed", "0101000"),
        ("1-5", "0111110"),
        ("mon-fri", "0111110"),
        ("fri-sun", "1000011"),
        ("5-7", "1000011"),
        ("0-7", "1111111"),
        ("sun-tue", "1110000"),
        ("sun-sun", "1000000"),
        ("0-0", "1000000"),
        ("mon-wed,sat", "0111001"),
    ] {
        assert_eq!(days(text), expected, "{text}");
    }
}

#[test]
fn a_fault_names_its_field() {
    for (text, named) in [
        ("", "five fields"),
        ("0 10 * *", "this one has 4"),
        ("0 10 * * mon *", "this one has 6"),
        ("* 10 * * *", "minute"),
        ("60 10 * * *", "minute"),
        ("*/5 10 * * *", "minute"),
        ("0,30 10 * * *", "minute"),
        ("+1 10 * * *", "minute"),
        ("-1 10 * * *", "minute"),
        ("000 10 * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 * * * *", "hour"),
        ("0 9-17 * * *", "hour"),
        ("0 10 1 * *", "day of month"),
        ("0 10 * 1 *", "month"),
        ("0 10 * jan *", "month"),
        ("0 10 * * 8", "day of week"),
        ("0 10 * * monday", "day of week"),
        ("0 10 * * mon,", "day of week"),
        ("0 10 * * wed-mon", "day of week"),
        ("0 10 * * 1-2-3", "day of week"),
        ("0 10 * * */2", "day of week"),
        ("0 10 * * 01", "day of week"),
        ("@weekly", "five fields"),
    ] {
        let fault = text.parse::<Schedule>().unwrap_err().to_string();
        assert!(fault.contains(named), "{text}: {fault}");
    }
    let long = format!("0 10 * * {}", ["mon"; 100].join(","));
    assert_eq!(long.parse::<Schedule>(), Err(Fault::Field(Field::DayOfWeek)));
}

proptest! {
    #[test]
    fn the_previous_occurrence_is_the_latest_that_is_not_later(
        minute in 0_i64..60, hour in 0_i64..24, days in prop::collection::btree_set(0_i64..7, 1..7),
        now in -4_000_000_000_i64..4_000_000_000,
    ) {
        let list = days.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        // 1970-01-04 was a Sunday.
        let is_due = |at: i64| {
            days.contains(&(at.div_euclid(24 * HOUR) - 3).rem_euclid(7)) && at.rem_euclid(24 * HOUR) == hour * HOUR + minute * 60
        };
        let latest = (0..=7 * 24 * 60).map(|back| now.div_euclid(60) * 60 - back * 60).find(|at| is_due(*at));
        prop_assert_eq!(schedule(&format!("{minute} {hour} * * {list}")).previous_fire(now), latest.unwrap());
    }

    #[test]
    fn no_text_makes_it_fail(text in "[0-9a-z*,/ -]{0,40}", now in any::<i32>()) {
        if let Ok(schedule) = text.parse::<Schedule>() {
            prop_assert!(schedule.previous_fire(now.into()) <= i64::from(now));
        }
    }
}
