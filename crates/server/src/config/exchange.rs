//! Settings of the HTTP exchange: who is believed about a client's address, which pages may read answers, and how often
//! one key may ask.

use std::net::IpAddr;
use std::str::FromStr;

use http::HeaderValue;
use ipnet::IpNet;
use schemars::JsonSchema;
use url::Url;

use super::ConfigError;
use super::layers::Layers;
use super::values::ValueProblem;

/// Most entries of a list.
const LIST_MAX: usize = 100;

/// The HTTP exchange.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Requests a second of one credential; none: as many as it likes.
    pub rate_limit: Option<u32>,
    /// Whose word on a client's address is taken.
    pub trusted_proxies: Vec<IpNet>,
    /// The origins whose pages may read answers.
    pub cors_origins: Vec<HeaderValue>,
}

/// Flags of the HTTP exchange.
#[derive(Clone, Debug, Default, clap::Args, JsonSchema)]
pub struct ExchangeArgs {
    /// Requests a second that one credential may make of one server, with bursts of twice as many; what is over is
    /// answered 429 (COURANT_RATE_LIMIT; no limit without it)
    #[arg(long, value_name = "NUMBER")]
    #[schemars(with = "u32", range(min = 1, max = 1_000_000))]
    pub rate_limit: Option<RateLimit>,

    /// Networks or addresses of the proxies whose X-Forwarded-For names the client, comma-separated
    /// (COURANT_TRUSTED_PROXIES; default none)
    #[arg(long, value_name = "LIST")]
    #[schemars(with = "Vec<String>", extend("maxItems" = 100))]
    pub trusted_proxies: Option<TrustedProxies>,

    /// Origins whose pages may read answers in a browser, such as `https://app.example.com`, comma-separated
    /// (COURANT_CORS_ORIGINS; default none)
    #[arg(long, value_name = "LIST")]
    #[schemars(with = "Vec<String>", extend("maxItems" = 100))]
    pub cors_origins: Option<CorsOrigins>,
}

impl Exchange {
    pub(super) fn resolve(args: &ExchangeArgs, layers: &mut Layers<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            rate_limit: layers.pick("rate_limit", args.rate_limit.as_ref())?.map(|RateLimit(rate)| rate),
            trusted_proxies: layers
                .pick_list("trusted_proxies", args.trusted_proxies.as_ref())?
                .map(|TrustedProxies(list)| list)
                .unwrap_or_default(),
            cors_origins: layers
                .pick_list("cors_origins", args.cors_origins.as_ref())?
                .map(|CorsOrigins(list)| list)
                .unwrap_or_default(),
        })
    }
}

/// Requests a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit(u32);

impl FromStr for RateLimit {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(rate @ 1..=1_000_000) => Ok(Self(rate)),
            _ => Err(ValueProblem::new(&format!("`{text}` is not a number of requests a second from 1 to 1000000"))),
        }
    }
}

/// Networks, comma-separated; an address is a network of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl FromStr for TrustedProxies {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let network = |item: &str| {
            let found = item.parse::<IpNet>().or_else(|_| item.parse::<IpAddr>().map(IpNet::from));
            found.map_err(|_| ValueProblem::new(&format!("`{item}` is not a network (10.0.0.0/8) or an address")))
        };
        list(text, network).map(Self)
    }
}

/// Origins, comma-separated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorsOrigins(Vec<HeaderValue>);

impl FromStr for CorsOrigins {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        list(text, origin).map(Self)
    }
}

/// An origin exactly as browsers write it, since it is compared byte for byte.
fn origin(item: &str) -> Result<HeaderValue, ValueProblem> {
    if item == "*" {
        return Err(ValueProblem::new("`*` would let every page on the web read answers; name the origins that may"));
    }
    if item.contains('*') {
        return Err(ValueProblem::new(&format!("`{item}` is a pattern; name each origin that may read answers")));
    }
    let written = Url::parse(item).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let problem = match written.map(|url| url.origin().ascii_serialization()) {
        Some(origin) if origin == item => {
            return HeaderValue::from_str(item).map_err(|_| ValueProblem::new("is not an origin"));
        }
        Some(origin) => format!("`{item}` is not an origin as browsers write it; `{origin}` is"),
        None => format!("`{item}` is not an origin such as https://app.example.com"),
    };
    Err(ValueProblem::new(&problem))
}

fn list<T>(text: &str, item: impl Fn(&str) -> Result<T, ValueProblem>) -> Result<Vec<T>, ValueProblem> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let items = text.split(',').map(|part| item(part.trim())).collect::<Result<Vec<_>, _>>()?;
    if items.len() > LIST_MAX {
        return Err(ValueProblem::new(&format!("has more than {LIST_MAX} entries")));
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_network_or_an_address() {
        let TrustedProxies(nets) = "10.0.0.0/8, 192.0.2.7,fd00::/8".parse().unwrap();
        assert_eq!(
            nets.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["10.0.0.0/8", "192.0.2.7/32", "fd00::/8"]
        );
        assert_eq!("".parse(), Ok(TrustedProxies(Vec::new())));
        for bad in ["proxy", "10.0.0.0/33", "10.0.0.0/8,", ","] {
            assert!(bad.parse::<TrustedProxies>().is_err(), "{bad}");
        }
        assert!(vec!["10.0.0.1"; 101].join(",").parse::<TrustedProxies>().is_err());
    }

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        for good in ["https://app.example.com", "http://localhost:5173", "https://[::1]:8443"] {
            assert_eq!(good.parse(), Ok(CorsOrigins(vec![good.parse().unwrap()])));
        }
        for (bad, told) in [
            ("*", "every page on the web"),
            ("null", "is not an origin such as"),
            ("app.example.com", "is not an origin such as"),
            ("file:///tmp", "is not an origin such as"),
            ("https://app.example.com/", "`https://app.example.com` is"),
            ("https://app.example.com:443", "`https://app.example.com` is"),
            ("https://App.example.com", "`https://app.example.com` is"),
            ("https://*.example.com", "is a pattern"),
        ] {
            let problem = bad.parse::<CorsOrigins>().unwrap_err().to_string();
            assert!(problem.contains(told), "{problem}");
        }
    }

    #[test]
    fn a_rate_is_at_least_one() {
        assert_eq!("50".parse(), Ok(RateLimit(50)));
        for bad in ["0", "1000001", "-1", "1.5", "fast", ""] {
            assert!(bad.parse::<RateLimit>().is_err(), "{bad}");
        }
    }
}
