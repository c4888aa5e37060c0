//! The server's address.
//!
//! It must never hold a credential: an address with a user or a password is refused without being shown.

use std::fmt;
use std::str::FromStr;

use url::Url;

use crate::error::ClientError;
use crate::http::Query;

const API: &str = "/api/v1";

/// The checked root of a server: `http` or `https`, with a path when the server stands behind one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientUrl {
    root: Url,
}

impl FromStr for ClientUrl {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        // The text may hold a password, so no error repeats it.
        let invalid = |why: &str| ClientError::Invalid(format!("the server's address {why}"));
        let mut root = Url::parse(text.trim()).map_err(|e| invalid(&format!("is not a URL: {e}")))?;
        if !matches!(root.scheme(), "http" | "https") || !root.has_host() {
            return Err(invalid("must begin with http:// or https://"));
        }
        if !root.username().is_empty() || root.password().is_some() {
            return Err(invalid("must not hold a user or password: credentials are API keys"));
        }
        if root.query().is_some() || root.fragment().is_some() {
            return Err(invalid("must not hold a query or fragment"));
        }
        let path = root.path().trim_end_matches('/');
        let path = path.strip_suffix(API).unwrap_or(path).trim_end_matches('/').to_owned();
        root.set_path(&path);
        Ok(Self { root })
    }
}

impl fmt::Display for ClientUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.as_str().trim_end_matches('/'))
    }
}

impl ClientUrl {
    pub(crate) fn is_https(&self) -> bool {
        self.root.scheme() == "https"
    }

    pub(crate) fn is_loopback(&self) -> bool {
        match self.root.host() {
            Some(url::Host::Domain(name)) => name.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
    }

    /// The address of an API path.
    pub(crate) fn join(&self, path: &str, query: &Query) -> Url {
        let mut url = self.root.clone();
        url.set_path(&format!("{}{API}{path}", self.root.path().trim_end_matches('/')));
        if !query.pairs().is_empty() {
            url.query_pairs_mut().extend_pairs(query.pairs());
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for text in
            ["http://localhost:1", "http://LOCALHOST.", "http://127.0.0.1", "http://127.9.9.9", "http://[::1]:1"]
        {
            assert!(text.parse::<ClientUrl>().unwrap().is_loopback(), "{text}");
        }
        for text in ["http://localhost.example.com", "http://10.0.0.1", "http://[::2]", "https://example.com"] {
            assert!(!text.parse::<ClientUrl>().unwrap().is_loopback(), "{text}");
        }
    }

    #[test]
    fn the_root_is_found_under_a_trailing_api_path() {
        for text in ["http://h:1", "http://h:1/", "http://h:1/api/v1", "http://h:1/api/v1/", " http://h:1/api/v1// "] {
            let url: ClientUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), "http://h:1", "{text}");
            assert_eq!(url.join("/events", &Query::default()).as_str(), "http://h:1/api/v1/events", "{text}");
        }
    }

    #[test]
    fn a_server_may_stand_behind_a_path() {
        let url: ClientUrl = "https://h/courant/api/v1".parse().unwrap();
        assert_eq!(url.to_string(), "https://h/courant");
        assert_eq!(
            url.join("/workspaces/1:move", &Query::default()).as_str(),
            "https://h/courant/api/v1/workspaces/1:move"
        );
    }

    #[test]
    fn query_values_are_encoded() {
        let url: ClientUrl = "http://h".parse().unwrap();
        let mut query = Query::default();
        query.add("entityId", "a&b=c d+é");
        query.add("types", "a.");
        query.add("types", "b.");
        assert_eq!(url.join("/events", &query).query(), Some("entityId=a%26b%3Dc+d%2B%C3%A9&types=a.&types=b."));
    }

    #[test]
    fn a_bad_address_is_refused_without_being_shown() {
        for text in [
            "http://u:hunter2@h",
            "http://hunter2@h",
            "http://h?hunter2",
            "http://h#hunter2",
            "hunter2",
            "ftp://hunter2",
        ] {
            let error = text.parse::<ClientUrl>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }
}
