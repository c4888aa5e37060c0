//! The query: strict text, known names, values in range, and what they mean as one typed value.
//!
//! Ranges come from the same schema that documents them (`#[schemars(range(min = 1, max = 200))]`), so a documented
//! limit is an enforced one. It never ignores a parameter: what is not understood is refused by name.

use schemars::Schema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::body::{shorten, without_text};
use super::error::ApiError;
use super::shape::properties;

/// What may be said in a query, by parameter.
pub(super) struct QueryShape(Vec<(String, Kind)>);

enum Kind {
    Integer { min: Option<i64>, max: Option<i64> },
    Boolean,
    List { max: Option<u64> },
    Text,
}

impl QueryShape {
    pub(super) fn of(schema: &Schema) -> Self {
        Self(properties(schema).map(|(name, value)| (name.clone(), Kind::of(value))).collect())
    }

    fn kind(&self, name: &str) -> Option<&Kind> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, kind)| kind)
    }
}

impl Kind {
    fn of(schema: &Value) -> Self {
        let is = |name: &str| match &schema["type"] {
            Value::String(one) => one == name,
            Value::Array(any) => any.iter().any(|one| one == name),
            _ => false,
        };
        if is("integer") {
            Self::Integer { min: schema["minimum"].as_i64(), max: schema["maximum"].as_i64() }
        } else if is("boolean") {
            Self::Boolean
        } else if is("array") {
            Self::List { max: schema["maxItems"].as_u64() }
        } else {
            Self::Text
        }
    }

    /// What is wrong with these values of one parameter.
    fn fault(&self, values: &[&str]) -> Option<String> {
        if let Self::List { max } = self {
            let count = values.len() as u64;
            return max.filter(|max| count > *max).map(|max| format!("may be given at most {max} times"));
        }
        let value = match values {
            [one] => *one,
            _ => return Some("may be given only once".to_owned()),
        };
        match self {
            Self::Integer { min, max } => {
                let fits = |n: i64| min.is_none_or(|min| n >= min) && max.is_none_or(|max| n <= max);
                (!value.parse().is_ok_and(fits)).then(|| match (min, max) {
                    (Some(min), Some(max)) => format!("must be a whole number from {min} to {max}"),
                    (Some(min), None) => format!("must be a whole number of at least {min}"),
                    (None, Some(max)) => format!("must be a whole number of at most {max}"),
                    (None, None) => "must be a whole number".to_owned(),
                })
            }
            Self::Boolean => (!matches!(value, "true" | "false")).then(|| "must be true or false".to_owned()),
            // An empty value would read as an absent one, and a filter that is silently dropped shows too much.
            Self::Text => value.is_empty().then(|| "must not be empty".to_owned()),
            Self::List { .. } => None,
        }
    }
}

/// The query as decoded pairs, in the order they were sent.
pub(super) type Pairs = Vec<(String, String)>;

/// Decodes a raw query.
pub(super) fn pairs(raw: &str) -> Result<Pairs, ApiError> {
    let decode =
        |text| decode(text).ok_or_else(|| ApiError::invalid("the query is not percent-encoded UTF-8 text without NUL"));
    raw.split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

/// The typed query.
pub(super) fn read<Q: DeserializeOwned>(shape: &QueryShape, raw: &str, pairs: &Pairs) -> Result<Q, ApiError> {
    for (index, (name, _)) in pairs.iter().enumerate() {
        let repeated = pairs.iter().take(index).any(|(earlier, _)| earlier == name);
        let Some(kind) = shape.kind(name).filter(|_| !repeated) else {
            continue;
        };
        let values: Vec<_> = pairs.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect();
        if let Some(problem) = kind.fault(&values) {
            return Err(ApiError::invalid_parameter(name, &problem));
        }
    }
    if shape.0.is_empty()
        && let Some((name, _)) = pairs.first()
    {
        return Err(ApiError::invalid_parameter(name, "is unknown"));
    }
    let deserializer = serde_html_form::Deserializer::from_bytes(raw.as_bytes());
    let query = serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let place = error.path().iter().next().map(ToString::to_string);
        refusal(place.as_deref(), &error.into_inner().to_string())
    })?;
    // A second spelling of a parameter is understood without being in the schema.
    match pairs.iter().find(|(name, value)| value.is_empty() && shape.kind(name).is_none()) {
        Some((name, _)) => Err(ApiError::invalid_parameter(name, "must not be empty")),
        None => Ok(query),
    }
}

