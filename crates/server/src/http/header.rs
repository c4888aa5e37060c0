//! Request headers with a meaning of their own: credential, idempotency key, precondition.
//!
//! Syntax only: whether a credential is good or a key is taken is somebody else's to say.

use http::{HeaderMap, HeaderName, header};

use super::error::ApiError;

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The text after `Bearer`. Anything else, also a second `Authorization` header, is no credential.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let Header::Text(text) = Header::of(headers, &header::AUTHORIZATION) else {
        return None;
    };
    let (scheme, credential) = text.split_once(' ')?;
    let credential = credential.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !credential.is_empty()).then_some(credential)
}

/// The `Idempotency-Key`: 1 to 200 visible ASCII characters.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    match Header::of(headers, &IDEMPOTENCY_KEY) {
        Header::Absent => Ok(None),
        Header::Text(key) if (1..=200).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()) => {
            Ok(Some(key.to_owned()))
        }
        _ => Err(ApiError::invalid("Idempotency-Key must be one value of 1 to 200 visible ASCII characters")),
    }
}

/// The version that `If-Match` names; none when it is absent or `*`.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    let version = match Header::of(headers, &header::IF_MATCH) {
        Header::Absent | Header::Text("*") => return Ok(None),
        Header::Text(tag) => tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')),
        Header::Other => None,
    };
    version
        .filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
        .map(Some)
        .ok_or_else(|| ApiError::invalid("If-Match must be * or one ETag as a response gave it, like \"3\""))
}

/// A header that may be there once.
enum Header<'a> {
    Absent,
    Text(&'a str),
    /// More than one, or not ASCII.
    Other,
}

impl<'a> Header<'a> {
    fn of(headers: &'a HeaderMap, name: &HeaderName) -> Self {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(only), None) => only.to_str().map_or(Self::Other, Self::Text),
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|v| (name.clone(), v.parse().unwrap())).collect()
    }

    #[test]
    fn a_bearer_credential_is_read_whatever_the_case_of_its_scheme() {
        assert_eq!(bearer(&with(&header::AUTHORIZATION, &["bearer cak_1"])), Some("cak_1"));
        for other in [&["Basic YTpi"][..], &["Bearer"], &["Bearer "], &["Bearer a", "Bearer b"], &[]] {
            assert_eq!(bearer(&with(&header::AUTHORIZATION, other)), None);
        }
    }

    #[test]
    fn an_idempotency_key_is_short_and_visible() {
        let key = |values: &[&str]| idempotency_key(&with(&IDEMPOTENCY_KEY, values)).ok();
        assert_eq!(key(&[]), Some(None));
        assert_eq!(key(&["order-7/a"]), Some(Some("order-7/a".to_owned())));
        assert!(key(&[&"k".repeat(200)]).is_some());
        for bad in [&[""][..], &["a b"], &[&"k".repeat(201)], &["a", "a"], &["\u{e9}"]] {
            assert_eq!(key(bad), None);
        }
    }

    #[test]
    fn if_match_is_a_version_or_a_star() {
        let version = |value: &str| if_match(&with(&header::IF_MATCH, &[value])).ok();
        assert_eq!(version("\"3\""), Some(Some(3)));
        assert_eq!(version("*"), Some(None));
        for bad in ["3", "W/\"3\"", "\"\"", "\"x\"", "\"-1\"", "\"1\", \"2\"", "\"99999999999999999999\""] {
            assert_eq!(version(bad), None);
        }
    }
}
