//! Points in time: microseconds since the Unix epoch inside, RFC 3339 UTC with milliseconds outside.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A point in time in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The last time that can be written whatever the zone: 9999-12-30T22:00:00Z.
    const MAX_US: i64 = 253_402_207_200_000_000;

    /// A time from microseconds since the epoch; times outside the years 0001 to 9999 are clamped to them.
    pub fn from_micros(micros: i64) -> Self {
        Self(micros.clamp(-62_135_596_800_000_000, Self::MAX_US))
    }

    /// Microseconds since the epoch.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// This time moved by `micros` microseconds (negative: earlier).
    pub fn plus_micros(self, micros: i64) -> Self {
        Self::from_micros(self.0.saturating_add(micros))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_microsecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{time:.3}")
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::from_micros(text.parse::<jiff::Timestamp>()?.as_microsecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(|_| de::Error::custom("not an RFC 3339 time such as 2026-09-01T10:15:04.117Z"))
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "RFC 3339, UTC, milliseconds: 2026-09-01T10:15:04.117Z"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_utc_with_three_digits() {
        let time = Timestamp::from_micros(1_788_257_704_117_999);
        assert_eq!(time.to_string(), "2026-09-01T10:15:04.117Z");
        assert_eq!(
            "2026-09-01T12:15:04.117+02:00".parse::<Timestamp>().unwrap().to_string(),
            "2026-09-01T10:15:04.117Z"
        );
    }

    #[test]
    fn the_ends_of_time_can_be_written() {
        for micros in [i64::MIN, i64::MAX, 0] {
            assert!(Timestamp::from_micros(micros).to_string().ends_with('Z'));
        }
    }
}
