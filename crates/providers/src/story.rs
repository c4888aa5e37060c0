//! What a notification says, whoever says it: its tone, its subject, what happened, and what is worth knowing. All of it is
//! text as people wrote it; each provider makes it harmless for where it goes.

use std::fmt;

use courant_api::announced::{AnnouncedApproval, AnnouncedDeployment, AnnouncedFindings, AnnouncedTask, AnnouncedType};
use courant_api::deployments::{DeploymentMode, DeploymentStatus, FindingCounts, Origin, PlanSummary};
use courant_api::notify::Notification;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Most values of the payload that are shown.
const MAX_DETAILS: usize = 3;
const MAX_DETAIL_KEY_CHARS: usize = 40;
const MAX_DETAIL_VALUE_CHARS: usize = 60;
/// How much of a commit's hash is shown.
const SHORT_SHA: usize = 10;

/// How it went. Colour and emoji say the same thing twice, for those who see only one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// It went well.
    Success,
    /// It did not.
    Failure,
    /// Somebody has to act.
    Attention,
    /// Good to know.
    Neutral,
}

impl Tone {
    /// As an HTML colour.
    pub(crate) const fn color(self) -> &'static str {
        match self {
            Self::Success => "#2eb886",
            Self::Failure => "#e01e5a",
            Self::Attention => "#eca336",
            Self::Neutral => "#868f96",
        }
    }

    fn announced(announced: AnnouncedType) -> Self {
        use AnnouncedType as T;
        match announced {
            T::DeploymentSucceeded | T::PreviewSucceeded | T::ApprovalApproved | T::TaskCompleted => Self::Success,
            T::DeploymentFailed
            | T::PreviewFailed
            | T::DependentTriggerFailed
            | T::ApprovalRejected
            | T::TaskVerificationFailed => Self::Failure,
            T::DeploymentAwaitingConfirmation | T::PreviewAwaitingConfirmation | T::ApprovalRequested => {
                Self::Attention
            }
            T::DeploymentCancelled
            | T::DeploymentAutoSkipped
            | T::PreviewCancelled
            | T::PreviewAutoSkipped
            | T::RunCommandExecuted
            | T::PullRequestPromoted
            | T::StackCreated
            | T::StackUpdated
            | T::StackDeleted
            | T::ApprovalCancelled
            | T::ApprovalExpired
            | T::ExploreFindingsChanged => Self::Neutral,
        }
    }

    /// Of any other type by its last word. Failure is heard in compounds too (`payment_failed`); success only when it is
    /// the whole last segment, since a false green misleads: `not_completed`.
    fn of(event_type: &str) -> Self {
        let segment = event_type.rsplit('.').next().unwrap_or_default();
        let word = segment.rsplit('_').next().unwrap_or_default();
        match word {
            "failed" | "rejected" | "dead" => Self::Failure,
            "succeeded" | "approved" | "completed" if word == segment => Self::Success,
            _ => Self::Neutral,
        }
    }
}

/// What is said.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) tone: Tone,
    /// What it is about.
    pub(crate) subject: String,
    /// The subject's page, where the subject links.
    pub(crate) link: Option<String>,
    /// What happened to it; empty for a report, whose subject is its title.
    pub(crate) what: String,
    /// What is worth knowing, most important first.
    pub(crate) details: Vec<String>,
    /// Where it belongs, for those who want to know more.
    pub(crate) context: Vec<String>,
    /// What it followed on, with its page.
    pub(crate) after: Option<(String, Option<String>)>,
    /// Where somebody has to act, that page.
    pub(crate) asks: Option<String>,
}

impl Story {
    /// What a notification says.
    pub(crate) fn of(notification: &Notification) -> Self {
        match notification.announced() {
            Some(announced) => announced_story(notification, announced),
            None => journal_story(notification),
        }
    }

    /// The same in one line.
    pub(crate) fn line(&self) -> (String, String) {
        let what = if self.what.is_empty() { self.details.join(", ") } else { self.what.clone() };
        (self.subject.clone(), what)
    }
}

