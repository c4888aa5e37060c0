//! Golden files: what each provider says, word for word, in JSON files beside it.
//!
//! `COURANT_UPDATE_GOLDENS=1 cargo test -p courant-providers` writes them anew; read the difference before keeping it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use courant_api::Timestamp;
use courant_api::announced::{AnnouncedDeployment, AnnouncedFindings, AnnouncedType};
use courant_api::deployments::{DeploymentMode, FindingCounts, Origin, PlanSummary};
use courant_api::event::Json;
use courant_api::notify::{EventDetail, JOURNAL_EVENT, Notification, Subject};
use courant_core::announce::{Told, sample};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{HttpRequest, Outgoing, Provider, Render, Settings};

/// 2026-09-01T10:15:04.117Z.
pub(crate) const OCCURRED: i64 = 1_788_257_704_117_000;
/// Two seconds later, when the attempt is made.
pub(crate) const NOW: i64 = OCCURRED + 2_000_000;

/// One rendering to compare.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) notification: Notification,
    pub(crate) config: Value,
}

/// The notification of a journal event.
pub(crate) fn notification(event_type: &str, kind: &str, id: &str, name: &str, payload: &str) -> Notification {
    Notification {
        id: Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_00d1).into(),
        event_type: JOURNAL_EVENT.into(),
        event_id: Some(Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_00e1).into()),
        sequence: Some(4711),
        org_id: Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_00a1).into(),
        occurred_at: Timestamp::from_micros(OCCURRED),
        subject: Subject { kind: kind.into(), id: id.into(), name: name.into() },
        labels: BTreeMap::new(),
        url: None,
        deployment: None,
        stack: None,
        approval: None,
        task: None,
        dependent: None,
        findings: None,
        event: Some(EventDetail {
            event_type: event_type.into(),
            schema_version: 1,
            entity_type: kind.into(),
            entity_id: id.into(),
            workspace_id: Some(Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_00b1).into()),
            actor_id: None,
            correlation_id: Some("req-7".into()),
            causation_id: None,
            payload: Json::parse(payload).unwrap(),
        }),
    }
}

/// Notifications that every provider renders: of every announced type, in every variant, and of other events.
pub(crate) fn samples() -> Vec<(&'static str, Notification)> {
    let mut all = journal_samples();
    all.extend(AnnouncedType::ALL.iter().map(|announced| (announced.as_str(), announced_sample(*announced))));
    all.extend(variants());
    all
}

/// An announced type as the catalogue's example has it.
pub(crate) fn announced_sample(announced: AnnouncedType) -> Notification {
    let generic = notification("a.b", "a", "a", "a", "{}");
    let told = Told {
        id: generic.id,
        org_id: generic.org_id,
        at: generic.occurred_at,
        base_url: Some("https://courant.example.com"),
    };
    Notification { event_id: generic.event_id, sequence: generic.sequence, ..sample(told, announced) }
}

fn plan(deployment: &mut AnnouncedDeployment) -> &mut PlanSummary {
    deployment.plan_summary.as_mut().unwrap()
}

