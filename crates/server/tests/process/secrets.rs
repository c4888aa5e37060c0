//! No secret anywhere: one of each kind is planted, the server is driven through all that may go well or wrong while its
//! log tells everything, and then everything that it has said and kept is searched.

use std::net::SocketAddr;
use std::sync::Mutex;

use courant_testkit::wire::exchange;
use courant_testkit::{Fault, Proxy};

use crate::support::{Answer, Ended, Place, Value, WEBHOOK_SECRET, eventually, json, on_both_databases};

const BOOTSTRAP: &str = "planted-bootstrap-4f1c8d3a9b";
/// The base64 of 32 bytes that occur nowhere else.
const RING_KEY: &str = "cGxhbnRlZC1lbmNyeXB0aW9uLWtleS0wMTIzNDU2Nzg=";
const RING_KEY_BYTES: &[u8] = b"planted-encryption-key-012345678";
const DATABASE_PASSWORD: &str = "planted-database-7c2e91d0f4";
const BOT_TOKEN: &str = "xoxb-planted-token-58a1e6b27d";
const SECOND_BOT_TOKEN: &str = "xoxb-planted-second-0b9d44c6e1";
const URL_PASSWORD: &str = "planted-url-password-aa71c05e93";
const URL_TOKEN: &str = "planted-url-token-31f7d8b6c2";
const HEADER_VALUE: &str = "planted-header-90e4c7125b";
const OTHER_KEY: &str = "cak_PLANTEDxKEYxTHATxNOBODYxHASxEVERxMADE1234567";

/// A command that is run; of it only the length may be kept.
const COMMAND: &str = "planted-command-6ce0f7a418";
/// A password in what people write, which they may read where they wrote it, and nowhere else.
const TEXT_PASSWORD: &str = "planted-text-password-d70b3e19c2";

/// Where something was found, and of which kind it is; never the secret itself.
type Leaks = Vec<String>;

#[derive(Default)]
struct Heard {
    /// What each request was, and its whole answer.
    answers: Mutex<Vec<(String, Vec<u8>)>>,
    /// Kinds and texts of what nobody may see but in the answer that makes it.
    secrets: Mutex<Vec<(String, Vec<u8>)>>,
}

impl Heard {
    fn plant(&self, kind: &str, secret: &[u8]) {
        self.secrets.lock().unwrap().push((kind.to_owned(), secret.to_vec()));
    }

    /// Searches for every secret, as text, as hexadecimal digits and as a list of bytes.
    fn search(&self, place: &str, bytes: &[u8], leaks: &mut Leaks) {
        for (kind, secret) in self.secrets.lock().unwrap().iter() {
            let hex = secret.iter().fold(String::new(), |hex, b| format!("{hex}{b:02x}"));
            let list: Vec<_> = secret.iter().map(u8::to_string).collect();
            for form in [secret.clone(), hex.into_bytes(), list.join(", ").into_bytes()] {
                if let Some(at) = bytes.windows(form.len()).position(|part| part == form) {
                    let before = String::from_utf8_lossy(&bytes[at.saturating_sub(200)..at]).into_owned();
                    leaks.push(format!("{kind} in {place}, after {before:?}"));
                }
            }
        }
    }
}

/// One caller at one server.
struct Caller<'a> {
    heard: &'a Heard,
    server: SocketAddr,
    key: String,
}

impl Caller<'_> {
    async fn raw(&self, what: &str, request: &[u8]) -> Vec<u8> {
        let answer = exchange(self.server, request).await;
        self.heard.answers.lock().unwrap().push((what.to_owned(), answer.clone()));
        answer
    }

    /// A request with just these headers.
    async fn with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
        let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: courant\r\nconnection: close\r\n{}content-length: {}\r\n\r\n{body}",
            lines.concat(),
            body.len()
        );
        let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
        self.raw(&format!("{method} … with {names:?}"), request.as_bytes()).await
    }

    async fn text(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let credential = format!("Bearer {}", self.key);
        self.with(method, path, &[("authorization", &credential), ("content-type", "application/json")], body).await
    }

    /// A request that must succeed, and the body of its answer.
    async fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.text(method, path, &body).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 2"), "{method} {path}: {answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        serde_json::from_str(body).unwrap_or(Value::Null)
    }

    /// A request whose answer is the one place for the secret that it makes: the answer is not kept.
    async fn make(&self, path: &str, body: &Value, field: &str, kind: &str) -> Value {
        let made = self.call("POST", path, body).await;
        let secret = made[field].as_str().unwrap_or_else(|| panic!("no {field} in {made}")).to_owned();
        // Its answer is judged with its own secret taken out.
        let mut answers = self.heard.answers.lock().unwrap();
        let (_, answer) = answers.last_mut().unwrap();
        *answer = String::from_utf8_lossy(answer).replace(&secret, "").into_bytes();
        drop(answers);
        self.heard.plant(kind, secret.as_bytes());
        if let Some(base64) = secret.strip_prefix("whsec_") {
            self.heard.plant(kind, base64.as_bytes());
        }
        made
    }
}

