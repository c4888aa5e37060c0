//! A plan as Terraform and OpenTofu write it with `show -json` (the JSON output format, 1.x): what it would change.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use courant_api::deployments::PlanSummary;
use serde::Deserialize;

/// Largest plan that is read, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Deserialize)]
struct Plan {
    format_version: String,
    #[serde(default)]
    resource_changes: Vec<Changed>,
    #[serde(default)]
    output_changes: std::collections::BTreeMap<String, Change>,
    #[serde(default)]
    errored: bool,
    /// Later versions of Terraform say whether there is something to apply.
    #[serde(default)]
    applyable: bool,
    #[serde(default = "whole")]
    complete: bool,
    #[serde(default)]
    deferred_changes: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Changed {
    change: Change,
    /// Its address before this plan, when that moves it.
    #[serde(default)]
    previous_address: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Change {
    actions: Vec<String>,
    #[serde(default)]
    importing: Option<serde::de::IgnoredAny>,
}

impl Change {
    /// Whether it does something, if only to what the tool remembers.
    fn acts(&self) -> bool {
        self.importing.is_some() || self.actions.iter().any(|action| !matches!(action.as_str(), "no-op" | "read"))
    }
}

const fn whole() -> bool {
    true
}

/// The summary of the plan in a file, or in standard input for `-`.
pub(super) fn read(file: &Path) -> Result<PlanSummary> {
    let named = || format!("reading the plan in {}", file.display());
    if file == Path::new("-") {
        return summary(std::io::stdin().take(MAX_BYTES)).with_context(named);
    }
    let opened = File::open(file).with_context(named)?;
    ensure!(opened.metadata().with_context(named)?.len() <= MAX_BYTES, "the plan has more than {MAX_BYTES} bytes");
    summary(opened.take(MAX_BYTES)).with_context(named)
}

fn summary(text: impl Read) -> Result<PlanSummary> {
    let plan: Plan = serde_json::from_reader(BufReader::new(text)).context("it is not what `show -json` writes")?;
    ensure!(plan.format_version.starts_with("1."), "its format is {}, not 1.x", plan.format_version);
    ensure!(!plan.errored, "the plan ended in an error");
    let (mut add, mut change, mut destroy) = (0, 0, 0);
    for action in plan.resource_changes.iter().flat_map(|changed| &changed.change.actions) {
        match action.as_str() {
            "create" => add += 1,
            "update" => change += 1,
            "delete" => destroy += 1,
            _ => {}
        }
    }
    // A move, an import and what is forgotten are not counted, and are applied all the same.
    let has_changes = plan.applyable
        || plan.resource_changes.iter().any(|changed| changed.previous_address.is_some() || changed.change.acts())
        || plan.output_changes.values().any(Change::acts);
    let complete = plan.complete && plan.deferred_changes.is_empty();
    Ok(PlanSummary {
        add,
        change,
        destroy,
        has_changes: Some(has_changes || !complete),
        complete,
        gap_reasons: if complete { Vec::new() } else { vec!["some changes are deferred".to_owned()] },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(plan: &Value) -> Result<PlanSummary> {
        summary(plan.to_string().as_bytes())
    }

    fn with(actions: &[&[&str]]) -> Value {
        let changes: Vec<_> = actions.iter().map(|actions| json!({ "change": { "actions": actions } })).collect();
        json!({ "format_version": "1.2", "resource_changes": changes })
    }

    #[test]
    fn a_replacement_adds_and_destroys_and_a_read_changes_nothing() {
        let plan =
            with(&[&["create"], &["update"], &["delete", "create"], &["delete"], &["no-op"], &["read"], &["forget"]]);
        let summary = of(&plan).unwrap();
        assert_eq!((summary.add, summary.change, summary.destroy, summary.has_changes), (2, 1, 2, Some(true)));
        assert!(summary.complete);
        let nothing = of(&with(&[&["no-op"], &["read"]])).unwrap();
        assert_eq!((nothing.has_changes, nothing.complete), (Some(false), true));
    }

    #[test]
    fn what_only_the_state_knows_of_is_a_change_without_a_count() {
        let mut moved = with(&[&["no-op"]]);
        moved["resource_changes"][0]["previous_address"] = "test.old".into();
        let mut imported = with(&[&["no-op"]]);
        imported["resource_changes"][0]["change"]["importing"] = json!({ "id": "i-1" });
        let mut told = with(&[]);
        told["applyable"] = true.into();
        for plan in [moved, imported, told, with(&[&["forget"]])] {
            let summary = of(&plan).unwrap();
            assert_eq!((summary.add, summary.change, summary.destroy), (0, 0, 0));
            assert_eq!(summary.has_changes, Some(true), "{plan}");
        }
        let mut nothing = with(&[&["no-op"]]);
        nothing["applyable"] = false.into();
        nothing["resource_changes"][0]["previous_address"] = Value::Null;
        nothing["resource_changes"][0]["change"]["importing"] = Value::Null;
        assert_eq!(of(&nothing).unwrap().has_changes, Some(false));
    }

    #[test]
    fn outputs_alone_are_a_change() {
        let mut plan = with(&[]);
        plan["output_changes"] = json!({ "a": { "actions": ["no-op"] } });
        assert_eq!(of(&plan).unwrap().has_changes, Some(false));
        plan["output_changes"]["b"] = json!({ "actions": ["update"] });
        assert_eq!(of(&plan).unwrap().has_changes, Some(true));
    }

    #[test]
    fn what_is_not_whole_says_why_and_an_error_is_no_plan() {
        let mut plan = with(&[]);
        plan["complete"] = false.into();
        let summary = of(&plan).unwrap();
        assert_eq!((summary.complete, summary.gap_reasons.len()), (false, 1));
        plan["errored"] = true.into();
        assert!(of(&plan).is_err());
        assert!(of(&json!({ "format_version": "2.0" })).unwrap_err().to_string().contains("2.0"));
        assert!(of(&json!([])).is_err());
    }
}
