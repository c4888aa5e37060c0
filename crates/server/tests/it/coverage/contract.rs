//! What the committed OpenAPI document demands: each of its routes has its cases, and each id that a request may hold,
//! wherever it stands, is tried with another tenant's.
//!
//! Nothing here lists routes or fields. A new one is found in the document; only a new kind of id has to be made known,
//! in [`foreign`], and its absence is said.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use courant_api::{Permission, Scope};
use courant_testkit::wire;

use super::routes::{Need, ROUTES, Route, Who};
use super::{Things, fill, things};
use crate::support::{Api, Socket, Value, World, json, no_such_id, on_both_databases};

static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../../../contract/openapi.json")).unwrap());

/// Ids that the caller gives to something new: another tenant's is as good as any.
const GIVEN: &[(&str, &str)] = &[("POST /api/v1/events", "/events/0/id")];

/// One operation of the document and its sample.
struct Operation {
    name: String,
    described: &'static Value,
    route: &'static Route,
}

fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    for (path, methods) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            let name = format!("{} {path}", method.to_uppercase());
            let route = ROUTES.iter().find(|r| format!("{} {}", r.method, r.template) == name);
            let route = route.unwrap_or_else(|| panic!("{name} has no cases: add its sample to coverage/routes.rs"));
            all.push(Operation { name, described, route });
        }
    }
    all
}

/// Where a request may hold an id.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Path(String),
    Query(String),
    /// A JSON pointer.
    Body(String),
}

/// The ids in a request of this operation: where, and of which kind.
fn ids(described: &Value) -> Vec<(Place, String)> {
    let mut found = Vec::new();
    for parameter in described["parameters"].as_array().unwrap() {
        let Some(name) = parameter["name"].as_str() else { continue };
        let mut kinds = Vec::new();
        walk(&parameter["schema"], "", &mut BTreeSet::new(), &mut kinds);
        for (_, kind) in kinds {
            let place = match parameter["in"].as_str().unwrap() {
                "path" => Place::Path(name.to_owned()),
                "query" => Place::Query(name.to_owned()),
                other => panic!("an id in a {other}: teach this test to send it"),
            };
            found.push((place, kind));
        }
    }
    let mut kinds = Vec::new();
    let body = &described["requestBody"]["content"]["application/json"]["schema"];
    walk(body, "", &mut BTreeSet::new(), &mut kinds);
    found.extend(kinds.into_iter().map(|(pointer, kind)| (Place::Body(pointer), kind)));
    found
}

/// Finds the ids in a schema: named ones, nameless UUIDs, and resources, which hold one in a text.
fn walk(schema: &Value, pointer: &str, above: &mut BTreeSet<String>, found: &mut Vec<(String, String)>) {
    if let Some(name) = schema["$ref"].as_str().map(|r| r.rsplit('/').next().unwrap()) {
        let target = &DOCUMENT["components"]["schemas"][name];
        if target["format"] == "uuid" || name == "Resource" {
            found.push((pointer.to_owned(), name.to_owned()));
        } else if above.insert(name.to_owned()) {
            walk(target, pointer, above, found);
            above.remove(name);
        }
        return;
    }
    if schema["format"] == "uuid" {
        found.push((pointer.to_owned(), "a nameless UUID".to_owned()));
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        walk(field, &format!("{pointer}/{name}"), above, found);
    }
    if schema["items"].is_object() {
        walk(&schema["items"], &format!("{pointer}/0"), above, found);
    }
    for kind in ["anyOf", "oneOf", "allOf"] {
        for option in schema[kind].as_array().into_iter().flatten() {
            walk(option, pointer, above, found);
        }
    }
}