/// The subject's name, or its id where there is no name to see.
fn subject(notification: &Notification) -> String {
    let subject = &notification.subject;
    let seen = |text: &&String| text.chars().any(|c| !c.is_whitespace() && !c.is_control() && c != '\u{200b}');
    [&subject.name, &subject.id].into_iter().find(seen).map_or_else(|| "(no name)".to_owned(), Clone::clone)
}

fn journal_story(notification: &Notification) -> Story {
    let event_type = notification.event.as_ref().map_or(notification.event_type.as_str(), |event| &event.event_type);
    let subject = subject(notification);
    let mut context = vec![event_type.to_owned()];
    if notification.subject.id != subject {
        context.push(format!("{} {}", notification.subject.kind, notification.subject.id));
    }
    if let Some(workspace) = notification.event.as_ref().and_then(|event| event.workspace_id) {
        context.push(format!("workspace {workspace}"));
    }
    Story {
        tone: Tone::of(event_type),
        subject,
        link: notification.url.clone(),
        what: event_type.replace(['.', '_'], " "),
        details: details(notification).into_iter().map(|(key, value)| format!("{key}: {value}")).collect(),
        context,
        after: None,
        asks: None,
    }
}

fn announced_story(notification: &Notification, announced: AnnouncedType) -> Story {
    let mut story = Story {
        tone: Tone::announced(announced),
        subject: subject(notification),
        link: notification.url.clone(),
        what: what(announced).to_owned(),
        details: Vec::new(),
        context: Vec::new(),
        after: None,
        asks: None,
    };
    if let Some(deployment) = &notification.deployment {
        story.tell_deployment(announced, deployment);
    }
    if let Some(stack) = &notification.stack {
        if announced == AnnouncedType::StackUpdated && !stack.changes.is_empty() {
            story.details.push(format!("changed: {}", stack.changes.join(", ")));
        }
        story.context.extend(stack.repository.iter().chain(&stack.path).cloned());
    }
    if let Some(approval) = &notification.approval {
        story.tell_approval(approval);
    }
    if let Some(task) = &notification.task {
        story.tell_task(task);
    }
    if let Some(dependent) = &notification.dependent {
        story.details.push(dependent_reason(&dependent.reason).to_owned());
        story.after = Some((dependent.stack_name.clone(), story.link.take()));
    }
    if let Some(findings) = &notification.findings {
        story.tell_findings(findings);
    }
    story
}

/// What happened, where that hangs on the type alone.
const fn what(announced: AnnouncedType) -> &'static str {
    use AnnouncedType as T;
    match announced {
        T::DeploymentSucceeded | T::PreviewSucceeded => "succeeded",
        T::DeploymentFailed | T::PreviewFailed => "failed",
        T::DeploymentCancelled | T::PreviewCancelled => "was cancelled",
        T::DeploymentAutoSkipped | T::PreviewAutoSkipped => "was skipped",
        T::DeploymentAwaitingConfirmation | T::PreviewAwaitingConfirmation => "is waiting for confirmation",
        T::RunCommandExecuted => "was submitted",
        T::PullRequestPromoted => "pull request promoted to a deploy",
        T::DependentTriggerFailed => "deploy could not be started",
        T::StackCreated => "stack created",
        T::StackUpdated => "stack updated",
        T::StackDeleted => "stack deleted",
        T::ApprovalRequested => "needs a decision",
        T::ApprovalApproved => "approved",
        T::ApprovalRejected => "rejected",
        T::ApprovalCancelled => "needs no decision any more",
        T::ApprovalExpired => "was not decided in time",
        T::TaskVerificationFailed => "verification failed",
        T::TaskCompleted => "completed",
        T::ExploreFindingsChanged => "",
    }
}

/// A mode as people call it.
const fn mode(mode: DeploymentMode) -> &'static str {
    match mode {
        DeploymentMode::Plan => "deploy",
        DeploymentMode::PlanUnlocked => "preview",
        DeploymentMode::Raw => "command",
    }
}

