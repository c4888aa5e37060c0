//! Request headers with a meaning of their own: credential, idempotency key, precondition.
//!
//! Syntax only: whether a credential is good or a key is taken is somebody else's to say.

use http::{HeaderMap, HeaderName, header};

use super::error::ApiError;

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The text after `Bearer`. Anything else, also a second `Authorization` header, is no credential.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, credential) = single(headers, &header::AUTHORIZATION)??.split_once(' ')?;
    let credential = credential.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !credential.is_empty()).then_some(credential)
}

/// The `Idempotency-Key`: 1 to 200 visible ASCII characters.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    match single(headers, &IDEMPOTENCY_KEY) {
        None => Ok(None),
        Some(Some(key))
            if (1..=200).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic()) =>
        {
            Ok(Some(key.to_owned()))
        }
        Some(_) => Err(ApiError::invalid(
            "Idempotency-Key must be one value of 1 to 200 visible ASCII characters",
        )),
    }
}

/// The version that `If-Match` names; none when it is absent or `*`.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    match single(headers, &header::IF_MATCH) {
        None | Some(Some("*")) => Ok(None),
        Some(tag) => tag
            .and_then(|t| t.strip_prefix('"')?.strip_suffix('"'))
            .filter(|t| t.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|t| t.parse().ok())
            .map(Some)
            .ok_or_else(|| {
                ApiError::invalid(
                    "If-Match must be * or one ETag as a response gave it, like \"3\"",
                )
            }),
    }
}

/// Absent, or there: as text when it is there once and is ASCII.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    Some(if values.next().is_some() {
        None
    } else {
        first.to_str().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: HeaderName, values: &[&str]) -> HeaderMap {
        values
            .iter()
            .map(|v| (name.clone(), v.parse().unwrap()))
            .collect()
    }

    #[test]
    fn a_bearer_credential_is_read_whatever_the_case_of_its_scheme() {
        assert_eq!(
            bearer(&with(header::AUTHORIZATION, &["bearer cak_1"])),
            Some("cak_1")
        );
        for other in [
            &["Basic YTpi"][..],
            &["Bearer"],
            &["Bearer "],
            &["Bearer a", "Bearer b"],
            &[],
        ] {
            assert_eq!(bearer(&with(header::AUTHORIZATION, other)), None);
        }
    }

    #[test]
    fn an_idempotency_key_is_short_and_visible() {
        let key = |values: &[&str]| idempotency_key(&with(IDEMPOTENCY_KEY, values)).ok();
        assert_eq!(key(&[]), Some(None));
        assert_eq!(key(&["order-7/a"]), Some(Some("order-7/a".to_owned())));
        assert!(key(&[&"k".repeat(200)]).is_some());
        for bad in [
            &[""][..],
            &["a b"],
            &[&"k".repeat(201)],
            &["a", "a"],
            &["\u{e9}"],
        ] {
            assert_eq!(key(bad), None);
        }
    }

    #[test]
    fn if_match_is_a_version_or_a_star() {
        let version = |value: &str| if_match(&with(header::IF_MATCH, &[value])).ok();
        assert_eq!(version("\"3\""), Some(Some(3)));
        assert_eq!(version("*"), Some(None));
        for bad in [
            "3",
            "W/\"3\"",
            "\"\"",
            "\"x\"",
            "\"-1\"",
            "\"1\", \"2\"",
            "\"99999999999999999999\"",
        ] {
            assert_eq!(version(bad), None);
        }
    }
}