fn tenant(made: &Value) -> (String, String) {
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    (text("tenantId"), text("apiKey"))
}

/// Everything wrong with a request that somebody may hold a secret in, by kind of secret.
async fn refusals(caller: &Caller<'_>, org: &str, secret: &str) {
    let own = format!("Bearer {}", caller.key);
    let json = ("content-type", "application/json");
    let long = secret.repeat(1000);
    for path in [
        format!("/{secret}"),
        format!("/api/v1/principals/{secret}"),
        format!("/api/v1/event-types/{secret}"),
        format!("/api/v1/consumers/{secret}"),
        format!("/api/v1/principals?limit={secret}"),
        format!("/api/v1/principals?cursor={secret}"),
        format!("/api/v1/events?cursor={secret}"),
        format!("/api/v1/events?types={secret}"),
        format!("/api/v1/events?workspaceId={secret}"),
        format!("/api/v1/events?since={secret}"),
        format!("/api/v1/events?cursor={long}"),
        format!("/api/v1/orgs/{org}/notification-deliveries?status={secret}"),
        format!("/api/v1/events/ws?after={secret}"),
    ] {
        for method in ["GET", "DELETE", "OPTIONS"] {
            caller.text(method, &path, "").await;
        }
    }
    for headers in [
        [("authorization", format!("Bearer {secret}x"))].as_slice(),
        &[("authorization", format!("Basic {secret}"))],
        &[("authorization", secret.to_owned())],
        &[("authorization", format!("Bearer {secret}")), ("authorization", own.clone())],
        &[("authorization", format!("Bearer {long}"))],
        &[("x-api-key", secret.to_owned())],
        &[("cookie", format!("session={secret}"))],
        &[("authorization", own.clone()), ("if-match", secret.to_owned())],
        &[("authorization", own.clone()), ("idempotency-key", format!("{secret} {secret}"))],
        &[("authorization", own.clone()), ("x-request-id", format!("{secret} !"))],
        &[("authorization", own.clone()), ("traceparent", secret.to_owned())],
        &[("authorization", own.clone()), ("content-type", secret.to_owned())],
        &[("authorization", own.clone()), ("expect", secret.to_owned())],
    ] {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        caller.with("POST", "/api/v1/principals", &headers, "{}").await;
        caller.with("PATCH", "/api/v1/principals/x", &headers, "{}").await;
        caller.with("GET", "/api/v1/events", &headers, "").await;
        let upgrade = [
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-protocol", &format!("courant.events.v1, courant.bearer.{secret}x")),
        ];
        caller.with("GET", "/api/v1/events/ws", &[&headers, upgrade.as_slice()].concat(), "").await;
    }
    for body in [
        format!("{{\"name\":\"{secret}"),
        format!("{{\"name\":{secret}}}"),
        secret.to_owned(),
        format!("\"{secret}\""),
        format!("[\"{secret}\"]"),
        format!("{{\"name\":[\"{secret}\"]}}"),
        format!("{{\"name\":{{\"a\":\"{secret}\"}}}}"),
        format!("{{\"name\":\"{long}\"}}"),
        format!("{{\"name\":\"\\u0000{secret}\"}}"),
        format!("{{\"kind\":\"{secret}\",\"displayName\":\"{secret}\"}}"),
        format!("{{\"principalId\":\"{secret}\",\"permission\":\"{secret}\",\"resource\":\"{secret}\"}}"),
        format!("{{\"permission\":\"{secret}\"}}"),
        format!("{{\"resource\":\"{secret}\"}}"),
        format!("{{\"parentId\":\"{secret}\"}}"),
        format!("{{\"principalId\":\"{secret}\"}}"),
        format!("{{\"expiresAt\":\"{secret}\"}}"),
        format!("{{\"checks\":[{{\"permission\":\"{secret}\"}}]}}"),
        format!("{{\"cursor\":\"{secret}\",\"expiresAt\":\"2000-01-01T00:00:00Z\"}}"),
        format!(
            "{{\"events\":[{{\"type\":\"order.made\",\"entityType\":\"order\",\"entityId\":\"1\",\"payload\":\"{secret}\"}}]}}"
        ),
        format!(
            "{{\"events\":[{{\"type\":\"order.made\",\"entityType\":\"order\",\"entityId\":\"1\",\"payload\":{{\"n\":\"{secret}\"}}}}]}}"
        ),
        format!(
            "{{\"events\":[{{\"type\":\"order.made\",\"entityType\":\"{secret}\",\"entityId\":\"1\",\"payload\":{{}}}}]}}"
        ),
        format!("{{\"beforeSeconds\":\"{secret}\"}}"),
        format!("{{\"entityType\":\"order\",\"schema\":\"{secret}\"}}"),
        format!("{{\"name\":\"x\",\"provider\":\"{secret}\"}}"),
        format!("{{\"name\":\" {secret}\",\"provider\":\"slack\"}}"),
        format!("{{\"name\":\"x\",\"provider\":\"slack\",\"authConfig\":{{\"botToken\":[\"{secret}\"]}}}}"),
        format!("{{\"name\":\"x\",\"provider\":\"slack\",\"authConfig\":{{\"token\":\"{secret}\"}}}}"),
        format!("{{\"name\":\"x\",\"provider\":\"slack\",\"authConfig\":\"{secret}\"}}"),
        format!("{{\"name\":\"x\",\"provider\":\"slack\",\"providerConfig\":{{\"botToken\":\"{secret}\"}}}}"),
        format!("{{\"name\":\"x\",\"provider\":\"webhook\",\"providerConfig\":{{\"url\":\"{secret}\"}}}}"),
        format!(
            "{{\"name\":\"x\",\"provider\":\"webhook\",\"providerConfig\":{{\"url\":\"http://a:{secret}@127.0.0.1/\"}}}}"
        ),
        format!(
            "{{\"name\":\"x\",\"provider\":\"webhook\",\"providerConfig\":{{\"url\":\"http://127.0.0.1/\",\"headers\":{{\"authorization\":\"{secret}\"}}}}}}"
        ),
        format!(
            "{{\"name\":\"x\",\"provider\":\"webhook\",\"providerConfig\":{{\"url\":\"http://127.0.0.1/\"}},\"authConfig\":{{\"secret\":\"{secret}\"}}}}"
        ),
        format!("{{\"name\":\"x\",\"provider\":\"webhook\",\"journalTypes\":[\"{secret}\"]}}"),
    ] {
        for (method, path) in [
            ("POST", "/api/v1/principals".to_owned()),
            ("POST", "/api/v1/api-keys".to_owned()),
            ("POST", "/api/v1/grants".to_owned()),
            ("POST", "/api/v1/roles".to_owned()),
            ("POST", "/api/v1/authz:check".to_owned()),
            ("POST", "/api/v1/workspaces/x:move".to_owned()),
            ("POST", "/api/v1/events".to_owned()),
            ("POST", "/api/v1/bootstrap".to_owned()),
            ("POST", "/api/v1/operations/journal:prune".to_owned()),
            ("PUT", "/api/v1/consumers/reader".to_owned()),
            ("PUT", "/api/v1/event-types/order.sent/versions/1".to_owned()),
            ("POST", format!("/api/v1/orgs/{org}/notification-integrations")),
        ] {
            // What is well-formed there is somebody's data, which is shown: these are the places for names.
            if body.starts_with("{\"kind\"") && path.ends_with("principals") {
                continue;
            }
            caller.text(method, &path, &body).await;
            caller.with(method, &path, &[json], &body).await;
        }
    }
    caller.text("POST", "/api/v1/principals", &format!("{{\"displayName\":\"{}\"}}", secret.repeat(40_000))).await;
    caller.raw("no HTTP", format!("GET /{secret} HTP/9.9\r\n{secret}\r\n\r\n").as_bytes()).await;
    caller.raw("a header without end", format!("GET / HTTP/1.1\r\nx: {}", secret.repeat(20_000)).as_bytes()).await;
}

