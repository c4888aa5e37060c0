//! The body: bounded bytes, JSON text that can be kept, one typed value.
//!
//! The cap holds while bytes arrive, so it needs no `Content-Length`. The text is parsed once when all is well; only a
//! refused body is parsed again, to say where the fault is.

use std::borrow::Cow;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use courant_api::ErrorCode;
use courant_api::event::MAX_PAYLOAD_DEPTH;
use courant_core::payload::{Fault, FaultKind, Limits, check};
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::endpoint::Route;
use super::error::ApiError;

/// Largest body of a route that says nothing else.
pub const DEFAULT_BODY_LIMIT: usize = 1024 * 1024;

/// Longest wait for a whole body.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// Deepest nesting of a body: a payload of full depth inside `{"events":[{…}]}`.
const MAX_BODY_DEPTH: usize = MAX_PAYLOAD_DEPTH + 3;

/// Longest problem that is told to a client; parsers like to repeat what they were given.
const MAX_PROBLEM_CHARS: usize = 300;

/// The body's text; empty when the route takes none.
pub(super) async fn read(route: &Route, headers: &HeaderMap, stream: Body) -> Result<String, ApiError> {
    if !route.takes_body() {
        return match collect(stream, 0).await {
            Ok(_) => Ok(String::new()),
            Err(_) => Err(ApiError::invalid("this route takes no body")),
        };
    }
    let media_type = media_type(headers);
    if media_type == MediaType::Other {
        return Err(unsupported());
    }
    let bytes = collect(stream, route.body_limit_bytes).await?;
    if bytes.is_empty() {
        return if route.body_optional {
            Ok("{}".to_owned())
        } else {
            Err(ApiError::invalid("a JSON body is required"))
        };
    }
    if media_type == MediaType::Absent {
        return Err(unsupported());
    }
    let text = String::from_utf8(bytes.into()).map_err(|_| ApiError::invalid("the body is not UTF-8 text"))?;
    let limits = Limits { max_bytes: route.body_limit_bytes, max_depth: MAX_BODY_DEPTH };
    check(&text, &limits).map_err(|faults| refusal(route, &faults))?;
    Ok(text)
}

/// The typed body.
pub(super) fn parse<B: DeserializeOwned>(route: &Route, text: &str) -> Result<B, ApiError> {
    // `()` reads the JSON `null`, and nothing else.
    let text = if route.takes_body() { text } else { "null" };
    // Serde would read a list as the fields of a struct in their order, which is nobody's contract.
    if text.trim_start().starts_with('[') {
        return Err(ApiError::invalid_field("", "must be an object"));
    }
    serde_json::from_str(text).map_err(|first| {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        match serde_path_to_error::deserialize::<_, B>(&mut deserializer) {
            Err(error) => ApiError::invalid_field(&pointer(error.path()), &problem(error.inner())),
            Ok(_) => ApiError::invalid_field("", &problem(&first)),
        }
    })
}

/// All bytes, or a refusal as soon as there are more than the limit or the time is over.
async fn collect(stream: Body, limit_bytes: usize) -> Result<Bytes, ApiError> {
    let whole = tokio::time::timeout(BODY_TIMEOUT, Limited::new(stream, limit_bytes).collect());
    let Ok(arrived) = whole.await else {
        return Err(ApiError::new(ErrorCode::RequestTimeout, "the body did not arrive in time"));
    };
    match arrived {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("the body is larger than {limit_bytes} bytes");
            Err(ApiError::new(ErrorCode::PayloadTooLarge, message).detail("limitBytes", limit_bytes))
        }
        Err(error) => Err(ApiError::invalid("the body did not arrive whole").cause(error)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MediaType {
    Absent,
    Json,
    Other,
}

/// `application/json`, with no parameter but the character set that JSON has anyway.
fn media_type(headers: &HeaderMap) -> MediaType {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(first) = values.next() else {
        return MediaType::Absent;
    };
    let mut parts = first.to_str().unwrap_or_default().split(';').map(|part| part.trim().to_ascii_lowercase());
    let is_json = parts.next().is_some_and(|essence| essence == "application/json");
    let is_utf8 = |part: String| matches!(part.as_str(), "charset=utf-8" | "charset=\"utf-8\"" | "");
    if is_json && parts.all(is_utf8) && values.next().is_none() { MediaType::Json } else { MediaType::Other }
}

fn unsupported() -> ApiError {
    ApiError::new(ErrorCode::UnsupportedMediaType, "the body must be application/json in UTF-8")
}

fn refusal(route: &Route, faults: &[Fault]) -> ApiError {
    let Some(first) = faults.first() else {
        return ApiError::invalid("the body is refused");
    };
    if let Some(syntax) = faults.iter().find(|fault| fault.kind == FaultKind::Syntax) {
        return ApiError::invalid(format!("the body is not JSON: {}", shorten(&syntax.message)));
    }
    let code = (route.payload_faults)(&first.pointer).unwrap_or(ErrorCode::InvalidBody);
    let place = if first.pointer.is_empty() { "the body" } else { &first.pointer };
    let errors: Vec<_> =
        faults.iter().map(|fault| serde_json::json!({ "pointer": fault.pointer, "message": fault.message })).collect();
    ApiError::new(code, format!("{place}: {}", shorten(&first.message))).detail("errors", errors)
}

/// Where a value stands, as a JSON pointer.
fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter().fold(String::new(), |mut pointer, segment| {
        match segment {
            Segment::Seq { index } => pointer.extend(["/", &index.to_string()]),
            Segment::Map { key } => {
                pointer.extend(["/", &key.replace('~', "~0").replace('/', "~1")]);
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
        pointer
    })
}

/// What a parser says, without the line and column that mean nothing beside a pointer, and without the text that it
/// met: a secret may have been sent in the wrong place.
fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
    shorten(&without_text(text))
}

/// What a parser says, without the text that it met.
pub(super) fn without_text(problem: &str) -> Cow<'_, str> {
    for met in ["invalid type: string", "invalid value: string", "unknown variant"] {
        let rest = problem.strip_prefix(met).filter(|rest| rest.starts_with(' '));
        // What was met may itself say `, expected `; what is expected is ours and does not.
        if let Some((_, expected)) = rest.and_then(|rest| rest.rsplit_once(", expected ")) {
            return format!("{met}, expected {expected}").into();
        }
    }
    problem.into()
}

/// As much of a problem as is worth telling.
pub(super) fn shorten(problem: &str) -> String {
    match problem.char_indices().nth(MAX_PROBLEM_CHARS) {
        Some((end, _)) => format!("{}…", problem.split_at(end).0),
        None => problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_text;

    #[test]
    fn the_text_that_a_parser_met_is_not_repeated() {
        for (problem, told) in [
            ("invalid type: string \"hush\", expected i64", "invalid type: string, expected i64"),
            ("invalid value: string \"a, expected b\", expected a time", "invalid value: string, expected a time"),
            ("unknown variant `hush`, expected `a` or `b`", "unknown variant, expected `a` or `b`"),
            (
                "unknown variant `hush, expected x`, expected one of `a`, `b`",
                "unknown variant, expected one of `a`, `b`",
            ),
            ("missing field `name`", "missing field `name`"),
            ("invalid type: null, expected a string", "invalid type: null, expected a string"),
        ] {
            assert_eq!(without_text(problem), told);
        }
    }
}