impl Story {
    fn tell_deployment(&mut self, announced: AnnouncedType, deployment: &AnnouncedDeployment) {
        use AnnouncedType as T;
        match (announced, deployment.origin.pull_request()) {
            (T::PullRequestPromoted, Some(number)) => {
                self.what = format!("pull request #{number} promoted to a deploy");
            }
            (T::PullRequestPromoted, None) => {}
            _ => self.what = format!("{} {}", mode(deployment.mode), self.what),
        }
        if deployment.read_only && deployment.mode == DeploymentMode::Plan {
            self.what.push_str(" (plan only)");
        }
        if matches!(announced, T::DeploymentAwaitingConfirmation | T::PreviewAwaitingConfirmation) {
            self.asks = self.link.clone();
        }
        if let Some(error) = &deployment.error {
            self.details.push(reason(error).to_owned());
        }
        if let Some(skipped) = &deployment.skipped_reason {
            self.details.push(reason(skipped).to_owned());
        }
        if let Some(bytes) = deployment.command_bytes {
            self.details.push(format!("{bytes} bytes"));
        }
        if let Some(plan) = &deployment.plan_summary {
            self.details.push(counts(deployment, plan));
        }
        if let Some(sha) = &deployment.commit_sha {
            self.context.push(format!("commit {}", sha.chars().take(SHORT_SHA).collect::<String>()));
        }
        self.context
            .extend(deployment.commit_message.as_deref().and_then(|text| text.lines().next()).map(str::to_owned));
        match &deployment.origin {
            Origin::PullRequest { number, .. } => self.context.push(format!("pull request #{number}")),
            Origin::Push { branch: Some(branch) } => self.context.push(format!("branch {branch}")),
            Origin::Push { branch: None } | Origin::Manual {} | Origin::Dependency { .. } => {}
        }
    }

    fn tell_approval(&mut self, approval: &AnnouncedApproval) {
        self.details.extend(approval.comment.clone());
        if approval.gate == Some(true) {
            self.context.push("holds the task".to_owned());
        }
        self.context.extend(approval.channel.as_ref().map(|channel| format!("decided in {channel}")));
    }

    fn tell_task(&mut self, task: &AnnouncedTask) {
        if let Some(check) = &task.failed_check {
            self.details.push(format!("check: {check}"));
        }
        self.details.extend(task.reason.clone());
        match task.consecutive_failures {
            Some(failures) if failures > 1 => self.details.push(format!("{failures} failures in a row")),
            _ => {}
        }
        if task.blocked == Some(true) {
            self.details.push("the task waits for a person now".to_owned());
        }
    }

    /// Green only when everything was looked at and nothing found: not having looked is not the same as being clean.
    fn tell_findings(&mut self, findings: &AnnouncedFindings) {
        let FindingCounts { cycles, orphans, duplicates } = findings.counts;
        let previous = findings.previous;
        if findings.unchecked.is_empty() && (cycles, orphans, duplicates) == (Some(0), Some(0), 0) {
            self.tone = Tone::Success;
        }
        let count = |now: Option<i64>, before: Option<Option<i64>>, one: &str, many: &str| {
            let now = now?;
            let words = format!("{now} {}", if now == 1 { one } else { many });
            match before.flatten() {
                Some(before) if before != now => Some(format!("{words} (was {before})")),
                _ => Some(words),
            }
        };
        self.details.extend(count(cycles, previous.map(|p| p.cycles), "dependency cycle", "dependency cycles"));
        self.details.extend(count(orphans, previous.map(|p| p.orphans), "missing dependency", "missing dependencies"));
        self.details.extend(count(
            Some(duplicates),
            previous.map(|p| Some(p.duplicates)),
            "duplicate path",
            "duplicate paths",
        ));
        if !findings.unchecked.is_empty() {
            self.details.push(format!("not checked: {}", findings.unchecked.join(", ")));
        }
    }
}