/// What the rendering of a type hangs on beside the type.
fn variants() -> Vec<(&'static str, Notification)> {
    use AnnouncedType as T;
    let deployment = |announced, change: fn(&mut AnnouncedDeployment)| {
        let mut notification = announced_sample(announced);
        change(notification.deployment.as_mut().unwrap());
        notification
    };
    let counts = |cycles, orphans, duplicates| FindingCounts { cycles, orphans, duplicates };
    let findings = |counts, previous, unchecked: &[&str]| {
        let mut notification = announced_sample(T::ExploreFindingsChanged);
        let unchecked = unchecked.iter().map(|check| (*check).to_owned()).collect();
        notification.findings = Some(AnnouncedFindings { counts, previous, unchecked });
        notification
    };
    let mut without_page = announced_sample(T::DeploymentAwaitingConfirmation);
    without_page.url = None;
    let mut dependent_without_page = announced_sample(T::DependentTriggerFailed);
    dependent_without_page.url = None;
    let mut gate = announced_sample(T::ApprovalRequested);
    gate.approval.as_mut().unwrap().comment = Some("May it be renewed before Friday?".into());
    let mut in_slack = announced_sample(T::ApprovalRejected);
    let decided = in_slack.approval.as_mut().unwrap();
    (decided.channel, decided.comment) = (Some("slack".into()), Some("Not before the audit".into()));
    let mut blocked = announced_sample(T::TaskVerificationFailed);
    let task = blocked.task.as_mut().unwrap();
    (task.blocked, task.consecutive_failures, task.reason) = (Some(true), Some(3), Some("2 of 40 tests fail".into()));
    let mut unreadable = announced_sample(T::DeploymentFailed);
    unreadable.subject.name = "*a* <!channel> & <https://evil.example|click>\n```x``` \u{202e}~gone~".into();
    let told = unreadable.deployment.as_mut().unwrap();
    told.error = Some("<!here> *boom* &amp; `rm -rf`\n> quoted".into());
    told.commit_message = Some("<@U0001> merged\nand more".into());
    vec![
        ("deployment_awaiting_without_page", without_page),
        ("deployment_succeeded_plan_only", deployment(T::DeploymentSucceeded, |d| d.read_only = true)),
        (
            "deployment_succeeded_no_changes",
            deployment(T::DeploymentSucceeded, |d| {
                *plan(d) = PlanSummary {
                    add: 0,
                    change: 0,
                    destroy: 0,
                    has_changes: Some(false),
                    complete: true,
                    gap_reasons: Vec::new(),
                };
            }),
        ),
        (
            "deployment_succeeded_incomplete",
            deployment(T::DeploymentSucceeded, |d| {
                let reasons = ["a module was not read", "the state is locked", "a module was not read"];
                plan(d).complete = false;
                plan(d).gap_reasons = reasons.map(str::to_owned).to_vec();
            }),
        ),
        ("deployment_succeeded_without_plan", deployment(T::DeploymentSucceeded, |d| d.plan_summary = None)),
        (
            "command_succeeded",
            deployment(T::DeploymentSucceeded, |d| (d.mode, d.plan_summary) = (DeploymentMode::Raw, None)),
        ),
        ("deployment_failed_runner_lost", deployment(T::DeploymentFailed, |d| d.error = Some("runner_lost".into()))),
        (
            "deployment_of_pull_request",
            deployment(T::DeploymentSucceeded, |d| {
                d.origin = Origin::PullRequest { number: 12, title: None, branch: Some("subnet".into()), url: None };
            }),
        ),
        ("deployment_hostile", unreadable),
        ("dependent_without_page", dependent_without_page),
        ("approval_with_comment", gate),
        ("approval_rejected_in_slack", in_slack),
        ("task_blocked", blocked),
        ("findings_first", findings(counts(Some(1), Some(0), 4), None, &[])),
        ("findings_clean", findings(counts(Some(0), Some(0), 0), Some(counts(Some(1), Some(0), 0)), &[])),
        ("findings_unknown", findings(counts(None, Some(0), 0), Some(counts(Some(2), Some(0), 0)), &["cycles"])),
    ]
}

