//! The webhook provider as a whole: its goldens, its signature and its secret.

use courant_api::announced::AnnouncedType;
use serde_json::{Value, json};

use super::*;
use crate::golden::{self, Case, object};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const URL: &str = "https://hooks.example.com/in/secret-path";

fn auth() -> Value {
    json!({ "secret": SECRET })
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<_> = golden::samples()
        .into_iter()
        .map(|(name, notification)| Case { name, notification, config: json!({ "url": URL }) })
        .collect();
    let generic = || golden::samples().swap_remove(0).1;
    cases.push(Case {
        name: "cloudevent",
        notification: generic(),
        config: json!({ "url": URL, "format": "cloudevent" }),
    });
    cases.push(Case {
        name: "cloudevent_announced",
        notification: golden::announced_sample(AnnouncedType::DeploymentFailed),
        config: json!({ "url": URL, "format": "cloudevent" }),
    });
    let report = golden::announced_sample(AnnouncedType::ExploreFindingsChanged);
    cases.push(Case {
        name: "cloudevent_report",
        notification: Notification { event_id: None, sequence: None, ..report },
        config: json!({ "url": URL, "format": "cloudevent" }),
    });
    cases.push(Case {
        name: "own_headers",
        notification: generic(),
        config: json!({ "url": URL, "headers": { "X-Tenant": "acme" } }),
    });
    cases
}

#[test]
fn every_rendering_is_its_golden() {
    golden::compare(&Webhook, &cases(), &auth());
}

#[test]
fn the_reference_library_signs_every_rendering_alike() {
    let reference = standardwebhooks::Webhook::new(SECRET).unwrap();
    for case in cases() {
        let request = golden::render(&Webhook, &case, &auth());
        let header = |name: &str| request.headers.get(name).unwrap().to_str().unwrap();
        let time = header("webhook-timestamp").parse().unwrap();
        assert_eq!(header("webhook-id"), case.notification.id.to_string());
        assert_eq!(time, golden::NOW / 1_000_000);
        assert_eq!(header("webhook-signature"), reference.sign(header("webhook-id"), time, &request.body).unwrap());
        assert_eq!(request.target, Target::Tenant);
    }
}

#[test]
fn the_payload_arrives_byte_for_byte_in_both_formats() {
    let payload = r#"{ "z": 1.0, "a":123456789012345678901234567890,"e":1e400 , "t":"\u00e9" }"#;
    for format in ["notification", "cloudevent"] {
        let case = Case {
            name: format,
            notification: golden::notification("invoice.paid", "invoice", "inv_42", "Invoice 42", payload),
            config: json!({ "url": URL, "format": format }),
        };
        let body = String::from_utf8(golden::render(&Webhook, &case, &auth()).body).unwrap();
        assert!(body.contains(payload), "{body}");
    }
}

#[test]
fn a_notification_without_event_has_no_cloudevent() {
    let mut notification = golden::samples().swap_remove(0).1;
    notification.event = None;
    let error = Webhook
        .render(&Render {
            notification: &notification,
            integration_name: "ops-alerts",
            config: &object(json!({ "url": URL, "format": "cloudevent" })),
            auth: &object(auth()),
            now: Timestamp::from_micros(golden::NOW),
            settings: &golden::settings(),
        })
        .unwrap_err();
    assert_eq!(error.class, FailureClass::Payload);
}

#[test]
fn a_secret_is_made_only_when_none_is_given() {
    let (auth, shown) = Webhook.complete_auth_config(Map::new(), [7; 32]);
    assert_eq!(auth.get("secret").and_then(Value::as_str), shown.as_deref());
    Webhook.validate_auth_config(&auth).unwrap();
    assert_ne!(Webhook.complete_auth_config(Map::new(), [8; 32]).1, shown);

    let given = object(json!({ "secret": SECRET }));
    assert_eq!(Webhook.complete_auth_config(given.clone(), [7; 32]), (given, None));
}

#[test]
fn secrets_of_another_shape_are_refused_without_being_quoted() {
    for (auth, pointer) in [
        (json!({}), "/secret"),
        (json!({ "secret": null }), "/secret"),
        (json!({ "secret": ["whsec_"] }), "/secret"),
        (json!({ "secret": "hunter2" }), "/secret"),
        (json!({ "secret": SECRET, "token": "hunter2" }), "/token"),
    ] {
        let error = Webhook.validate_auth_config(&object(auth)).unwrap_err();
        assert_eq!(error.pointer, pointer);
        assert!(!error.to_string().contains("hunter2"));
    }
}

#[test]
fn a_patch_that_leaves_the_secret_out_keeps_it() {
    let current = object(auth());
    assert_eq!(Webhook.merge_auth_config(&current, &Map::new()), current);
    let other = object(json!({ "secret": Secret::text(&[1; 32]) }));
    assert_eq!(Webhook.merge_auth_config(&current, &other), other);
}

#[test]
fn a_stored_configuration_that_no_longer_fits_fails_with_its_class() {
    let notification = golden::samples().swap_remove(0).1;
    let render = |config: Value, auth: Value| {
        Webhook
            .render(&Render {
                notification: &notification,
                integration_name: "ops-alerts",
                config: &object(config),
                auth: &object(auth),
                now: Timestamp::from_micros(golden::NOW),
                settings: &golden::settings(),
            })
            .unwrap_err()
    };
    assert_eq!(render(json!({}), auth()).class, FailureClass::Destination);
    assert_eq!(render(json!({ "url": URL }), json!({})).class, FailureClass::Credential);
}