/// What a plan does or did: past only where it has been applied.
fn counts(deployment: &AnnouncedDeployment, plan: &PlanSummary) -> String {
    if !plan.complete {
        let mut reasons: Vec<&str> = Vec::new();
        for gap in &plan.gap_reasons {
            if !reasons.contains(&gap.as_str()) {
                reasons.push(gap);
            }
        }
        let reasons = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join(", ")) };
        return format!("Change counts unavailable{reasons}");
    }
    let PlanSummary { add, change, destroy, .. } = plan;
    if (*add, *change, *destroy) == (0, 0, 0) && plan.has_changes != Some(true) {
        return "no changes".to_owned();
    }
    let done = deployment.mode != DeploymentMode::PlanUnlocked
        && deployment.status == DeploymentStatus::Finished
        && !deployment.read_only;
    if done {
        format!("{add} added, {change} changed, {destroy} destroyed")
    } else {
        format!("{add} to add, {change} to change, {destroy} to destroy")
    }
}

/// The server's own reasons in words; others as they are.
fn reason(reason: &str) -> &str {
    match reason {
        "runner_lost" => "its runner was lost",
        "start_failed" => "it was not started in time",
        "superseded" => "a newer preview took its place",
        "stack_deleted" => "its stack was deleted",
        other => other,
    }
}

fn dependent_reason(reason: &str) -> &str {
    match reason {
        "dependency_cycle" => "it is part of a dependency cycle",
        "chain_too_long" => "the chain of dependencies is too long",
        "deployment_active" => "another deployment of it is under way",
        other => other,
    }
}

/// The first short values at the top of the payload, digits as they were written, without what the headline already
/// says.
fn details(notification: &Notification) -> Vec<(String, String)> {
    let Some(event) = &notification.event else {
        return Vec::new();
    };
    let said = [&notification.subject.name, &notification.subject.id];
    let payload = event.payload.text();
    // A payload is an object; of anything else there is nothing to show.
    let entries = serde_json::Deserializer::from_str(payload).deserialize_map(Entries).unwrap_or_default();
    entries
        .into_iter()
        .filter_map(|(key, raw)| Some((key, scalar(raw)?)))
        .filter(|(key, value)| {
            fits(key, MAX_DETAIL_KEY_CHARS) && fits(value, MAX_DETAIL_VALUE_CHARS) && !said.contains(&value)
        })
        .take(MAX_DETAILS)
        .collect()
}

fn fits(text: &str, most: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= most
}

fn scalar(raw: &RawValue) -> Option<String> {
    let text = raw.get();
    match text.bytes().next()? {
        b'"' => serde_json::from_str(text).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(text.to_owned()),
    }
}

/// The entries of an object in their order, values unread: a number larger than any machine type stays as it is.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        /// More than this is not looked at.
        const MOST: usize = 50;
        let mut entries = Vec::new();
        while entries.len() < MOST {
            let Some(entry) = map.next_entry()? else {
                return Ok(entries);
            };
            entries.push(entry);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::notification;

    #[test]
    fn the_last_word_of_a_type_sets_the_tone() {
        for (event_type, tone) in [
            ("deploy.succeeded", Tone::Success),
            ("approval.approved", Tone::Success),
            ("task.completed", Tone::Success),
            ("deployment_succeeded", Tone::Neutral),
            ("billing.payment_failed", Tone::Failure),
            ("preview_failed", Tone::Failure),
            ("approval.rejected", Tone::Failure),
            ("notification_delivery.dead", Tone::Failure),
            ("task.not_completed", Tone::Neutral),
            ("failed.retried", Tone::Neutral),
            ("invoice.paid", Tone::Neutral),
            ("undead", Tone::Neutral),
            ("", Tone::Neutral),
        ] {
            assert_eq!(Tone::of(event_type), tone, "{event_type}");
        }
    }

    #[test]
    fn the_first_three_short_values_are_shown() {
        let shown = |payload: &str| details(&notification("a.b", "order", "o_1", "Order 1", payload));
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            shown(
                r#"{"id":"o_1","name":"Order 1","x":{"y":1},"l":[1],"n":null,"s":" ","t":"\u00e9","b":true,"d":1e400,"e":2}"#
            ),
            [pair("t", "é"), pair("b", "true"), pair("d", "1e400")]
        );
        assert_eq!(shown(&format!(r#"{{"long":"{}","k":1.50}}"#, "x".repeat(61))), [pair("k", "1.50")]);
        assert_eq!(shown("{}"), []);
        assert_eq!(shown("[1]"), []);
    }
}
