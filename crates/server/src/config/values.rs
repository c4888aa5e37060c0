//! Values that settings take, each with the one parser that flags, environment and file share.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use url::Url;

/// What a value must be; shown after the name of the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueProblem(String);

impl ValueProblem {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A length of time: `10s`, `15m`, `12h`, `30d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seconds = || {
            let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
            let unit = match text.strip_prefix(digits)? {
                "s" => 1,
                "m" => 60,
                "h" => 3600,
                "d" => 24 * 3600,
                _ => return None,
            };
            let count = digits.parse::<u32>().ok().filter(|&count| count > 0)?;
            Some(u64::from(count) * unit)
        };
        seconds()
            .map(|seconds| Self(Duration::from_secs(seconds)))
            .ok_or_else(|| ValueProblem(format!("`{text}` is not a length of time such as 10s, 15m, 12h or 30d")))
    }
}

/// An `http` or `https` URL that paths are appended to, kept without slashes at the end of its path.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl(Url);

impl BaseUrl {
    /// The URL.
    pub fn url(&self) -> &Url {
        &self.0
    }
}

impl FromStr for BaseUrl {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = ValueProblem::new;
        let mut url = Url::parse(text).map_err(|error| ValueProblem(format!("is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("is not an http or https URL"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("holds a user name or password"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refused("holds a query or fragment, to which no path can be appended"));
        }
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// How many attempts a delivery gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxAttempts(pub u32);

impl FromStr for MaxAttempts {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(count @ 1..=100) => Ok(Self(count)),
            _ => Err(ValueProblem(format!("`{text}` is not a number from 1 to 100"))),
        }
    }
}

/// How many WebSockets there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxSockets(pub usize);

impl FromStr for MaxSockets {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(count @ 1..=1_000_000) => Ok(Self(count)),
            _ => Err(ValueProblem(format!("`{text}` is not a number from 1 to 1000000"))),
        }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl FromStr for LogFormat {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(ValueProblem(format!("`{text}` is neither text nor json"))),
        }
    }
}

/// Which log lines are written: `info`, or directives such as `info,courant_store=debug`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// The directives, known to be readable.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl FromStr for LogFilter {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse::<tracing_subscriber::EnvFilter>() {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(error) => Err(ValueProblem(format!("`{text}` is not a log filter: {error}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_is_a_number_and_a_unit() {
        for (text, seconds) in [("10s", 10), ("15m", 900), ("12h", 43_200), ("30d", 2_592_000)] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_secs(seconds))), "{text}");
        }
        for text in ["", "30", "d", "0s", "-1d", "1.5h", "1w", "10 s", "99999999999d", "1d2h", "٣s"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_base_url_takes_paths_and_holds_no_secret() {
        for (text, kept) in [
            ("https://courant.example.com", "https://courant.example.com/"),
            ("https://example.com/courant//", "https://example.com/courant"),
            ("http://127.0.0.1:9000/api", "http://127.0.0.1:9000/api"),
        ] {
            assert_eq!(text.parse::<BaseUrl>().unwrap().url().as_str(), kept);
        }
        for text in ["courant.example.com", "ftp://x", "https://a:b@x/", "https://x/?q", "https://x/#f", "https://"] {
            assert!(text.parse::<BaseUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn attempts_are_at_least_one() {
        assert_eq!("8".parse(), Ok(MaxAttempts(8)));
        for text in ["0", "101", "-1", "eight", ""] {
            assert!(text.parse::<MaxAttempts>().is_err(), "{text}");
        }
    }

    #[test]
    fn sockets_are_at_least_one() {
        assert_eq!("20000".parse(), Ok(MaxSockets(20_000)));
        for text in ["0", "1000001", "-1", "many", ""] {
            assert!(text.parse::<MaxSockets>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_log_filter_is_checked() {
        assert_eq!("info,courant_store=debug".parse::<LogFilter>().unwrap().as_str(), "info,courant_store=debug");
        assert!("info,x=loud".parse::<LogFilter>().is_err());
    }
}