/// Two integrations whose deliveries die, by receivers that repeat what they were sent.
async fn dead_deliveries(place: &Place, caller: &Caller<'_>, list: &str) -> Value {
    let event = json!({ "type": "order.made", "entityType": "order", "entityId": "1", "payload": { "n": 1 } });
    caller.call("POST", "/api/v1/events", &json!({ "events": [event] })).await;
    for _ in 0..3 {
        let arrival = place.sink.next().await;
        let answer =
            if arrival.target.starts_with("/api") { Answer::slack_refused(BOT_TOKEN) } else { Answer::status(404) };
        arrival.answer(answer);
    }
    let deliveries = format!("{}?limit=200", list.replace("integrations", "deliveries"));
    eventually("dead deliveries", async || {
        let page = caller.call("GET", &deliveries, &Value::Null).await;
        let items = page["items"].as_array().unwrap();
        (items.len() == 3 && items.iter().all(|d| d["status"] == "dead")).then_some(page)
    })
    .await
}

/// The submission of a command.
fn command(text: &str) -> String {
    json!({ "kind": "command", "command": text }).to_string()
}

/// Commands that are run, repeated and refused in every way. Their texts are in the requests and nowhere afterwards. Where they
/// were submitted.
async fn commands(caller: &Caller<'_>, org: &str) -> String {
    let stacks = format!("/api/v1/orgs/{org}/stacks");
    let stack = caller.call("POST", &stacks, &json!({ "name": "network" })).await["id"].clone();
    let deploy = async |mode: &str| {
        let path = format!("/api/v1/orgs/{org}/deployments");
        let made = caller.call("POST", &path, &json!({ "stackId": stack, "mode": mode })).await;
        format!("{path}/{}/runs", made["id"].as_str().unwrap())
    };
    let (raw, plan) = (deploy("raw").await, deploy("plan").await);
    let good = command(COMMAND);
    let credential = format!("Bearer {}", caller.key);
    let keyed =
        [("authorization", credential.as_str()), ("content-type", "application/json"), ("idempotency-key", "once")];
    let other = command(&format!("{COMMAND} again"));
    // Done, told once more, and refused as another one under the same key.
    for (body, status) in [(&good, "201"), (&good, "201"), (&other, "409")] {
        let answer = caller.with("POST", &raw, &keyed, body).await;
        assert!(answer.starts_with(format!("HTTP/1.1 {status}").as_bytes()), "{}", String::from_utf8_lossy(&answer));
    }
    for (length, refused) in [(3_000, "400"), (45_000, "413")] {
        let answer = caller.text("POST", &raw, &command(&COMMAND.repeat(length))).await;
        assert!(answer.starts_with(format!("HTTP/1.1 {refused}").as_bytes()), "{}", String::from_utf8_lossy(&answer));
    }
    for path in [&raw, &plan, &raw.replace("/runs", "/run"), &format!("{raw}?command={COMMAND}").replace(' ', "%20")] {
        for body in [
            good.clone(),
            good.replace("\"command\"}", "\"plan\"}"),
            json!({ "kind": "plan", "command": COMMAND }).to_string(),
            json!({ "kind": "apply", "command": COMMAND }).to_string(),
            json!({ "kind": COMMAND }).to_string(),
            json!({ "kind": "command", "command": [COMMAND] }).to_string(),
            json!({ "kind": "command", "command": { COMMAND: 1 } }).to_string(),
            json!({ "kind": "command", "command": COMMAND, "shell": COMMAND }).to_string(),
            json!({ "kind": "command", "command": format!("{COMMAND}\0") }).to_string(),
            json!({ "kind": "command", "command": COMMAND, "planRunId": COMMAND }).to_string(),
            format!("{{\"kind\":\"command\",\"command\":\"{COMMAND}"),
            format!("{{\"kind\":\"command\",\"command\":{COMMAND}}}"),
            COMMAND.to_owned(),
        ] {
            caller.text("POST", path, &body).await;
        }
    }
    raw
}