/// Serde tells these two by text only; a test holds it to that text.
fn refusal(place: Option<&str>, problem: &str) -> ApiError {
    let quoted = |start: &str| problem.strip_prefix(start)?.split_once('`').map(|(name, _)| name);
    if let Some(name) = quoted("unknown field `") {
        return ApiError::invalid_parameter(name, "is unknown");
    }
    if let Some(name) = quoted("missing field `") {
        return ApiError::invalid_parameter(name, "is missing");
    }
    match place {
        Some(name) => ApiError::invalid_parameter(name, &format!("is refused: {}", shorten(&without_text(problem)))),
        None => ApiError::invalid(format!("the query is refused: {}", shorten(&without_text(problem)))),
    }
}

/// Percent-decoding that refuses half an escape, bytes that are no UTF-8, and NUL.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(decoded).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;
    use uuid::Uuid;

    use super::*;
    use crate::http::shape::Shape;

    #[derive(Debug, Default, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Filter {
        #[serde(default)]
        #[schemars(length(max = 2))]
        types: Vec<String>,
        workspace_id: Option<Uuid>,
        #[schemars(range(min = 1, max = 200))]
        limit: Option<u16>,
        dry_run: Option<bool>,
        #[serde(alias = "entity_id")]
        entity_id: Option<String>,
    }

    fn filter(raw: &str) -> Result<Filter, String> {
        let shape = Shape::of::<(), Filter, (), ()>(true);
        pairs(raw).and_then(|p| read(&shape.parameters, raw, &p)).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn a_query_is_read_by_its_types() {
        let read = filter("types=a.&types=b%2C+c&limit=200&dryRun=true&entityId=%C3%A9").unwrap();
        assert_eq!(read.types, ["a.", "b, c"]);
        assert_eq!((read.limit, read.dry_run, read.entity_id.as_deref()), (Some(200), Some(true), Some("é")));
        assert_eq!(filter(""), Ok(Filter::default()));
        assert_eq!(filter("entity_id=x").unwrap().entity_id.as_deref(), Some("x"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (raw, message) in [
            ("limt=5", "query parameter \"limt\" is unknown"),
            ("limit=0", "query parameter \"limit\" must be a whole number from 1 to 200"),
            ("limit=201", "query parameter \"limit\" must be a whole number from 1 to 200"),
            ("limit=five", "query parameter \"limit\" must be a whole number from 1 to 200"),
            ("limit=", "query parameter \"limit\" must be a whole number from 1 to 200"),
            ("limit=1&limit=2", "query parameter \"limit\" may be given only once"),
            ("dryRun=yes", "query parameter \"dryRun\" must be true or false"),
            ("entityId=", "query parameter \"entityId\" must not be empty"),
            ("entity_id=", "query parameter \"entity_id\" must not be empty"),
            ("limt=", "query parameter \"limt\" is unknown"),
            ("types=a&types=b&types=c", "query parameter \"types\" may be given at most 2 times"),
            ("entityId=%zz", "the query is not percent-encoded UTF-8 text without NUL"),
            ("entityId=%ff", "the query is not percent-encoded UTF-8 text without NUL"),
            ("entityId=a%00", "the query is not percent-encoded UTF-8 text without NUL"),
            ("entityId=%4", "the query is not percent-encoded UTF-8 text without NUL"),
        ] {
            assert_eq!(filter(raw), Err(message.to_owned()), "{raw}");
        }
        let uuid = filter("workspaceId=7").unwrap_err();
        assert!(uuid.starts_with("query parameter \"workspaceId\" is refused: "), "{uuid}");
    }

    #[test]
    fn a_missing_parameter_is_named() {
        #[derive(Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        struct Needs {
            #[expect(dead_code, reason = "only its absence matters")]
            before: u32,
        }
        let shape = Shape::of::<(), Needs, (), ()>(true);
        let error = read::<Needs>(&shape.parameters, "", &Vec::new()).unwrap_err();
        assert_eq!(error.message(), "query parameter \"before\" is missing");
    }

    #[test]
    fn a_route_without_parameters_takes_none() {
        let shape = Shape::of::<(), (), (), ()>(true);
        assert!(read::<()>(&shape.parameters, "", &Vec::new()).is_ok());
        let error = read::<()>(&shape.parameters, "a=1", &pairs("a=1").unwrap()).unwrap_err();
        assert_eq!(error.message(), "query parameter \"a\" is unknown");
    }
}
