//! Request headers with a meaning of their own: credential, idempotency key, precondition.
//!
//! Syntax only: whether a credential is good or a key is taken is somebody else's to say.

use http::{HeaderMap, HeaderName, header};

use super::error::ApiError;

/// Most entity tags of a list.
const TAGS: usize = 100;

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

/// The versions that `If-Match` names; none when it is absent or `*`. A weak tag, or one that is no version, names none, so
/// that a list of nothing else matches no resource.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<Vec<i64>>, ApiError> {
    if !headers.contains_key(header::IF_MATCH) {
        return Ok(None);
    }
    let tags = tags(headers, &header::IF_MATCH)
        .ok_or_else(|| ApiError::invalid("If-Match must be * or a list of ETags as responses gave them, like \"3\""))?;
    Ok(match tags {
        Tags::Any => None,
        Tags::Of(tags) => Some(tags.iter().filter(|tag| !tag.weak).filter_map(|tag| version(tag.text)).collect()),
    })
}

/// Whether `If-None-Match` names this version, weakly or not. One that cannot be read names nothing: the whole answer is
/// always right.
pub(super) fn knows(headers: &HeaderMap, current: i64) -> bool {
    headers.contains_key(header::IF_NONE_MATCH)
        && tags(headers, &header::IF_NONE_MATCH).is_some_and(|tags| match tags {
            Tags::Any => true,
            Tags::Of(tags) => tags.iter().any(|tag| version(tag.text) == Some(current)),
        })
}

/// What a list of entity tags says (RFC 9110 §8.8.3).
enum Tags<'a> {
    Any,
    Of(Vec<Tag<'a>>),
}

struct Tag<'a> {
    weak: bool,
    text: &'a str,
}

/// The entity tags of all lines of a header; none when they cannot be read or are too many.
fn tags<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Tags<'a>> {
    let lines = headers.get_all(name).iter().map(|line| line.to_str().ok()).collect::<Option<Vec<_>>>()?;
    if lines.iter().map(|line| line.trim()).eq(["*"]) {
        return Some(Tags::Any);
    }
    let mut found = Vec::new();
    for line in lines {
        // A tag may hold commas, so the list is read from tag to tag.
        let mut rest = line.trim_start_matches([' ', '\t', ',']);
        while !rest.is_empty() {
            let (weak, opened) = rest.strip_prefix("W/").map_or((false, rest), |rest| (true, rest));
            let (text, after) = opened.strip_prefix('"')?.split_once('"')?;
            let after = after.trim_start_matches([' ', '\t']);
            if !text.bytes().all(|b| b.is_ascii_graphic()) || !(after.is_empty() || after.starts_with(',')) {
                return None;
            }
            found.push(Tag { weak, text });
            rest = after.trim_start_matches([' ', '\t', ',']);
        }
    }
    (1..=TAGS).contains(&found.len()).then_some(Tags::Of(found))
}

/// The version that a tag of ours stands for, in its one spelling.
fn version(tag: &str) -> Option<i64> {
    tag.parse().ok().filter(|version: &i64| version.to_string() == tag)
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
    fn if_match_is_a_list_of_tags_or_a_star() {
        let versions = |values: &[&str]| if_match(&with(&header::IF_MATCH, values)).ok();
        for (values, named) in [
            (&[][..], None),
            (&["*"], None),
            (&["\"3\""], Some(vec![3])),
            (&["\"3\", \"4\",\"5\""], Some(vec![3, 4, 5])),
            (&["\"3\"", "\"4\""], Some(vec![3, 4])),
            (&[" ,\"3\" , ,"], Some(vec![3])),
            (&["W/\"3\", \"4\""], Some(vec![4])),
            // Tags that no resource here has, so that none matches.
            (&["W/\"3\""], Some(vec![])),
            (&["\"\""], Some(vec![])),
            (&["\"a,b\""], Some(vec![])),
            (&["\"03\", \"+3\", \"99999999999999999999\""], Some(vec![])),
        ] {
            assert_eq!(versions(values), Some(named), "{values:?}");
        }
    }

    #[test]
    fn if_match_that_is_no_list_is_refused() {
        let many = vec!["\"1\""; 101].join(",");
        for bad in [
            "",
            ",",
            "3",
            "\"3",
            "3\"",
            "w/\"3\"",
            "W/3",
            "\"3\" \"4\"",
            "\"3\"x",
            "*, \"3\"",
            "\"a b\"",
            "\"\u{e9}\"",
            &many,
        ] {
            assert!(if_match(&with(&header::IF_MATCH, &[bad])).is_err(), "{bad}");
        }
        assert!(if_match(&with(&header::IF_MATCH, &["*", "\"3\""])).is_err());
    }

    #[test]
    fn if_none_match_compares_weakly_and_is_never_refused() {
        let knows = |value: &str| knows(&with(&header::IF_NONE_MATCH, &[value]), 3);
        for yes in ["\"3\"", "W/\"3\"", "\"2\", W/\"3\"", "*"] {
            assert!(knows(yes), "{yes}");
        }
        for no in ["\"2\"", "3", "", "\"03\"", "\"3\" x"] {
            assert!(!knows(no), "{no}");
        }
    }
}