/// An id of this kind among a tenant's things, and one that nothing has.
fn foreign(kind: &str, theirs: &Things) -> (String, String) {
    let missing = no_such_id();
    let thing = match kind {
        "TenantId" => "org",
        "PrincipalId" => "principal",
        "ApiKeyId" => "key",
        "GrantId" => "grant",
        "IdentityBindingId" => "binding",
        "TaskId" => "task",
        "StackId" => "stack",
        "DeploymentId" => "pending",
        "DeploymentRunId" => "plan",
        "GoalId" => "goal",
        "RuleId" => "rule",
        "ProjectId" => "project",
        "ArtifactId" => "artifact",
        "SkillInvocationId" => "skill",
        "RunId" => "run",
        "VerificationId" => "verification",
        "ApprovalId" => "approval",
        "ClaimId" => "claim",
        "RoleId" => "role",
        "RoleAssignmentId" => "assignment",
        "WorkspaceId" => "workspace",
        "EventId" => "event",
        "IntegrationId" => "integration",
        "DeliveryId" => "delivery",
        "Resource" => return (format!("workspace:{}", theirs["workspace"]), format!("workspace:{missing}")),
        _ => panic!("{kind} is a new kind of id: make one in coverage/mod.rs and name it here"),
    };
    (theirs[thing].clone(), missing)
}

/// The sample request, with another value at one place.
fn probe(route: &Route, own: &Things, place: &Place, value: &str) -> (String, Option<Value>) {
    let sample = fill(route.path, own);
    let (path, query) = sample.split_once('?').unwrap_or((&sample, ""));
    let (mut path, mut query) = (path.to_owned(), query.to_owned());
    let mut body: Option<Value> = route.body.map(|body| serde_json::from_str(&fill(body, own)).unwrap());
    match place {
        Place::Path(name) => {
            let written = format!("{{{name}}}");
            let segments = route.template.split('/').zip(path.split('/'));
            let put = segments.map(|(template, now)| {
                if template.contains(&written) { template.replace(&written, value) } else { now.to_owned() }
            });
            path = put.collect::<Vec<_>>().join("/");
        }
        Place::Query(name) => {
            let kept = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with(&format!("{name}=")));
            query = kept.map(str::to_owned).chain([format!("{name}={value}")]).collect::<Vec<_>>().join("&");
        }
        Place::Body(pointer) => put(body.as_mut().expect("a sample with a body"), pointer, value),
    }
    let target = if query.is_empty() { path } else { format!("{path}?{query}") };
    (target, body)
}

fn put(body: &mut Value, pointer: &str, value: &str) {
    let mut at = body;
    for token in pointer.split('/').skip(1) {
        at = if let Ok(index) = token.parse::<usize>() {
            let list = at.as_array_mut();
            &mut list.unwrap_or_else(|| panic!("the sample has no list on the way to {pointer}"))[index]
        } else {
            if at.is_null() {
                *at = json!({});
            }
            at.as_object_mut().unwrap().entry(token).or_insert(Value::Null)
        };
    }
    *at = value.into();
}

/// Fields of which a body has at most one.
const EXCLUSIVE: &[[&str; 2]] =
    &[["taskId", "artifactId"], ["requiredRoleId", "assignedPrincipalId"], ["principalId", "roleId"]];

/// The same body without what excludes the field at `pointer`.
fn alone(body: &mut Value, pointer: &str) {
    let (parent, own) = pointer.rsplit_once('/').unwrap();
    let pairs = EXCLUSIVE.iter().filter(|pair| pair.contains(&own));
    if let Some(fields) = body.pointer_mut(parent).and_then(Value::as_object_mut) {
        for field in pairs.flatten().filter(|field| **field != own) {
            fields.remove(*field);
        }
    }
}

