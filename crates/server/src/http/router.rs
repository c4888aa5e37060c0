//! From the list of endpoints to the router that serves them.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter};
use courant_api::ErrorCode;
use http::{HeaderMap, HeaderValue, header};
use tower::ServiceExt as _;

use super::client::Client;
use super::endpoint::Endpoint;
use super::error::ApiError;
use super::exchange::{Authenticate, Call};
use super::observe::{UNMATCHED, label, observe};
use super::path;
use super::request_id::RequestMeta;

/// Serves these endpoints, and refuses everything else in the error envelope.
///
/// # Panics
/// When an endpoint is wrong in a way that only the code can be: no summary, two of one path and method, unknown
/// fields let pass.
pub fn router<A: Authenticate>(endpoints: Vec<Endpoint<A>>, app: &Arc<A>) -> Router {
    let mut paths: Vec<(&'static str, MethodRouter, Vec<&'static str>)> = Vec::new();
    for endpoint in endpoints {
        let mistakes = endpoint.route.mistakes();
        assert!(mistakes.is_empty(), "{} {}: {mistakes:?}", endpoint.route.method, endpoint.route.path);
        let (path, method) = (endpoint.route.path, label(&endpoint.route.method));
        let filter = MethodFilter::try_from(endpoint.route.method.clone());
        let filter = filter.unwrap_or_else(|_| panic!("{path}: no route can have this method"));
        let place = paths.iter().position(|(known, ..)| *known == path).unwrap_or_else(|| {
            paths.push((path, MethodRouter::new(), Vec::new()));
            paths.len() - 1
        });
        let (_, routes, methods) = &mut paths[place];
        methods.push(method);
        if method == "GET" {
            methods.push("HEAD");
        }
        *routes = std::mem::take(routes).on(filter, serve(endpoint, Arc::clone(app)));
    }

    let mut inner = Router::new();
    for (path, routes, methods) in paths {
        let allowed = methods.join(", ");
        let refuse = move |request: Request| wrong_method(request, path, allowed.clone());
        inner = inner.route(&path::to_inner(path), routes.fallback(refuse));
    }
    let inner = inner.fallback(unknown_path);
    Router::new().fallback(move |request: Request| enter(inner.clone(), request))
}

/// Gives the request its ids and its path the router's form.
async fn enter(inner: Router, mut request: Request) -> Response {
    let client = request.extensions().get().map(|Client(address)| *address);
    let meta = RequestMeta { client, ..RequestMeta::from_headers(request.headers()) };
    request.extensions_mut().insert(meta);
    let Some(uri) = path::rewrite(request.uri()) else {
        return unknown_path(request).await;
    };
    *request.uri_mut() = uri;
    match inner.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The axum handler of one endpoint.
fn serve<A: Authenticate>(
    endpoint: Endpoint<A>,
    app: Arc<A>,
) -> impl Fn(Request) -> std::pin::Pin<Box<dyn Future<Output = Response> + Send>> + Clone + Send + Sync + 'static {
    let route = Arc::new(endpoint.route);
    let run = Arc::new(endpoint.run);
    move |mut request| {
        let (app, route, run) = (Arc::clone(&app), Arc::clone(&route), Arc::clone(&run));
        Box::pin(async move {
            let meta = meta(&mut request);
            let (method, path) = (label(&route.method), route.path);
            observe(meta.clone(), method, path, async move {
                let answer = run(Call { app, route: Arc::clone(&route), meta, request }).await;
                answer.inspect_err(|error| route.assert_documented_error(error.code()))
            })
            .await
        })
    }
}

async fn unknown_path(mut request: Request) -> Response {
    let method = label(request.method());
    observe(meta(&mut request), method, UNMATCHED, async { Err(ApiError::not_found("path")) }).await
}

async fn wrong_method(mut request: Request, path: &'static str, allowed: String) -> Response {
    let method = label(request.method());
    observe(meta(&mut request), method, path, async move {
        let refusal = ApiError::new(ErrorCode::MethodNotAllowed, format!("this path takes {allowed}"));
        let mut response = refusal.into_response();
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_str(&allowed).map_err(ApiError::internal)?);
        Ok(response)
    })
    .await
}

fn meta(request: &mut Request) -> RequestMeta {
    let known = request.extensions_mut().remove::<RequestMeta>();
    known.unwrap_or_else(|| RequestMeta::from_headers(&HeaderMap::new()))
}
