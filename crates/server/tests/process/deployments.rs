//! `courant deployments`, as a pipeline's script calls it.

use std::fs::{File, read_to_string, write};
use std::process::{Child, Command, Stdio};

use courant_api::deployments::{DeploymentStatus, DeploymentView, PrPlanMode, StackPatch};
use courant_api::{DeploymentId, StackId};
use courant_client::{DeploymentsQuery, EventsQuery, StacksQuery};

use crate::support::{Ended, Org, Place, Process, Value, eventually, json, on_both_databases};

/// A place with a server and a tenant, and the script's environment.
struct Pipeline {
    place: Place,
    server: Process,
    org: Org,
}

impl Pipeline {
    async fn at(place: Place) -> Self {
        let server = place.serve().await;
        let org = place.org(&server).await;
        Self { place, server, org }
    }

    fn env(&self) -> Vec<(&'static str, String)> {
        let url = format!("http://{}", self.server.address);
        vec![("COURANT_URL", url), ("COURANT_API_KEY", self.org.key.clone()), ("COURANT_ORG", self.org.id.to_string())]
    }

    /// Runs `courant deployments` with these arguments to its end.
    async fn run(&self, args: &[&str]) -> Ended {
        let env = self.env();
        let env: Vec<_> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.place.run_with(&[&["deployments"], args].concat(), &env).await
    }

    /// What a command that ends well says in JSON.
    async fn said(&self, args: &[&str]) -> Said {
        let ended = self.run(&[args, &["--json"]].concat()).await;
        Said(serde_json::from_str(ended.well()).unwrap())
    }

    /// Begins a command, whose standard error is kept.
    fn begin(&self, args: &[&str]) -> Begun {
        let said = self.place.dir().join("said");
        let mut command = Command::new(env!("CARGO_BIN_EXE_courant"));
        command.arg("deployments").args(args).env_clear().envs(self.env()).current_dir(self.place.dir());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&said).unwrap());
        Begun { child: command.spawn().unwrap(), said }
    }

    async fn deployments(&self) -> Vec<DeploymentView> {
        let query = DeploymentsQuery::default();
        self.org.at(&self.server).deployments(self.org.id, &query).await.unwrap().items
    }

    async fn confirm(&self, id: DeploymentId) {
        self.org.at(&self.server).confirm_deployment(self.org.id, id).await.unwrap();
    }

    /// The types of what the journal has of deployments.
    async fn told(&self) -> Vec<String> {
        let query = EventsQuery { types: vec!["deployment.".into(), "preview.".into()], ..EventsQuery::default() };
        let page = self.org.at(&self.server).events(&query).await.unwrap();
        page.items.into_iter().map(|event| event.event_type).collect()
    }

    /// Whether a command has made this file.
    async fn made(&self, name: &str) {
        let path = self.place.dir().join(name);
        eventually(name, async || path.exists().then_some(())).await;
    }
}

/// A command's JSON object.
struct Said(Value);

impl Said {
    fn deployment(&self) -> &str {
        self.0["deployment"]["id"].as_str().unwrap()
    }

    fn run(&self) -> &str {
        self.0["run"]["id"].as_str().unwrap()
    }

    fn id(&self) -> DeploymentId {
        self.deployment().parse().unwrap()
    }

    fn status(&self) -> &str {
        self.0["deployment"]["status"].as_str().unwrap()
    }
}

/// A command that runs.
struct Begun {
    child: Child,
    said: std::path::PathBuf,
}

