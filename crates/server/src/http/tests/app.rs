//! A small application with one endpoint for each thing that the machinery does.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use courant_api::event::Json;
use courant_api::{ErrorCode, Page, Permission};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower::ServiceExt as _;
use uuid::Uuid;

use crate::http::{Access, ApiError, Authenticate, Cx as AnyCx, Endpoint, Entry, Input, Open, Reply, router};

/// The credential that the application knows.
pub(super) const CREDENTIAL: &str = "cak_good";

#[derive(Default)]
pub(super) struct App {
    /// What the handlers saw, in order.
    pub(super) seen: Mutex<Vec<String>>,
}

#[derive(Clone)]
pub(super) struct Caller(String);

impl Authenticate for App {
    type Caller = Caller;

    async fn authenticate(&self, credential: Option<&str>) -> Result<Caller, ApiError> {
        match credential {
            Some(CREDENTIAL) => Ok(Caller("Ada".to_owned())),
            _ => Err(ApiError::unauthenticated()),
        }
    }

    fn count(&self, _: &Caller) -> Result<(), ApiError> {
        Ok(())
    }

    fn confine(&self, _: &Caller, _: &Entry<'_>) -> Result<(), ApiError> {
        Ok(())
    }
}

type Cx = AnyCx<App>;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ThingPath {
    /// The thing.
    id: Uuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct VersionPath {
    /// An event type.
    r#type: String,
    /// One of its versions.
    n: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ThingsQuery {
    /// Type prefixes.
    #[serde(default)]
    types: Vec<String>,
    /// Only things of this workspace.
    workspace_id: Option<courant_api::WorkspaceId>,
    /// The most things of a page.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<u16>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Part {
    name: String,
    size: Option<u8>,
    payload: Json,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ThingCreate {
    parts: Vec<Part>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Comment {
    comment: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThingView {
    name: String,
    /// The first part as it was sent.
    part: Option<Part>,
}

impl App {
    fn note(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }
}

fn view(name: impl Into<String>) -> ThingView {
    ThingView { name: name.into(), part: None }
}

async fn list(cx: Cx, input: Input<(), ThingsQuery, ()>) -> Result<Reply<Page<ThingView>>, ApiError> {
    let ThingsQuery { types, workspace_id, limit } = input.query;
    cx.app.note(format!("{types:?} {workspace_id:?} {limit:?}"));
    Ok(Reply::ok(Page { items: vec![view(cx.caller.0)], next_cursor: None, has_more: false }))
}

async fn get(_: Cx, input: Input<ThingPath, (), ()>) -> Result<Reply<ThingView>, ApiError> {
    Ok(Reply::ok(view(input.path.id.to_string())).etag(7))
}

async fn create(cx: Cx, mut input: Input<(), (), ThingCreate>) -> Result<Reply<ThingView>, ApiError> {
    if let Some(idempotency) = &cx.idempotency {
        cx.app.note(format!("{} {:x?}", idempotency.key, idempotency.fingerprint));
        if idempotency.key == "again" {
            return Ok(Reply::text(StatusCode::CREATED, r#"{"name": "stored"}"#.to_owned()).etag(1).replayed());
        }
    }
    let part = input.body.parts.drain(..).next();
    Ok(Reply::created(ThingView { name: "new".to_owned(), part }))
}

async fn patch(cx: Cx, input: Input<ThingPath, (), Comment>) -> Result<Reply<ThingView>, ApiError> {
    cx.app.note(format!("{:?} {:?}", cx.if_match, input.body.comment));
    if cx.if_match == Some(vec![1]) {
        return Err(ApiError::new(ErrorCode::VersionConflict, "the thing has version 7"));
    }
    Ok(Reply::ok(view("patched")))
}

async fn delete(_: Cx, _: Input<ThingPath, (), ()>) -> Result<Reply<()>, ApiError> {
    Ok(Reply::no_content())
}

async fn claim(cx: Cx, input: Input<ThingPath, (), Comment>) -> Result<Reply<ThingView>, ApiError> {
    cx.app.note(format!("{:?}", cx.request));
    Ok(Reply::ok(view(input.body.comment.unwrap_or_default())))
}

async fn retry(_: Cx, _: Input<(), (), ()>) -> Result<Reply<ThingView>, ApiError> {
    Ok(Reply::ok(view("all retried")))
}

async fn version(_: Cx, input: Input<VersionPath, (), ()>) -> Result<Reply<ThingView>, ApiError> {
    Ok(Reply::ok(view(format!("{} {}", input.path.r#type, input.path.n))))
}

async fn health(_: AnyCx<App, Open>, _: Input<(), (), ()>) -> Result<Reply<String>, ApiError> {
    Ok(Reply::text(StatusCode::OK, "alive\n".to_owned()))
}

async fn fail(_: Cx, _: Input<(), (), ()>) -> Result<Reply<ThingView>, ApiError> {
    Err(ApiError::internal("the password is hunter2"))
}

async fn busy(_: Cx, _: Input<(), (), ()>) -> Result<Reply<ThingView>, ApiError> {
    Err(ApiError::unavailable("the queue is full").retry_after(7))
}

async fn explode(_: Cx, _: Input<(), (), ()>) -> Result<Reply<ThingView>, ApiError> {
    panic!("a bug")
}

async fn stray(_: Cx, _: Input<(), (), ()>) -> Result<Reply<ThingView>, ApiError> {
    Err(ApiError::new(ErrorCode::Conflict, "nobody documented this"))
}

const READ: Access = Access::On(&[Permission::EventsRead], "the workspace given, else the tenant");

fn payload_faults(pointer: &str) -> Option<ErrorCode> {
    pointer.contains("/payload").then_some(ErrorCode::InvalidEventPayload)
}

pub(super) fn endpoints() -> Vec<Endpoint<App>> {
    let list = vec![
        Endpoint::get("/api/v1/things", list).summary("Lists things").access(READ),
        Endpoint::post("/api/v1/things", create)
            .summary("Creates a thing")
            .description("With its parts.")
            .access(READ)
            .created()
            .etag()
            .body_limit(2000)
            .payload_faults(payload_faults)
            .errors(&[ErrorCode::InvalidEventPayload]),
        Endpoint::get("/api/v1/things/{id}", get).summary("Gets a thing").access(READ).etag().missing("thing"),
        Endpoint::patch("/api/v1/things/{id}", patch).summary("Changes a thing").access(READ).missing("thing"),
        Endpoint::delete("/api/v1/things/{id}", delete).summary("Deletes a thing").access(READ).missing("thing"),
        Endpoint::post("/api/v1/things/{id}:claim", claim)
            .summary("Claims a thing")
            .access(Access::Caller)
            .body_optional()
            .missing("thing"),
        Endpoint::post("/api/v1/things:retry", retry).summary("Retries all").access(READ).without_idempotency_key(),
        Endpoint::get("/api/v1/event-types/{type}/versions/{n}", version).summary("A version").access(Access::Caller),
        Endpoint::get("/healthz", health).summary("Whether the process lives").produces("text/plain"),
        Endpoint::get("/api/v1/fail", fail).summary("Fails").access(Access::Caller),
        Endpoint::get("/api/v1/busy", busy).summary("Is busy").access(Access::Caller),
        Endpoint::get("/api/v1/explode", explode).summary("Panics").access(Access::Caller),
        Endpoint::get("/api/v1/stray", stray).summary("Strays").access(Access::Caller),
    ];
    list.into_iter().map(|endpoint| endpoint.tag("things")).collect()
}

/// An answer that has arrived.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Status, code and message of a refusal, whose envelope is checked on the way.
    pub(super) fn refusal(&self) -> (u16, String, String) {
        let json = self.json();
        assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["error"]);
        let error = json["error"].as_object().unwrap();
        assert_eq!(error.keys().collect::<Vec<_>>(), ["code", "message", "details"]);
        assert!(error["details"].is_object());
        assert_eq!(self.header("content-type"), Some("application/json"));
        let text = |key: &str| error[key].as_str().unwrap().to_owned();
        (self.status, text("code"), text("message"))
    }
}

pub(super) struct Server {
    pub(super) app: Arc<App>,
    router: Router,
}

impl Server {
    pub(super) fn new() -> Self {
        let app = Arc::new(App::default());
        Self { router: router(endpoints(), &app), app }
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Answer {
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    /// Sends with a good credential, and a JSON body unless it is empty.
    pub(super) async fn ask(&self, method: Method, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(target).header("authorization", bearer());
        if !body.is_empty() && headers.iter().all(|(name, _)| *name != "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }

    pub(super) async fn get(&self, target: &str) -> Answer {
        self.ask(Method::GET, target, &[], "").await
    }

    pub(super) async fn post(&self, target: &str, body: &str) -> Answer {
        self.ask(Method::POST, target, &[], body).await
    }

    pub(super) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.app.seen.lock().unwrap())
    }
}

pub(super) fn bearer() -> String {
    format!("Bearer {CREDENTIAL}")
}

pub(super) const ID: &str = "0197f3a0-0000-7000-8000-000000000001";
