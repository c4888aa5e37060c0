//! What stands before all routes of an address: who the client is, which pages may read answers, and whether browsers are
//! to insist on TLS.
//!
//! It must never answer for a route, but for the browser's own question whether a page may ask.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::{HeaderName, HeaderValue, Method, header};
use ipnet::IpNet;
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::client::{Client, Peer, address};
use super::header::IDEMPOTENCY_KEY;
use super::reply::IDEMPOTENCY_REPLAYED;
use super::request_id::{TRACEPARENT, X_CORRELATION_ID, X_REQUEST_ID};

const METHODS: [Method; 5] = [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// Request headers that a page may send.
const ACCEPTED: [HeaderName; 8] = [
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    IDEMPOTENCY_KEY,
    X_REQUEST_ID,
    X_CORRELATION_ID,
    TRACEPARENT,
];

/// Response headers that a page may read.
const EXPOSED: [HeaderName; 5] =
    [header::ETAG, header::RETRY_AFTER, X_REQUEST_ID, X_CORRELATION_ID, IDEMPOTENCY_REPLAYED];

/// How long a browser may keep what it was told of an origin.
const PREFLIGHT_AGE: Duration = Duration::from_mins(10);

/// The settings of what stands before the routes.
#[derive(Clone, Debug, Default)]
pub struct Front {
    /// Whose word on a client's address is taken.
    pub trusted_proxies: Vec<IpNet>,
    /// The origins whose pages may read answers.
    pub cors_origins: Vec<HeaderValue>,
    /// People reach the server by `https`, so browsers are told to use nothing else.
    pub https: bool,
}

impl Front {
    /// These routes behind it.
    pub fn before(self, routes: Router) -> Router {
        let cors = self.cors();
        let routes = match cors {
            Some(cors) => routes.layer(cors),
            None => routes,
        };
        routes.layer(from_fn_with_state(Arc::new(self), surround))
    }

    /// Credentials travel in `Authorization`, never in cookies, so no page may use a browser's own.
    fn cors(&self) -> Option<CorsLayer> {
        (!self.cors_origins.is_empty()).then(|| {
            CorsLayer::new()
                .allow_origin(AllowOrigin::list(self.cors_origins.iter().cloned()))
                .allow_methods(METHODS)
                .allow_headers(ACCEPTED)
                .expose_headers(EXPOSED)
                .max_age(PREFLIGHT_AGE)
        })
    }
}

async fn surround(State(front): State<Arc<Front>>, mut request: Request, next: Next) -> Response {
    if let Some(Peer(peer)) = request.extensions().get().copied() {
        let client = address(peer, request.headers(), &front.trusted_proxies);
        request.extensions_mut().insert(Client(client));
    }
    let mut response = next.run(request).await;
    if front.https {
        let year = HeaderValue::from_static("max-age=31536000");
        response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
    response
}
