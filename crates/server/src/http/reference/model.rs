//! The OpenAPI document as chapters, operations and tables.

use courant_api::ErrorCode;
use serde_json::Value;

use super::schema::{Piece, Shape, code, kind, link, meaning, prose, shape};

/// The operations of one tag.
pub(super) struct Chapter {
    pub(super) name: String,
    pub(super) operations: Vec<Operation>,
}

/// One route.
pub(super) struct Operation {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) summary: String,
    pub(super) description: Vec<Piece>,
    pub(super) access: Vec<Piece>,
    pub(super) parameters: Vec<Row>,
    pub(super) body: Option<Shape>,
    pub(super) answers: Vec<Answer>,
    pub(super) closes: Vec<Row>,
    pub(super) errors: Vec<Refusal>,
}

/// A parameter, a field or a close code.
pub(super) struct Row {
    pub(super) name: String,
    pub(super) note: String,
    pub(super) kind: Vec<Piece>,
    pub(super) meaning: Vec<Piece>,
}

/// A success.
pub(super) struct Answer {
    pub(super) status: String,
    pub(super) meaning: Vec<Piece>,
    pub(super) shape: Shape,
}

/// A code that an operation refuses with.
pub(super) struct Refusal {
    pub(super) status: String,
    pub(super) code: String,
}

/// A line of the error table.
pub(super) struct ErrorRow {
    pub(super) code: String,
    pub(super) status: u16,
    pub(super) meaning: Vec<Piece>,
}

impl ErrorRow {
    pub(super) fn of(code: ErrorCode) -> Self {
        Self { code: code.as_str(), status: code.status(), meaning: prose(code.meaning()) }
    }
}

/// Something with a name of its own.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) meaning: Vec<Piece>,
    pub(super) shape: Shape,
}

impl Named {
    pub(super) fn plain(name: &str, meaning: &str) -> Self {
        Self { name: name.to_owned(), meaning: prose(meaning), shape: Shape::default() }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn map(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Every operation under its tag, in the document's order.
pub(super) fn chapters(document: &Value) -> Vec<Chapter> {
    let mut chapters: Vec<Chapter> =
        list(&document["tags"]).map(|tag| Chapter { name: text(&tag["name"]), operations: Vec::new() }).collect();
    for (path, item) in map(&document["paths"]) {
        for (method, found) in map(item) {
            let tag = text(&found["tags"][0]);
            if let Some(chapter) = chapters.iter_mut().find(|chapter| chapter.name == tag) {
                chapter.operations.push(operation(document, path, method, found));
            }
        }
    }
    chapters
}

/// Every schema that has a name.
pub(super) fn schemas(document: &Value) -> Vec<Named> {
    let all = &document["components"]["schemas"];
    map(all)
        .map(|(name, schema)| Named { name: name.clone(), meaning: meaning(schema), shape: shape(schema, all) })
        .collect()
}

fn operation(document: &Value, path: &str, method: &str, found: &Value) -> Operation {
    let all = &document["components"]["schemas"];
    let (mut answers, mut errors) = (Vec::new(), Vec::new());
    for (status, response) in map(&found["responses"]) {
        if response["x-error-codes"].is_array() {
            let codes = list(&response["x-error-codes"]);
            errors.extend(codes.map(|code| Refusal { status: status.clone(), code: text(code) }));
        } else {
            let content = map(&response["content"]).next();
            let shape = content.map(|(_, content)| shape(&content["schema"], all)).unwrap_or_default();
            let meaning = prose(response["description"].as_str().unwrap_or_default());
            answers.push(Answer { status: status.clone(), meaning, shape });
        }
    }
    let body = map(&found["requestBody"]["content"]).next();
    Operation {
        id: text(&found["operationId"]),
        method: method.to_ascii_uppercase(),
        path: path.to_owned(),
        summary: text(&found["summary"]),
        description: prose(found["description"].as_str().unwrap_or_default()),
        access: access(found),
        parameters: list(&found["parameters"]).map(|given| parameter(document, given)).collect(),
        body: body.map(|(_, content)| shape(&content["schema"], all)),
        answers,
        closes: list(&found["x-websocket"]["closeCodes"]).map(close).collect(),
        errors,
    }
}

fn access(found: &Value) -> Vec<Piece> {
    let needed = &found["x-permission"];
    if needed.is_object() {
        let mut pieces = prose("callers with ");
        for (i, permission) in list(&needed["permissions"]).enumerate() {
            pieces.extend(prose(if i > 0 { " and " } else { "" }));
            pieces.push(link(permission.as_str().unwrap_or_default(), "permission"));
        }
        pieces.extend(prose(" on "));
        pieces.extend(prose(needed["on"].as_str().unwrap_or_default()));
        return pieces;
    }
    let public = found["security"].as_array().is_some_and(Vec::is_empty);
    prose(if public { "everybody, without a credential" } else { "callers with a good credential" })
}

fn parameter(document: &Value, given: &Value) -> Row {
    let shared = given["$ref"].as_str().and_then(|target| document.pointer(target.trim_start_matches('#')));
    let found = shared.unwrap_or(given);
    let place = found["in"].as_str().unwrap_or_default();
    let optional = if found["required"] == true { "" } else { ", optional" };
    let mut said = prose(found["description"].as_str().unwrap_or_default());
    said.extend(meaning(&found["schema"]));
    Row { name: text(&found["name"]), note: format!("{place}{optional}"), kind: kind(&found["schema"]), meaning: said }
}

fn close(close: &Value) -> Row {
    let again = close["tryAgain"].as_str().unwrap_or_default();
    Row {
        name: close["code"].to_string(),
        note: String::new(),
        kind: [prose("try again: "), vec![code(again)]].into_iter().flatten().collect(),
        meaning: prose(close["when"].as_str().unwrap_or_default()),
    }
}
