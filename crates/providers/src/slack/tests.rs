//! The Slack provider as a whole: its goldens and its request.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::golden::{self, Case, object};

fn auth() -> Value {
    json!({ "botToken": "xoxb-secret-token" })
}

fn cases() -> Vec<Case> {
    let config = || json!({ "defaultChannel": "#ops", "channelLabelKey": "slack" });
    let mut cases: Vec<_> = golden::samples()
        .into_iter()
        .map(|(name, notification)| Case { name, notification, config: config() })
        .collect();
    let mut labelled = golden::samples().swap_remove(0).1;
    labelled.labels = BTreeMap::from([("slack".to_owned(), "C0TEAM".to_owned())]);
    cases.push(Case { name: "channel_by_label", notification: labelled, config: config() });
    cases
}

#[test]
fn every_rendering_is_its_golden() {
    golden::compare(&Slack, &cases(), &auth());
}

#[test]
fn every_rendering_is_two_blocks_within_slacks_limits() {
    for case in cases() {
        let request = golden::render(&Slack, &case, &auth());
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(courant_testkit::slack::faults(&body), [""; 0], "{}", case.name);
        let has_button = body.pointer("/attachments/0/blocks/0/accessory").is_some();
        let asks = case.notification.event_type.ends_with("_awaiting_confirmation") && case.notification.url.is_some();
        assert_eq!(has_button, asks, "{}", case.name);
    }
}

#[test]
fn the_token_travels_in_the_authorization_header_only() {
    for case in cases() {
        let request = golden::render(&Slack, &case, &auth());
        let value = request.headers.get(AUTHORIZATION).unwrap();
        assert_eq!(value, "Bearer xoxb-secret-token");
        assert!(value.is_sensitive());
        assert!(!String::from_utf8(request.body.clone()).unwrap().contains("xoxb"));
        assert!(!format!("{request:?}").contains("xoxb"));
        assert_eq!(request.target, Target::Operator);
    }
}

#[test]
fn the_method_is_appended_to_the_operators_address() {
    let case = cases().swap_remove(0);
    for (base, url) in [
        ("https://slack.com/api", "https://slack.com/api/chat.postMessage"),
        ("https://slack.com/api/", "https://slack.com/api/chat.postMessage"),
        ("http://127.0.0.1:9101", "http://127.0.0.1:9101/chat.postMessage"),
    ] {
        let Outgoing::Http(request) = Slack
            .render(&Render {
                notification: &case.notification,
                integration_name: "ops-alerts",
                config: &object(case.config.clone()),
                auth: &object(auth()),
                now: Timestamp::from_micros(golden::NOW),
                settings: &crate::Settings { slack_api_base_url: base.parse().unwrap() },
            })
            .unwrap();
        assert_eq!(request.url.as_str(), url);
    }
}

#[test]
fn secrets_are_neither_made_nor_lost() {
    assert_eq!(Slack.complete_auth_config(Map::new(), [7; 32]), (Map::new(), None));
    assert_eq!(Slack.validate_auth_config(&Map::new()).unwrap_err().pointer, "/botToken");
    let current = object(auth());
    assert_eq!(Slack.merge_auth_config(&current, &Map::new()), current);
    let other = object(json!({ "botToken": "xoxb-other" }));
    assert_eq!(Slack.merge_auth_config(&current, &other), other);
}

#[test]
fn a_stored_configuration_that_no_longer_fits_fails_with_its_class() {
    let notification = golden::samples().swap_remove(0).1;
    let render = |config: Value, auth: Value| {
        Slack
            .render(&Render {
                notification: &notification,
                integration_name: "ops-alerts",
                config: &object(config),
                auth: &object(auth),
                now: Timestamp::from_micros(golden::NOW),
                settings: &golden::settings(),
            })
            .unwrap_err()
            .class
    };
    assert_eq!(render(json!({}), auth()), FailureClass::Destination);
    assert_eq!(render(json!({ "defaultChannel": "#ops" }), json!({})), FailureClass::Credential);
}