/// Everything that people write, with a password in it.
async fn texts(caller: &Caller<'_>, org: &str) {
    let said = format!("It works with password={TEXT_PASSWORD} only");
    let id = |made: &Value| made["id"].as_str().unwrap().to_owned();
    let task = caller.call("POST", "/api/v1/tasks", &json!({ "title": said, "description": said })).await;
    let task = id(&task);
    caller.call("POST", &format!("/api/v1/tasks/{task}/comments"), &json!({ "body": said })).await;
    let me = caller.call("GET", "/api/v1/principals", &Value::Null).await["items"][0]["id"].clone();
    for verb in ["approve", "reject"] {
        let asked = json!({ "taskId": task, "assignedPrincipalId": me, "comment": said });
        let approval = id(&caller.call("POST", "/api/v1/approvals", &asked).await);
        // The administrator is asked or is not; both are told without it.
        let path = format!("/api/v1/approvals/{approval}:{verb}");
        caller.text("POST", &path, &json!({ "comment": said }).to_string()).await;
    }
    let checks = json!({ "checks": ["tests"] });
    let verification = id(&caller.call("POST", &format!("/api/v1/tasks/{task}/verifications"), &checks).await);
    let failed = json!({ "failedCheck": "tests", "reason": said });
    caller.call("POST", &format!("/api/v1/verifications/{verification}:fail"), &failed).await;
    let uri = format!("https://ada:{TEXT_PASSWORD}@files.example.com/plan");
    let artifact = json!({ "type": "report", "name": said, "taskId": task, "uri": uri });
    caller.text("POST", "/api/v1/artifacts", &artifact.to_string()).await;
    caller.call("POST", "/api/v1/goals", &json!({ "title": said, "description": said })).await;
    let stacks = format!("/api/v1/orgs/{org}/stacks");
    let label = json!({ "note": format!("password={TEXT_PASSWORD}") });
    let stack = id(&caller.call("POST", &stacks, &json!({ "name": said, "labels": label })).await);
    let path = format!("/api/v1/orgs/{org}/deployments");
    let body = json!({ "stackId": stack, "mode": "plan", "commitMessage": said });
    let deployment = id(&caller.call("POST", &path, &body).await);
    let run = id(&caller.call("POST", &format!("{path}/{deployment}/runs"), &json!({ "kind": "plan" })).await);
    let ended = json!({ "status": "failed", "error": said });
    caller.call("POST", &format!("/api/v1/orgs/{org}/runs/{run}:complete"), &ended).await;
}

