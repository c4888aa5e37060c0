//! The OpenAPI document says what the routes are, and no more.

use std::collections::BTreeSet;

use courant_api::ErrorCode;
use courant_server::http::v1;

use super::routes::ROUTES;
use crate::support::{Value, World, on_both_databases};

async fn the_document_has_every_route_with_its_errors_and_no_other(world: &World) {
    let document = world.api.get("/openapi.json").await.expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    let mut described = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            described.insert((method.to_uppercase(), path.clone()));
        }
    }
    let endpoints = v1::endpoints();
    let routes: BTreeSet<_> = endpoints.iter().map(|e| (e.method().to_string(), e.path().to_owned())).collect();
    assert_eq!(described, routes);

    for endpoint in &endpoints {
        let operation = &document["paths"][endpoint.path()][endpoint.method().as_str().to_lowercase()];
        let place = format!("{} {}", endpoint.method(), endpoint.path());
        let responses = operation["responses"].as_object().unwrap();
        let mut told = BTreeSet::new();
        for (status, response) in responses {
            for code in response["x-error-codes"].as_array().into_iter().flatten() {
                told.insert((status.clone(), code.as_str().unwrap().to_owned()));
            }
        }
        let codes: BTreeSet<_> =
            endpoint.error_codes().into_iter().map(|c| (c.status().to_string(), c.as_str())).collect();
        assert_eq!(told, codes, "{place}");
        let sample = ROUTES.iter().find(|r| r.method == endpoint.method().as_str() && r.template == endpoint.path());
        let status = sample.unwrap().status.to_string();
        assert!(responses.contains_key(&status), "{place} does not tell of its {status}");
    }
}

async fn the_document_knows_every_error_code(world: &World) {
    let document = world.api.get("/openapi.json").await.expect(200);
    let text = document.to_string();
    for code in ErrorCode::ALL {
        assert!(text.contains(&format!("\"{}\"", code.as_str())), "{}", code.as_str());
    }
    let reference = |schema: &Value| schema["$ref"].as_str().map(str::to_owned);
    let refusal =
        &document["paths"]["/api/v1/events"]["get"]["responses"]["401"]["content"]["application/json"]["schema"];
    assert_eq!(reference(refusal).as_deref(), Some("#/components/schemas/ErrorBody"));
}

on_both_databases! {
    the_document_has_every_route_with_its_errors_and_no_other,
    the_document_knows_every_error_code,
}
