//! The two forms of a path: `/{id}:verb` as the outside writes it, `/{id}/~verb` as the router matches it.
//!
//! The router's matcher refuses a literal after a parameter in one segment, so a verb becomes a segment of its own on
//! the way in. Only the public form is ever shown; a request that itself says `/~verb` names nothing.

use axum::extract::{FromRequestParts, Path, RawPathParams};
use http::Uri;
use http::request::Parts;
use http::uri::PathAndQuery;
use serde::de::DeserializeOwned;

use super::error::ApiError;

/// Marks a verb's segment inside the router.
const MARK: char = '~';

/// The router's form of a public path or path template.
pub(super) fn to_inner(public: &str) -> String {
    let split = public.rsplit_once('/').and_then(|(front, last)| Some((front, last.rsplit_once(':')?)));
    match split {
        Some((front, (subject, verb))) if !subject.is_empty() && is_verb(verb) => {
            format!("{front}/{subject}/{MARK}{verb}")
        }
        _ => public.to_owned(),
    }
}

/// The request's URI in the router's form; none when it uses the router's form itself.
pub(super) fn rewrite(uri: &Uri) -> Option<Uri> {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    if last.starts_with(MARK) {
        return None;
    }
    if !last.contains(':') {
        return Some(uri.clone());
    }
    let mut text = to_inner(uri.path());
    if let Some(query) = uri.query() {
        text.push('?');
        text.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}

/// The names of a template's parameters, in order.
pub(super) fn parameters(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
}

/// The request's path parameters. A value that no resource can have is answered like a missing resource.
pub(super) async fn read<P>(parts: &mut Parts, missing: &str) -> Result<P, ApiError>
where
    P: DeserializeOwned + Send,
{
    let holds_nul = match RawPathParams::from_request_parts(parts, &()).await {
        Ok(raw) => raw.iter().any(|(_, value)| value.contains('\0')),
        Err(_) => true,
    };
    match Path::<P>::from_request_parts(parts, &()).await {
        Ok(Path(params)) if !holds_nul => Ok(params),
        _ => Err(ApiError::not_found(missing)),
    }
}

/// `^[a-z][a-z-]*$`
fn is_verb(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_becomes_a_segment_of_its_own() {
        assert_eq!(to_inner("/api/v1/tasks/{id}:claim"), "/api/v1/tasks/{id}/~claim");
        assert_eq!(to_inner("/api/v1/notification-deliveries:retry"), "/api/v1/notification-deliveries/~retry");
        assert_eq!(to_inner("/a/x:y:dry-run"), "/a/x:y/~dry-run");
    }

    #[test]
    fn only_a_verb_after_a_subject_in_the_last_segment_counts() {
        for path in ["/a/:claim", "/a/b:", "/a/b:Claim", "/a/b:1", "/a/b:-x", "/a:claim/b", "/a/b%3Aclaim", "/"] {
            assert_eq!(to_inner(path), path);
        }
    }

    #[test]
    fn the_query_survives_and_is_not_rewritten() {
        let uri = rewrite(&"/a/b:claim?x=c:d".parse().unwrap()).unwrap();
        assert_eq!(uri.to_string(), "/a/b/~claim?x=c:d");
        let absolute = rewrite(&"http://host/a/b:claim".parse().unwrap()).unwrap();
        assert_eq!(absolute.to_string(), "http://host/a/b/~claim");
    }

    #[test]
    fn the_routers_own_form_names_nothing() {
        assert!(rewrite(&"/a/b/~claim".parse().unwrap()).is_none());
        assert!(rewrite(&"/a/b/~claim:claim".parse().unwrap()).is_none());
    }

    #[test]
    fn parameters_are_listed_in_order() {
        assert_eq!(parameters("/t/{type}/versions/{n}:x").collect::<Vec<_>>(), ["type", "n"]);
    }
}