/// What every server says at its start that is refused.
async fn refused_starts(place: &Place, heard: &Heard, leaks: &mut Leaks) {
    let url = format!("mysql://courant:{DATABASE_PASSWORD}@127.0.0.1/x");
    let gone = format!("postgres://courant:{DATABASE_PASSWORD}@127.0.0.1:1/x");
    let broken = format!("postgres://courant:{DATABASE_PASSWORD}@127.0.0.1:port/x?sslmode={DATABASE_PASSWORD}");
    let ring = format!("one:{RING_KEY}x");
    let twice = format!("one:{RING_KEY},one:{RING_KEY}");
    for (name, value) in [
        ("COURANT_DATABASE_URL", url.as_str()),
        ("COURANT_DATABASE_URL", &gone),
        ("COURANT_DATABASE_URL", &broken),
        ("COURANT_ENCRYPTION_KEYS", &ring),
        ("COURANT_ENCRYPTION_KEYS", &twice),
        ("COURANT_ENCRYPTION_KEYS", RING_KEY),
    ] {
        for command in [&["serve"][..], &["doctor", "--json"], &["migrate"], &["bootstrap", "--name", "x"]] {
            let Ended { code, stdout, stderr } = place.run_with(command, &[(name, value)]).await;
            assert!(code != Some(0) || command != ["serve"], "{name}: {command:?}");
            heard.search(&format!("{command:?} with a bad {name}"), format!("{stdout}{stderr}").as_bytes(), leaks);
        }
    }
}

fn in_file(place: &Place, heard: &Heard, leaks: &mut Leaks) {
    let Some(dir) = place.database.sqlite_dir() else { return };
    for file in std::fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        heard.search(&format!("{}", path.display()), &std::fs::read(&path).unwrap(), leaks);
    }
}