/// A whole answer as it is read from the socket, but for the request's own ids and the time.
async fn raw(api: &Api, method: &str, target: &str, body: Option<&Value>) -> (u16, String) {
    let credential = api.credential().unwrap();
    let body = body.map(|body| {
        let body = body.to_string();
        format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    });
    let request = format!(
        "{method} {target} HTTP/1.1\r\nhost: courant\r\nconnection: close\r\nauthorization: Bearer {credential}\r\n{}",
        body.as_deref().unwrap_or("\r\n")
    );
    let answer = wire::exchange(api.host().parse().unwrap(), request.as_bytes()).await;
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{method} {target}: {answer:?}"));
    let own = |line: &&str| {
        let name = line.split(':').next().unwrap().to_ascii_lowercase();
        !matches!(name.as_str(), "x-request-id" | "x-correlation-id" | "date")
    };
    let head: Vec<_> = head.split("\r\n").filter(own).collect();
    let status = head[0].split(' ').nth(1).unwrap().parse().unwrap();
    (status, format!("{}\r\n\r\n{body}", head.join("\r\n")))
}

pub fn needs(route: &Route) -> &'static [Need] {
    match route.who {
        Who::Holders(needs) | Who::OneOf(needs) => needs,
        Who::Everybody | Who::Bootstrap | Who::Caller => &[],
    }
}

/// The widest scope that is too narrow for a route's sample; none when the narrowest is enough. For `OneOf` that is one
/// that reaches none of its permissions.
pub fn too_narrow(route: &Route) -> Option<Scope> {
    let each = needs(route).iter().map(|need| need.permission.parse::<Permission>().unwrap().scope());
    let enough = if matches!(route.who, Who::OneOf(_)) { each.min() } else { each.max() }?;
    Scope::LIST.iter().rev().copied().find(|scope| *scope < enough)
}

#[test]
fn every_route_of_the_document_has_a_case_for_each_way_to_be_refused() {
    for Operation { name, described, route } in operations() {
        let public = described["security"] == json!([]);
        assert_eq!(public, matches!(route.who, Who::Everybody), "{name}: its case without a credential");
        let access = &described["x-permission"];
        let stated = if access["oneOf"].is_array() { &access["oneOf"] } else { &access["permissions"] };
        let stated: Vec<_> = stated.as_array().into_iter().flatten().map(|p| p.as_str().unwrap()).collect();
        let tried: Vec<_> = needs(route).iter().map(|need| need.permission).collect();
        assert_eq!(stated, tried, "{name}: its cases without a permission");
        // A token with this scope is refused, whatever its principal holds; only what reading covers has no such case.
        let reads = |permission: &&str| permission.parse::<Permission>().unwrap().scope() == Scope::Read;
        let narrower =
            if matches!(route.who, Who::OneOf(_)) { !stated.iter().any(reads) } else { !stated.iter().all(reads) };
        assert_eq!(too_narrow(route).is_some(), narrower, "{name}: its case with too narrow a scope");
        // Samples succeed, so what they leave out is not required.
        for parameter in described["parameters"].as_array().unwrap() {
            let required = parameter["in"] == "query" && parameter["required"] == true;
            let named = parameter["name"].as_str().unwrap_or_default();
            assert!(!required || route.path.contains(&format!("{named}=")), "{name} does without {named}");
        }
        // Ids of another tenant: that each can be made and sent is what the probe below finds out.
        for (place, kind) in ids(described) {
            assert!(!public, "{name}: an id at {place:?} of a public route");
            assert_ne!(kind, "a nameless UUID", "{name}: the id at {place:?} needs a type of its own");
        }
    }
}