impl Begun {
    fn said(&self) -> String {
        read_to_string(&self.said).unwrap()
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    async fn code(&mut self) -> Option<i32> {
        eventually("the end of the command", async || self.child.try_wait().unwrap()).await.code()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn a_plan_is_begun_summed_up_confirmed_and_applied(place: Place) {
    let pipeline = Pipeline::at(place).await;
    let args = ["start", "--stack", "network", "--create-stack", "--commit", "4f9c2d1", "--pull-request", "7"];
    let plain = pipeline.run(&args).await;
    let lines: Vec<_> = plain.well().lines().map(|line| line.split_once('=').unwrap()).collect();
    let [("deployment", id), ("status", "running"), ("run", run)] = lines[..] else { panic!("{lines:?}") };
    let plan = json!({ "format_version": "1.2", "resource_changes": [
        { "change": { "actions": ["create"] } }, { "change": { "actions": ["delete", "create"] } },
    ] });
    write(pipeline.place.dir().join("plan.json"), plan.to_string()).unwrap();
    let planned = pipeline.said(&["finish", "--run", run, "--status", "succeeded", "--plan-json", "plan.json"]).await;
    assert_eq!((planned.deployment(), planned.status()), (id, "awaiting_confirmation"));
    let waits = pipeline.run(&["start", "--deployment", id]).await;
    assert_eq!(waits.well(), format!("deployment={id}\nstatus=awaiting_confirmation\n"));
    pipeline.confirm(planned.id()).await;
    let apply = pipeline.said(&["start", "--deployment", id, "--wait", "60"]).await;
    assert_eq!((&apply.0["run"]["kind"], &apply.0["run"]["planRunId"]), (&json!("apply"), &json!(run)));
    let done = pipeline.said(&["finish", "--run", apply.run(), "--status", "succeeded"]).await;
    assert_eq!(done.status(), "finished");
    let [deployment] = &pipeline.deployments().await[..] else { panic!("one deployment") };
    let summary = deployment.plan_summary.as_ref().unwrap();
    assert_eq!((summary.add, summary.change, summary.destroy, summary.has_changes), (2, 0, 1, Some(true)));
    assert_eq!(deployment.origin.pull_request(), Some(7));
    let expected = ["created", "awaiting_confirmation", "confirmed", "succeeded"].map(|e| format!("deployment.{e}"));
    assert_eq!(pipeline.told().await, expected);
}

async fn a_preview_that_waits_opens_without_a_run(place: Place) {
    let pipeline = Pipeline::at(place).await;
    let start = ["start", "--stack", "network", "--create-stack", "--mode", "plan_unlocked", "--pull-request", "7"];
    let first = pipeline.said(&start).await;
    assert_eq!((first.status(), &first.0["run"]["kind"]), ("running", &json!("plan")));
    let client = pipeline.org.at(&pipeline.server);
    let stacks = client.stacks(pipeline.org.id, &StacksQuery::default()).await.unwrap().items;
    let manual = StackPatch { pr_plan_mode: Some(PrPlanMode::Manual), ..StackPatch::default() };
    client.update_stack(pipeline.org.id, StackId::from(stacks[0].id.uuid()), None, &manual).await.unwrap();
    let parked = pipeline.said(&start).await;
    assert_eq!((parked.status(), &parked.0["run"]), ("awaiting_confirmation", &Value::Null));
    pipeline.confirm(parked.id()).await;
    let plan = pipeline.said(&["start", "--deployment", parked.deployment()]).await;
    assert_eq!(plan.0["run"]["kind"], "plan");
}

async fn a_step_that_is_repeated_takes_up_what_it_began(place: Place) {
    let pipeline = Pipeline::at(place).await;
    let start =
        ["start", "--stack", "network", "--create-stack", "--commit", "4f9c2d1", "--branch", "main", "--resume"];
    let first = pipeline.said(&start).await;
    let again = pipeline.said(&start).await;
    assert_eq!((again.deployment(), again.run()), (first.deployment(), first.run()));
    for other in [["--commit", "another"], ["--branch", "another"], ["--mode", "plan_unlocked"]] {
        let mut args: Vec<_> = start.iter().filter(|arg| **arg != "--create-stack").copied().collect();
        match args.iter().position(|arg| *arg == other[0]) {
            Some(at) => args[at + 1] = other[1],
            None => args.extend(other),
        }
        assert_ne!(pipeline.said(&args).await.deployment(), first.deployment(), "{other:?}");
    }
    let end = ["finish", "--run", first.run(), "--detailed-exitcode", "2"];
    let repeatable = [&end[..], &["--deployment", first.deployment()]].concat();
    for _ in 0..2 {
        let ended = pipeline.said(&repeatable).await;
        assert_eq!((ended.status(), ended.run()), ("awaiting_confirmation", first.run()));
    }
    assert_eq!(pipeline.said(&start).await.0["run"], Value::Null, "its run has ended");
    let other_end = ["finish", "--run", first.run(), "--status", "failed", "--deployment", first.deployment()];
    for refused in [&end[..], &other_end] {
        let refused = pipeline.run(refused).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    }
    pipeline.confirm(first.id()).await;
    let apply = ["start", "--deployment", first.deployment(), "--resume"];
    let applies = pipeline.said(&apply).await;
    assert_eq!((&applies.0["run"]["kind"], pipeline.said(&apply).await.run()), (&json!("apply"), applies.run()));
    assert_eq!(pipeline.told().await.iter().filter(|told| *told == "deployment.confirmed").count(), 1);
}

async fn a_wait_outlasts_a_server_that_is_away_and_ends_with_what_becomes_of_it(place: Place) {
    let mut pipeline = Pipeline::at(place).await;
    let plans = async |pipeline: &Pipeline| {
        let begun = pipeline.said(&["start", "--stack", "network", "--create-stack"]).await;
        pipeline.said(&["finish", "--run", begun.run(), "--detailed-exitcode", "2"]).await
    };
    let planned = plans(&pipeline).await;
    let mut waits = pipeline.begin(&["start", "--deployment", planned.deployment(), "--wait", "86400"]);
    let listens = pipeline.server.address.to_string();
    // Whatever the command is at, it cannot have seen a confirmation yet.
    pipeline.server.signal("KILL");
    eventually("the command to miss it", async || waits.said().contains("is asked for again").then_some(())).await;
    pipeline.server = pipeline.place.serve_with(&[("COURANT_LISTEN", &listens)]).await.unwrap();
    pipeline.confirm(planned.id()).await;
    assert_eq!(waits.code().await, Some(0), "{}", waits.said());
    assert_eq!(pipeline.deployments().await[0].status, DeploymentStatus::Running);

    let client = pipeline.org.at(&pipeline.server);
    let skipped = plans(&pipeline).await;
    let mut waits = pipeline.begin(&["start", "--deployment", skipped.deployment(), "--wait", "86400"]);
    client.skip_deployment(pipeline.org.id, skipped.id()).await.unwrap();
    assert_eq!(waits.code().await, Some(1));
    assert!(waits.said().contains("the deployment is skipped"), "{}", waits.said());

    let unheard = plans(&pipeline).await;
    let ended = pipeline.run(&["start", "--deployment", unheard.deployment(), "--wait", "1"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("nobody has confirmed"), "{ended:?}");
}

/// Says that it has begun, and when it is told to end, and ends then.
const ENDS_WHEN_TOLD: &str = "sleep 86400 & trap 'kill $!; echo > told; exit 9' TERM; echo > begun; wait";

async fn a_command_is_asked_to_end_once_its_deployment_is_cancelled(place: Place) {
    let pipeline = Pipeline::at(place).await;
    let begun = pipeline.said(&["start", "--stack", "network", "--create-stack"]).await;
    let mut reports =
        pipeline.begin(&["report", "--run", begun.run(), "--every", "1", "--", "sh", "-c", ENDS_WHEN_TOLD]);
    pipeline.made("begun").await;
    let client = pipeline.org.at(&pipeline.server);
    client.cancel_deployment(pipeline.org.id, begun.id()).await.unwrap();
    assert_eq!(reports.code().await, Some(1));
    assert!(reports.said().contains("the command was ended"), "{}", reports.said());
    pipeline.made("told").await;
}

async fn a_command_outlives_a_server_that_is_away_and_is_told_of_signals(place: Place) {
    let pipeline = Pipeline::at(place).await;
    let begun = pipeline.said(&["start", "--stack", "network", "--create-stack"]).await;
    let mut reports =
        pipeline.begin(&["report", "--run", begun.run(), "--every", "1", "--", "sh", "-c", ENDS_WHEN_TOLD]);
    pipeline.made("begun").await;
    pipeline.server.signal("KILL");
    eventually("a heartbeat that fails", async || reports.said().contains("is repeated").then_some(())).await;
    // A terminal would have interrupted the command as well.
    reports.signal("INT");
    reports.signal("TERM");
    assert_eq!(reports.code().await, Some(9), "{}", reports.said());
    pipeline.made("told").await;
}

async fn what_a_tool_wrote_is_told_as_far_as_it_can_be(place: Place) {
    let pipeline = Pipeline::at(place).await;
    let message = format!("fix:\tit\n\n{}", "é".repeat(20_000));
    let begun = pipeline.said(&["start", "--stack", "network", "--create-stack", "--message", &message]).await;
    let error = format!("\u{1b}[31mError:\u{1b}[0m no such bucket\n{}", "x".repeat(20_000));
    let ended = pipeline.said(&["finish", "--run", begun.run(), "--status", "failed", "--error", &error]).await;
    assert_eq!(ended.status(), "failed");
    let [deployment] = &pipeline.deployments().await[..] else { panic!("one deployment") };
    let (error, message) = (deployment.error.as_deref().unwrap(), deployment.commit_message.as_deref().unwrap());
    assert!(error.starts_with("[31mError:[0m no such bucket\nx") && error.chars().count() == 10_000);
    assert!(message.starts_with("fix:\tit\n\né") && message.chars().count() == 10_000);
}

on_both_databases! {
    a_plan_is_begun_summed_up_confirmed_and_applied,
    a_preview_that_waits_opens_without_a_run,
    a_step_that_is_repeated_takes_up_what_it_began,
    a_wait_outlasts_a_server_that_is_away_and_ends_with_what_becomes_of_it,
    a_command_is_asked_to_end_once_its_deployment_is_cancelled,
    a_command_outlives_a_server_that_is_away_and_is_told_of_signals,
    what_a_tool_wrote_is_told_as_far_as_it_can_be,
}
