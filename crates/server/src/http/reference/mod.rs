//! The reference for people: one page of HTML, made from the OpenAPI document, that needs neither scripts nor other servers.
//!
//! It must never know anything of a route that the document does not say, and never put a text into the page unescaped.

mod model;
mod schema;

use std::sync::OnceLock;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use courant_api::{ErrorCode, Permission};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use model::{Chapter, ErrorRow, Named, chapters, schemas};

const STYLE: &str = include_str!("../../../templates/reference.css");

#[derive(Template)]
#[template(path = "reference.html")]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    style: &'a str,
    chapters: Vec<Chapter>,
    schemas: Vec<Named>,
    errors: Vec<ErrorRow>,
    permissions: Vec<Named>,
}

/// The page of an OpenAPI document.
pub fn page(document: &Value) -> Result<String, askama::Error> {
    let info = |key: &str| document["info"][key].as_str().unwrap_or_default();
    let permissions = Permission::LIST.iter().map(|permission| Named::plain(permission.as_str(), permission.meaning()));
    Page {
        title: info("title"),
        version: info("version"),
        style: STYLE,
        chapters: chapters(document),
        schemas: schemas(document),
        errors: ErrorCode::ALL.iter().map(|code| ErrorRow::of(*code)).collect(),
        permissions: permissions.collect(),
    }
    .render()
}

/// What a browser may do with the page: apply its one style, and nothing else.
pub fn policy() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let hash = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
        format!(
            "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const EVIL: &str = "</code><script>alert('x')</script>\" onload=\"x";

    fn hostile() -> Value {
        let field = json!({ "type": "string", "description": EVIL, "enum": [EVIL], "default": EVIL });
        json!({
            "info": { "title": EVIL, "version": EVIL },
            "tags": [{ "name": EVIL }],
            "paths": { EVIL: { "get": {
                "operationId": EVIL, "summary": EVIL, "description": format!("`{EVIL}`"), "tags": [EVIL],
                "x-permission": { "permissions": [EVIL], "on": EVIL },
                "parameters": [{ "name": EVIL, "in": EVIL, "required": true, "description": EVIL, "schema": field }],
                "requestBody": { "content": { "application/json": { "schema": { "$ref": format!("#/components/schemas/{EVIL}") } } } },
                "responses": {
                    "200": { "description": EVIL, "content": { EVIL: { "schema": { "type": "object", "properties": { EVIL: field } } } } },
                    "400": { "x-error-codes": [EVIL] },
                },
                "x-websocket": { "closeCodes": [{ "code": 1000, "when": EVIL, "tryAgain": EVIL }] },
            } } },
            "components": { "schemas": { EVIL: { "description": EVIL, "type": "object", "properties": { EVIL: field } } } },
        })
    }

    #[test]
    fn whatever_the_document_says_is_text() {
        let page = page(&hostile()).unwrap();
        assert!(page.contains("alert("));
        for raw in [EVIL, "<script", "alert('", "\" onload"] {
            assert!(!page.contains(raw), "{raw} in\n{page}");
        }
    }

    #[test]
    fn a_document_that_says_nothing_gives_a_page() {
        assert!(page(&json!({})).unwrap().contains("</html>"));
    }

    #[test]
    fn the_style_in_the_page_is_the_one_that_its_policy_allows() {
        let page = page(&json!({})).unwrap();
        let (_, rest) = page.split_once("<style>").unwrap();
        let (style, _) = rest.split_once("</style>").unwrap();
        assert!(policy().contains(&STANDARD.encode(Sha256::digest(style.as_bytes()))));
        assert!(!style.contains("url(") && !style.contains("@import"));
    }
}
