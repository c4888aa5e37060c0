//! Schemas and prose as a page shows them: words, code, and links to named schemas.

use serde_json::{Map, Value};

use super::model::Row;

/// A run of text.
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) href: Option<String>,
    pub(super) is_code: bool,
}

/// A schema in a line, and its fields.
#[derive(Default)]
pub(super) struct Shape {
    pub(super) kind: Vec<Piece>,
    pub(super) fields: Vec<Row>,
}

fn words(text: impl Into<String>) -> Piece {
    Piece { text: text.into(), href: None, is_code: false }
}

pub(super) fn code(text: impl Into<String>) -> Piece {
    Piece { text: text.into(), href: None, is_code: true }
}

pub(super) fn link(text: &str, place: &str) -> Piece {
    Piece { text: text.to_owned(), href: Some(format!("#{place}-{text}")), is_code: true }
}

/// Text with its `code` told apart.
pub(super) fn prose(text: &str) -> Vec<Piece> {
    let runs = text.split('`').enumerate();
    runs.map(|(i, run)| if i % 2 == 1 { code(run) } else { words(run) }).filter(|p| !p.text.is_empty()).collect()
}

/// What a schema is and, if it is of objects, its fields; one that is named elsewhere is looked up in `all`.
pub(super) fn shape(schema: &Value, all: &Value) -> Shape {
    let named = schema["$ref"].as_str().and_then(|target| all.get(name_of(target)));
    Shape { kind: kind(schema), fields: fields(named.unwrap_or(schema)) }
}

fn fields(schema: &Value) -> Vec<Row> {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let list = schema["properties"].as_object().into_iter().flatten();
    list.map(|(name, field)| {
        let note = if required.contains(&name.as_str()) { "" } else { "optional" };
        Row { name: name.clone(), note: note.to_owned(), kind: kind(field), meaning: meaning(field) }
    })
    .collect()
}

/// What a schema says of itself, with its bounds.
pub(super) fn meaning(schema: &Value) -> Vec<Piece> {
    let text = schema["description"].as_str().unwrap_or_default();
    let mut pieces = prose(text);
    let bounds = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters: at least"),
        ("maxLength", "characters: at most"),
        ("minItems", "entries: at least"),
        ("maxItems", "entries: at most"),
        ("pattern", "pattern"),
        ("default", "default"),
    ];
    for (keyword, told) in bounds {
        match &schema[keyword] {
            Value::Null => {}
            Value::String(text) => pieces.extend([words(format!(" {told} ")), code(text)]),
            other => pieces.extend([words(format!(" {told} ")), code(other.to_string())]),
        }
    }
    pieces
}

/// A type in a line: `string or null`, `list of …`.
pub(super) fn kind(schema: &Value) -> Vec<Piece> {
    if let Some(target) = schema["$ref"].as_str() {
        return vec![link(name_of(target), "schema")];
    }
    if let Some(value) = schema.get("const") {
        return vec![code(plain(value))];
    }
    for keyword in ["enum", "oneOf", "anyOf"] {
        if let Some(options) = schema[keyword].as_array() {
            let each = |option: &Value| if keyword == "enum" { vec![code(plain(option))] } else { kind(option) };
            return joined(options.iter().map(each), " or ");
        }
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    if types.is_empty() {
        return vec![words(if schema["properties"].is_object() { "object" } else { "any" })];
    }
    let each = types.iter().map(|name| match *name {
        "array" => [words("list of ")].into_iter().chain(kind(&schema["items"])).collect(),
        "object" if is_map(schema) => {
            [words("map of ")].into_iter().chain(kind(&schema["additionalProperties"])).collect()
        }
        "string" | "integer" => match schema["format"].as_str() {
            Some(format) => vec![words(format!("{name} ({format})"))],
            None => vec![words(*name)],
        },
        name => vec![words(name)],
    });
    joined(each, " or ")
}

fn is_map(schema: &Value) -> bool {
    schema["additionalProperties"].as_object().is_some_and(|inner: &Map<_, _>| !inner.is_empty())
}

fn joined(parts: impl Iterator<Item = Vec<Piece>>, between: &str) -> Vec<Piece> {
    let mut all = Vec::new();
    for part in parts {
        if !all.is_empty() {
            all.push(words(between));
        }
        all.extend(part);
    }
    all
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn name_of(target: &str) -> &str {
    target.strip_prefix("#/components/schemas/").unwrap_or(target)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(schema: &Value) -> String {
        kind(schema).into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn a_type_is_said_in_a_line() {
        for (schema, told) in [
            (json!({ "type": "string", "format": "uuid" }), "string (uuid)"),
            (json!({ "type": ["string", "null"] }), "string or null"),
            (json!({ "type": "array", "items": { "$ref": "#/components/schemas/Thing" } }), "list of Thing"),
            (json!({ "type": "object", "additionalProperties": { "type": "string" } }), "map of string"),
            (json!({ "anyOf": [{ "$ref": "#/components/schemas/Thing" }, { "type": "null" }] }), "Thing or null"),
            (json!({ "enum": ["a", 1] }), "a or 1"),
            (json!({ "oneOf": [{ "const": "a" }, { "const": "b" }] }), "a or b"),
            (json!(true), "any"),
        ] {
            assert_eq!(text(&schema), told);
        }
    }

    #[test]
    fn code_in_prose_is_told_apart() {
        let pieces = prose("`limit` over 200 is `200`.");
        let told: Vec<_> = pieces.iter().map(|p| (p.text.as_str(), p.is_code)).collect();
        assert_eq!(told, [("limit", true), (" over 200 is ", false), ("200", true), (".", false)]);
    }
}