async fn an_id_of_another_tenant_is_answered_as_one_that_does_not_exist(world: &World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    let own = things(world, &mine, "mine.made").await;
    let other = things(world, &theirs, "theirs.made").await;
    let (before, theirs_before) = (mine.end().await, theirs.end().await);
    let mut faults = Vec::new();
    for Operation { name, described, route } in operations() {
        let all = ids(described);
        for (place, kind) in &all {
            let given = matches!(place, Place::Body(p) if GIVEN.contains(&(name.as_str(), p.as_str())));
            if given {
                continue;
            }
            let (foreign, missing) = foreign(kind, &other);
            let mut answers = Vec::new();
            for id in [&foreign, &missing] {
                let (target, mut body) = probe(route, &own, place, id);
                if route.is_socket() {
                    let (code, reason) = Socket::open(&mine, &target).await.closed().await;
                    answers.push((code, reason));
                    continue;
                }
                let mut answer = raw(&mine, route.method, &target, body.as_ref()).await;
                if let (400, Place::Body(pointer), Some(body)) = (answer.0, place, &mut body) {
                    alone(body, pointer);
                    answer = raw(&mine, route.method, &target, Some(body)).await;
                }
                // Only a question that may be asked about anything repeats what it was asked.
                if answer.0 == 200 && kind == "Resource" {
                    answer.1 = answer.1.replace(id.as_str(), "<the resource>");
                }
                answers.push(answer);
            }
            let expected = if route.is_socket() { 4404 } else { 404 };
            let is_question = kind == "Resource" && matches!(route.who, Who::Caller);
            if answers[0] != answers[1] || (answers[0].0 != expected && !is_question) {
                faults.push(format!("{name} with {kind} at {place:?}: {answers:#?}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(mine.end().await, before, "a refused request changed something");
    assert_eq!(theirs.end().await, theirs_before, "the other tenant was touched");
}

async fn an_id_that_the_caller_gives_may_be_another_tenants(world: &World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    let own = things(world, &mine, "mine.made").await;
    let other = things(world, &theirs, "theirs.made").await;
    let before = theirs.events("").await;
    for (name, pointer) in GIVEN {
        let Operation { described, route, .. } = operations().into_iter().find(|o| o.name == *name).unwrap();
        let place = Place::Body((*pointer).to_owned());
        let (_, kind) = ids(described).into_iter().find(|(at, _)| *at == place).unwrap();
        let (foreign, missing) = foreign(&kind, &other);
        let mut answers = Vec::new();
        for id in [foreign, missing] {
            let (target, body) = probe(route, &own, &place, &id);
            let answer = mine.call(route.method(), &target).json(&body.unwrap()).await;
            let mut item = answer.expect(route.status)["items"][0].take();
            item["id"].take();
            item["sequence"].take();
            answers.push(item);
        }
        assert_eq!(answers[0], answers[1], "{name}");
    }
    assert_eq!(theirs.events("").await, before, "the other tenant was touched");
}

async fn what_a_name_hides_is_the_same_bytes_as_what_is_missing(world: &World) {
    let (mine, theirs) = (world.tenant().await, world.tenant().await);
    let own = things(world, &mine, "mine.made").await;
    let other = things(world, &theirs, "theirs.made").await;
    let on = "notification_integration:another-*";
    let named: Vec<_> =
        Permission::LIST.iter().map(|p| p.as_str()).filter(|p| p.starts_with("notification_")).collect();
    let mut grants: Vec<_> = named.iter().map(|permission| (*permission, on)).collect();
    grants.push(("events.read", "tenant"));
    let keeper = mine.member(&grants).await;
    let before = mine.end().await;
    let mut asked = 0;
    for Operation { name, described, route } in operations() {
        for (place, kind) in ids(described) {
            if !matches!(kind.as_str(), "IntegrationId" | "DeliveryId") {
                continue;
            }
            let (foreign, missing) = foreign(&kind, &other);
            let (hidden, _) = self::foreign(&kind, &own);
            let mut answers = Vec::new();
            for id in [hidden, missing, foreign] {
                let (target, body) = probe(route, &own, &place, &id);
                answers.push(raw(&keeper, route.method, &target, body.as_ref()).await);
            }
            assert_eq!(answers[0].0, 404, "{name}: {answers:?}");
            assert!(answers[0] == answers[1] && answers[1] == answers[2], "{name}: {answers:#?}");
            asked += 1;
        }
    }
    assert!(asked >= 4, "only {asked} ids hang on a name");
    assert_eq!(mine.end().await, before, "a refused request changed something");
}

on_both_databases! {
    an_id_of_another_tenant_is_answered_as_one_that_does_not_exist,
    an_id_that_the_caller_gives_may_be_another_tenants,
    what_a_name_hides_is_the_same_bytes_as_what_is_missing,
}
