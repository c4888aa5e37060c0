//! When a weekly or daily report is due: `<minute> <hour> * * <day-of-week>` in UTC.
//!
//! Minute and hour are fixed numbers, and a day of a month cannot be named, so what is due more than once a day cannot be
//! written. It must never know what is due, nor read a clock.

#![warn(missing_docs)]

use std::fmt;
use std::str::FromStr;

const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const SECONDS_OF_DAY: i64 = 24 * 60 * 60;
/// 1970-01-01 was a Thursday.
const WEEKDAY_OF_EPOCH: i64 = 4;
/// Longer is nothing that this grammar can say.
const MAX_LENGTH: usize = 100;

/// A time of day on some days of the week, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    minute: u8,
    hour: u8,
    /// By weekday, Sunday first; at least one is set.
    days: [bool; 7],
}

/// A part of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The first.
    Minute,
    /// The second.
    Hour,
    /// The third.
    DayOfMonth,
    /// The fourth.
    Month,
    /// The fifth.
    DayOfWeek,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        })
    }
}

/// Why a text is no schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has more or fewer than five fields.
    Fields(usize),
    /// A field is none of what it may be.
    Field(Field),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields(count) => {
                write!(f, "a schedule has five fields, <minute> <hour> * * <day-of-week>; this one has {count}")
            }
            Self::Field(field) => {
                let may_be = match field {
                    Field::Minute => "a number from 0 to 59",
                    Field::Hour => "a number from 0 to 23",
                    Field::DayOfMonth | Field::Month => "*",
                    Field::DayOfWeek => "*, or days (0 to 7 or sun to sat) as a list or an ascending range",
                };
                write!(f, "{field} must be {may_be}")
            }
        }
    }
}

impl std::error::Error for Fault {}

impl FromStr for Schedule {
    type Err = Fault;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let fields: Vec<_> = text.split_ascii_whitespace().collect();
        let [minute, hour, day_of_month, month, day_of_week] = fields[..] else {
            return Err(Fault::Fields(fields.len()));
        };
        let minute = number(minute, 59).ok_or(Fault::Field(Field::Minute))?;
        let hour = number(hour, 23).ok_or(Fault::Field(Field::Hour))?;
        for (given, field) in [(day_of_month, Field::DayOfMonth), (month, Field::Month)] {
            if given != "*" {
                return Err(Fault::Field(field));
            }
        }
        let days = Some(day_of_week).filter(|days| days.len() <= MAX_LENGTH).and_then(days);
        Ok(Self { minute, hour, days: days.ok_or(Fault::Field(Field::DayOfWeek))? })
    }
}

/// One or two digits that are at most this.
fn number(text: &str, most: u8) -> Option<u8> {
    let digits = matches!(text.len(), 1 | 2) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= most)
}

fn days(text: &str) -> Option<[bool; 7]> {
    if text == "*" {
        return Some([true; 7]);
    }
    let mut days = [false; 7];
    for part in text.split(',') {
        let (from, to) = match part.split_once('-') {
            // Sunday is the last day where a range ends.
            Some((from, to)) => match (day(from)?, day(to)?) {
                (from, 0) if from > 0 => (from, 7),
                range => range,
            },
            None => (day(part)?, day(part)?),
        };
        if from > to {
            return None;
        }
        for day in from..=to {
            days[day % 7] = true;
        }
    }
    Some(days)
}

/// 0 to 7.
fn day(text: &str) -> Option<usize> {
    let named = DAYS.iter().position(|day| day.eq_ignore_ascii_case(text));
    named.or_else(|| number(text, 7).filter(|_| text.len() == 1).map(usize::from))
}

impl Schedule {
    /// The latest occurrence at or before `now`; both in seconds since 1970-01-01T00:00:00Z. A tick that comes late still
    /// sees it.
    pub fn previous_fire(&self, now: i64) -> i64 {
        let time_of_day = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60;
        let today = now.div_euclid(SECONDS_OF_DAY);
        let first = if now.rem_euclid(SECONDS_OF_DAY) < time_of_day { today - 1 } else { today };
        let fires = |day: &i64| {
            let weekday = (day + WEEKDAY_OF_EPOCH).rem_euclid(7);
            usize::try_from(weekday).is_ok_and(|weekday| self.days[weekday])
        };
        let day = (first - 6..=first).rev().find(fires).unwrap_or(first);
        day * SECONDS_OF_DAY + time_of_day
    }
}

#[cfg(test)]
mod tests;
