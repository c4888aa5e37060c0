//! The `Retry-After` header: seconds, or an HTTP date. It must never fail on what a receiver sends.

use std::time::Duration;

/// Nobody is left alone for longer than this.
const LONGEST: Duration = Duration::from_hours(24);
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// How long a `Retry-After` asks to be left alone, at most a day: a number of seconds or a date as RFC 9110 §5.6.7
/// prefers it. A date in the past is zero; anything else is none.
pub fn parse_retry_after(value: &str, now_unix_seconds: i64) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // Digits alone can only fail to parse by being too many.
        return Some(value.parse().map_or(LONGEST, Duration::from_secs).min(LONGEST));
    }
    let wait = http_date(value)?.saturating_sub(now_unix_seconds);
    Some(Duration::from_secs(u64::try_from(wait).unwrap_or(0)).min(LONGEST))
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<i64> {
    let (day_name, rest) = text.split_once(", ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = fields[..] else {
        return None;
    };
    let fields: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = fields[..] else {
        return None;
    };
    let month = MONTHS.iter().zip(1..).find(|(name, _)| **name == month)?.1;
    let (day, year) = (digits(day, 2)?, digits(year, 4)?);
    let (hour, minute, second) = (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?);
    // 60 is a leap second.
    let valid = DAYS.contains(&day_name)
        && (1..=days_in(month, year)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    valid.then(|| days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

fn digits(text: &str, length: usize) -> Option<i64> {
    (text.len() == length && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(month: i64, year: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let days_before_year =
        |y: i64| 365 * y + (y + 3).div_euclid(4) - (y + 99).div_euclid(100) + (y + 399).div_euclid(400);
    let months: i64 = (1..month).map(|m| days_in(m, year)).sum();
    days_before_year(year) - days_before_year(1970) + months + day - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn seconds_are_read_and_bounded_by_a_day() {
        for (text, seconds) in [
            ("0", 0),
            ("120", 120),
            (" 7\t", 7),
            ("007", 7),
            ("86401", 86_400),
            ("18446744073709551615", 86_400),
            ("99999999999999999999999999", 86_400),
        ] {
            assert_eq!(parse_retry_after(text, 0), Some(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn a_date_is_a_wait_from_now() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        for (now, seconds) in
            [(784_111_747, 30), (784_111_777, 0), (784_111_999, 0), (0, 86_400), (i64::MIN, 86_400), (i64::MAX, 0)]
        {
            assert_eq!(parse_retry_after(date, now), Some(Duration::from_secs(seconds)), "{now}");
        }
    }

    #[test]
    fn known_dates_have_their_known_seconds() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
            ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
            ("Fri, 31 Dec 9999 23:59:60 GMT", 253_402_300_800),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200),
        ] {
            assert_eq!(http_date(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_neither_is_ignored() {
        for text in [
            "",
            " ",
            "-1",
            "+5",
            "1.5",
            "5s",
            "soon",
            "１２",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 31 Apr 1994 08:49:37 GMT",
            "Sun, 29 Feb 1900 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Xyz, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Brumaire 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT GMT",
        ] {
            assert_eq!(parse_retry_after(text, 0), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_or_waits_longer_than_a_day(text in any::<String>(), now in any::<i64>()) {
            prop_assert!(parse_retry_after(&text, now).is_none_or(|wait| wait <= LONGEST));
        }

        #[test]
        fn nothing_shaped_like_a_date_panics(
            text in "(Sun|Mon|X), [0-9]{2} (Jan|Feb|Nov|Nov) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
            now in any::<i64>(),
        ) {
            prop_assert!(parse_retry_after(&text, now).is_none_or(|wait| wait <= LONGEST));
        }

        #[test]
        fn a_day_later_is_86400_seconds_later(year in 0_i64..9999, month in 1_i64..=12, day in 1_i64..=31) {
            prop_assume!(day <= days_in(month, year));
            let (next_year, next_month, next_day) = match (day == days_in(month, year), month == 12) {
                (false, _) => (year, month, day + 1),
                (true, false) => (year, month + 1, 1),
                (true, true) => (year + 1, 1, 1),
            };
            prop_assert_eq!(days_since_1970(next_year, next_month, next_day), days_since_1970(year, month, day) + 1);
        }
    }
}