async fn no_secret_is_told_or_kept(mut place: Place) {
    let heard = Heard::default();
    for (kind, secret) in [
        ("the bootstrap secret", BOOTSTRAP),
        ("the encryption key", RING_KEY),
        ("the database password", DATABASE_PASSWORD),
        ("a bot token", BOT_TOKEN),
        ("a bot token", SECOND_BOT_TOKEN),
        ("a webhook secret", WEBHOOK_SECRET.trim_start_matches("whsec_")),
        ("a password in a URL", URL_PASSWORD),
        ("a key of nobody", OTHER_KEY),
        ("a command", COMMAND),
    ] {
        heard.plant(kind, secret.as_bytes());
    }
    heard.plant("the encryption key", RING_KEY_BYTES);
    let mut leaks = Leaks::new();
    let (proxy, url) = behind_proxy(&place).await;
    let ring = format!("one:{RING_KEY}");
    let slack = place.sink.url("/api");
    for (name, value) in [
        ("COURANT_LOG_FILTER", "trace"),
        ("COURANT_BOOTSTRAP_SECRET", BOOTSTRAP),
        ("COURANT_ENCRYPTION_KEYS", &ring),
        ("COURANT_DATABASE_URL", &url),
        ("COURANT_NOTIFICATION_MAX_ATTEMPTS", "1"),
        ("SLACK_API_BASE_URL", &slack),
    ] {
        place.settings.insert(name.into(), value.into());
    }
    let server = place.serve().await;

    let nobody = Caller { heard: &heard, server: server.address, key: BOOTSTRAP.to_owned() };
    let made = nobody.make("/api/v1/bootstrap", &json!({ "name": "acme" }), "apiKey", "an administrator's key").await;
    let (org, key) = tenant(&made);
    let caller = Caller { heard: &heard, server: server.address, key };
    let member = json!({ "kind": "service", "displayName": "member" });
    let member = caller.call("POST", "/api/v1/principals", &member).await["id"].clone();
    let task = caller.call("POST", "/api/v1/tasks", &json!({ "title": "Decide" })).await["id"].clone();
    let approval = json!({ "taskId": task, "assignedPrincipalId": member });
    let approval = caller.call("POST", "/api/v1/approvals", &approval).await["id"].clone();
    let tokens = format!("/api/v1/approvals/{}/decision-tokens", approval.as_str().unwrap());
    let token = json!({ "principalId": member, "channel": "chat" });
    let token = caller.make(&tokens, &token, "token", "a token for one decision").await["token"].clone();
    let decider = Caller { heard: &heard, server: server.address, key: token.as_str().unwrap().to_owned() };
    decider.text("POST", &format!("/api/v1/approvals/{}:approve", approval.as_str().unwrap()), "{}").await;
    decider.text("GET", "/api/v1/events", "").await;
    let body = json!({ "principalId": member });
    let second = caller.make("/api/v1/api-keys", &body, "apiKey", "a member's key").await;
    let third = caller.make("/api/v1/api-keys", &body, "apiKey", "a revoked key").await;
    caller.call("POST", &format!("/api/v1/api-keys/{}:revoke", third["id"].as_str().unwrap()), &Value::Null).await;
    for key in [&second["apiKey"], &third["apiKey"]] {
        let member = Caller { heard: &heard, server: server.address, key: key.as_str().unwrap().to_owned() };
        member.text("GET", "/api/v1/principals", "").await;
    }

    let body =
        json!({ "entityType": "order", "schema": { "type": "object", "properties": { "n": { "type": "integer" } } } });
    caller.call("PUT", "/api/v1/event-types/order.made/versions/1", &body).await;
    let list = format!("/api/v1/orgs/{org}/notification-integrations");
    let webhook = |name: &str, path: &str, auth: Value| {
        json!({ "name": name, "provider": "webhook", "journalTypes": ["order."], "authConfig": auth, "providerConfig": {
            "url": place.sink.url(path), "headers": { "x-token": HEADER_VALUE } } })
    };
    let body = webhook("hooks", &format!("/in?token={URL_TOKEN}"), json!({ "secret": WEBHOOK_SECRET }));
    caller.call("POST", &list, &body).await;
    caller.make(&list, &webhook("made", "/made", json!({})), "generatedSecret", "a made webhook secret").await;
    let chat = json!({ "name": "chat", "provider": "slack", "journalTypes": ["order."],
        "providerConfig": { "defaultChannel": "#ops" }, "authConfig": { "botToken": BOT_TOKEN } });
    let chat = caller.call("POST", &list, &chat).await["id"].as_str().unwrap().to_owned();
    let dead = dead_deliveries(&place, &caller, &list).await;
    let told = json!({ "name": "told", "provider": "webhook", "events": ["run_command_executed", "deployment_failed"],
        "journalTypes": ["run_command.", "deployment."], "paused": true, "authConfig": { "secret": WEBHOOK_SECRET },
        "providerConfig": { "url": place.sink.url("/told") } });
    caller.call("POST", &list, &told).await;
    let submitted = commands(&caller, &org).await;
    texts(&caller, &org).await;
    let deliveries = format!("{}?limit=200", list.replace("integrations", "deliveries"));
    let told = eventually("what is told of commands", async || {
        let page = caller.call("GET", &deliveries, &Value::Null).await;
        let types: Vec<_> = page["items"].as_array().unwrap().iter().map(|d| d["eventType"].clone()).collect();
        (types.contains(&json!("run_command_executed")) && types.contains(&json!("deployment_failed"))).then_some(page)
    })
    .await;
    let change = json!({ "authConfig": { "botToken": SECOND_BOT_TOKEN } });
    caller.call("PATCH", &format!("{list}/{chat}"), &change).await;
    for path in [list.as_str(), "/api/v1/api-keys", "/api/v1/events?limit=1000", "/metrics", "/readyz"] {
        caller.call("GET", path, &Value::Null).await;
    }

    for secret in [&caller.key, BOT_TOKEN, URL_PASSWORD, OTHER_KEY, BOOTSTRAP] {
        refusals(&caller, &org, secret).await;
    }
    if let Some(proxy) = &proxy {
        proxy.set(Fault::Refuse);
        refusals(&caller, &org, BOT_TOKEN).await;
        caller.text("POST", &submitted, &command(COMMAND)).await;
        caller.text("POST", &list, &webhook("later", "/in", json!({ "secret": WEBHOOK_SECRET })).to_string()).await;
        proxy.set(Fault::None);
        eventually("the database", async || {
            caller.text("GET", "/readyz", "").await.starts_with(b"HTTP/1.1 200").then_some(())
        })
        .await;
    }
    let events = caller.call("GET", "/api/v1/events?limit=1000", &Value::Null).await;
    let metrics = caller.text("GET", "/metrics", "").await;
    for args in [&["tail", "--no-follow"][..], &["journal", "show", "--tenant", &org]] {
        for key in [&caller.key, OTHER_KEY] {
            let url = format!("http://{}", server.address);
            let ended = place.run_with(args, &[("COURANT_URL", url.as_str()), ("COURANT_API_KEY", key)]).await;
            heard.search(&format!("what {args:?} says"), format!("{ended:?}").as_bytes(), &mut leaks);
        }
    }
    server.signal("TERM");
    let Ended { code, stdout, stderr } = server.ended_having_said().await;
    assert_eq!(code, Some(0));
    let said = stdout + &stderr;
    assert!(said.contains("\"level\":\"TRACE\""), "the log does not tell everything");
    assert!(!said.contains("panicked"), "{said}");
    refused_starts(&place, &heard, &mut leaks).await;

    for (what, answer) in heard.answers.lock().unwrap().iter() {
        heard.search(&format!("the answer to {what}"), answer, &mut leaks);
    }
    in_file(&place, &heard, &mut leaks);
    heard.search("the database", place.database.contents().await.join("\n").as_bytes(), &mut leaks);
    heard.plant("a password in a text", TEXT_PASSWORD.as_bytes());
    heard.search("what is told", told.to_string().as_bytes(), &mut leaks);
    // These stand in settings that whoever may read the integration sees, and nowhere else.
    heard.plant("a token in a webhook's URL", URL_TOKEN.as_bytes());
    heard.plant("a header of a webhook", HEADER_VALUE.as_bytes());
    heard.search("the log", said.as_bytes(), &mut leaks);
    heard.search("the journal", events.to_string().as_bytes(), &mut leaks);
    heard.search("the dead deliveries", dead.to_string().as_bytes(), &mut leaks);
    heard.search("the metrics", &metrics, &mut leaks);
    leaks.sort();
    leaks.dedup();
    assert!(leaks.is_empty(), "{} leaks:\n{}", leaks.len(), leaks.join("\n"));
}

/// The database's URL with a password in it, on PostgreSQL through something that can cut it off.
async fn behind_proxy(place: &Place) -> (Option<Proxy>, String) {
    if !place.database.is_postgres() {
        return (None, place.database.url().to_owned());
    }
    let proxy = Proxy::postgres(place.database.url()).await;
    let (scheme, rest) = proxy.url().split_once("://").unwrap();
    let (user, rest) = rest.split_once('@').unwrap();
    let user = user.split(':').next().unwrap();
    let url = format!("{scheme}://{user}:{DATABASE_PASSWORD}@{rest}");
    (Some(proxy), url)
}

on_both_databases! {
    no_secret_is_told_or_kept,
}