fn journal_samples() -> Vec<(&'static str, Notification)> {
    let with_url = Notification {
        url: Some("https://courant.example.com/orders/o_9?tab=items&from=slack|mail".into()),
        ..notification(
            "order.shipped",
            "order",
            "o_9",
            "Order 9",
            r#"{"carrier":"post","items":[1,2],"weightKg":1.50}"#,
        )
    };
    vec![
        (
            "generic",
            notification(
                "invoice.paid",
                "invoice",
                "inv_42",
                "Invoice 42",
                r#"{"amount":4200,"currency":"EUR","late":false,"customer":{"id":"c_1"},"method":"card"}"#,
            ),
        ),
        ("success", notification("backup.completed", "backup", "nightly", "nightly", r#"{"files":1204}"#)),
        ("failure", notification("payment.failed", "payment", "pay_7", "Payment 7", r#"{"reason":"card expired"}"#)),
        (
            "without_payload_fields",
            notification("probe.seen", "probe", "p_1", "p_1", r#"{"nested":{"a":1},"list":[],"none":null}"#),
        ),
        ("with_url", with_url),
        (
            "hostile",
            Notification {
                url: Some("https://courant.example.com/x>|<!channel>".into()),
                ..notification(
                    "note.added",
                    "note",
                    "<@U0001>",
                    "*a* <!channel> & <https://evil.example|click>\n```x``` \u{202e}~gone~",
                    r#"{"text":"</script><!here>\n> quoted","<https://evil.example|k>":"`v`","big":123456789012345678901234567890}"#,
                )
            },
        ),
    ]
}

/// Renders one case.
pub(crate) fn render(provider: &dyn Provider, case: &Case, auth: &Value) -> HttpRequest {
    let Outgoing::Http(request) = provider
        .render(&Render {
            notification: &case.notification,
            integration_name: "ops-alerts",
            config: case.config.as_object().unwrap(),
            auth: auth.as_object().unwrap(),
            now: Timestamp::from_micros(NOW),
            settings: &settings(),
        })
        .unwrap();
    request
}

/// The operator's settings in these tests.
pub(crate) fn settings() -> Settings {
    Settings { slack_api_base_url: "https://slack.example.com/api".parse().unwrap() }
}

/// Compares every case with its file, and the files with the cases.
pub(crate) fn compare(provider: &dyn Provider, cases: &[Case], auth: &Value) {
    let folder = folder(provider.provider_type());
    let mut wrong = Vec::new();
    for case in cases {
        let rendered = printed(&render(provider, case, auth));
        let file = folder.join(format!("{}.json", case.name));
        if updating() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &rendered).unwrap();
        } else if fs::read_to_string(&file).ok().as_deref() != Some(&rendered) {
            wrong.push(format!("{} differs from what is rendered:\n{rendered}\n", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
    let names: BTreeSet<_> = cases.iter().map(|case| case.name.to_owned()).collect();
    assert_eq!(stored(provider.provider_type()), names, "files and cases");
}

/// The names of a provider's golden files.
pub(crate) fn stored(provider_type: &str) -> BTreeSet<String> {
    let Ok(files) = fs::read_dir(folder(provider_type)) else {
        return BTreeSet::new();
    };
    files.filter_map(|file| Some(file.unwrap().file_name().to_str()?.strip_suffix(".json")?.to_owned())).collect()
}

fn folder(provider_type: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "src", provider_type, "golden"].iter().collect()
}

#[expect(clippy::disallowed_methods, reason = "a test's switch, not a setting: whether to write the goldens anew")]
fn updating() -> bool {
    std::env::var_os("COURANT_UPDATE_GOLDENS").is_some_and(|value| value == "1")
}

/// A request as a golden file shows it; the version is left out, so that a release changes no golden.
fn printed(request: &HttpRequest) -> String {
    let headers: BTreeMap<_, _> = request
        .headers
        .iter()
        .map(|(name, value)| {
            let value = value.to_str().unwrap().replace(crate::USER_AGENT, "courant/<version>");
            (name.as_str(), if value.starts_with("Bearer ") { "Bearer <token>".into() } else { value })
        })
        .collect();
    let request = json!({
        "method": request.method.as_str(),
        "url": request.url.as_str(),
        "target": format!("{:?}", request.target),
        "headers": headers,
        "body": serde_json::from_slice::<Value>(&request.body).unwrap(),
    });
    format!("{request:#}\n")
}

/// A JSON object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("not an object: {value}") };
    map
}
