"""The examples, run as they are against a real server."""

import hashlib
import hmac
import http.client
import io
import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("COURANT_BIN", ROOT / "target/debug/courant"))
WEBHOOKS = Path(os.environ.get("COURANT_TEST_WEBHOOKS", ROOT / "target/octokit-webhooks-examples-7.6.1.tgz"))
WEBHOOKS_SHA512 = "0dee94dd707a3b70ed09aedb2a008ccd31dd7a8a6aa99e92362bcc6099caeb989eaca2f5027348034b644580914bb970193efdd9df8fb3559b7c796ca3a3329d"
SECRET = "the webhook's secret"


def eventually(what, found):
    """Waits for what `found` answers; the deadline is for a test that would never end."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what} did not come")


class Process:
    """A program that says on a line of its standard error or output where it listens."""

    def __init__(self, command, env, listens):
        self.process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
        )
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        line = eventually(listens, lambda: next((line for line in self.lines if listens in line), None))
        self.line = line.strip()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server on a SQLite file, with a tenant."""

    def __init__(self, directory):
        self.directory = directory
        self.env = {**os.environ, "COURANT_DATA_DIR": str(directory), "COURANT_DATABASE_URL": f"sqlite://{directory}/courant.db"}
        subprocess.run([BINARY, "migrate"], env=self.env, check=True, capture_output=True)
        made = subprocess.run(
            [BINARY, "bootstrap", "--name", "acme", "--json"], env=self.env, check=True, capture_output=True, text=True
        )
        made = json.loads(made.stdout)
        self.org, self.key = made["tenantId"], made["apiKey"]
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None
        self.start()

    def start(self):
        env = {**self.env, "COURANT_LISTEN": f"127.0.0.1:{self.port}"}
        self.process = subprocess.Popen([BINARY, "serve"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually("the server", self.is_ready)

    def is_ready(self):
        try:
            return urllib.request.urlopen(f"{self.url}/readyz", timeout=5).status == 200
        except OSError:
            return False

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)

    def client_env(self):
        return {**os.environ, "COURANT_URL": self.url, "COURANT_API_KEY": self.key, "COURANT_ORG": self.org}

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}"}
        if data is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(
            f"{self.url}/api/v1/orgs/{self.org}{path}", data=data, method=method, headers=headers
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.loads(response.read() or b"null")

    def deployments(self):
        """Oldest first."""
        return self.call("GET", "/deployments?limit=200")["items"][::-1]

    def events(self):
        request = urllib.request.Request(
            f"{self.url}/api/v1/events?limit=1000&types=deployment.,run_command.,stack.",
            headers={"Authorization": f"Bearer {self.key}"},
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return [event["type"] for event in json.load(response)["items"]]


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    yield server
    server.stop()


# The bridge.


@pytest.fixture(scope="session")
def webhooks():
    """GitHub's own samples: (event, payload)."""
    assert WEBHOOKS.exists(), f"{WEBHOOKS} is missing; `cargo xtask test` fetches it"
    data = WEBHOOKS.read_bytes()
    assert hashlib.sha512(data).hexdigest() == WEBHOOKS_SHA512, f"{WEBHOOKS} is not what it should be; remove it"
    samples = []
    with tarfile.open(fileobj=io.BytesIO(data)) as package:
        for name in sorted(package.getnames()):
            if name.endswith("/index.json"):
                for kind in json.load(package.extractfile(name)):
                    samples += [(kind["name"], payload) for payload in kind["examples"]]
    return samples


class Bridge:
    def __init__(self, server, state, **env):
        env = {
            **server.client_env(),
            "GITHUB_WEBHOOK_SECRET": SECRET,
            "BRIDGE_LISTEN": "127.0.0.1:0",
            "BRIDGE_STATE": str(state),
            **env,
        }
        self.process = Process([sys.executable, ROOT / "examples/github-bridge/bridge.py"], env, "listening on")
        self.port = int(self.process.line.rpartition(":")[2])

    def send(self, event, payload, signature=None, headers=()):
        """The status and message of the answer."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        if signature is None:
            signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {"X-GitHub-Event": event, "X-Hub-Signature-256": signature, "Content-Type": "application/json"}
        connection.request("POST", "/", body=body, headers={**sent, **dict(headers)})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())["message"]

    def stop(self):
        self.process.stop()


@pytest.fixture
def bridge(server, tmp_path):
    bridge = Bridge(server, tmp_path / "bridge.db")
    yield bridge
    bridge.stop()


def sample(webhooks, event, holds):
    return json.loads(json.dumps(next(payload for name, payload in webhooks if name == event and holds(payload))))


def status_sample(webhooks, state, number):
    """A sample of a deployment's status, in this state, of this deployment."""
    payload = sample(webhooks, "deployment_status", lambda _: True)
    payload["deployment_status"]["state"], payload["deployment"]["id"] = state, number
    return payload


def test_every_sample_of_github_is_taken_and_the_ends_are_told(server, bridge, webhooks):
    kinds = {"deployment_status", "check_run"}
    samples = [(event, payload) for event, payload in webhooks if event in kinds]
    assert len(samples) > 20
    for event, payload in samples:
        status, message = bridge.send(event, payload)
        assert status == 200, message
    others = [(event, payload) for event, payload in webhooks if event not in kinds]
    for event, payload in others[::10]:
        assert bridge.send(event, payload) == (200, "nothing to do for this event")
    deployments = server.deployments()
    stacks = {stack["id"]: stack for stack in server.call("GET", "/stacks?limit=200")["items"]}
    told = {(stacks[d["stackId"]]["name"], d["status"]) for d in deployments}
    assert ("Codertocat/Hello-World production", "finished") in told
    assert ("Codertocat/Hello-World Octocoders-linter", "failed") in told
    assert ("electron/electron API Review", "running") in told
    labels = next(s["labels"] for s in stacks.values() if s["name"] == "Codertocat/Hello-World production")
    assert labels == {"environment": "production", "repository": "Codertocat/Hello-World"}
    linter = next(d for d in deployments if stacks[d["stackId"]]["name"].endswith("linter"))
    assert linter["origin"]["number"] == 2 and linter["url"].startswith("https://github.com/")
    before = server.events()
    for event, payload in samples:
        assert bridge.send(event, payload)[0] == 200
    assert server.events() == before, "what is delivered again changes nothing"


def test_a_deployment_is_followed_from_its_begin_to_its_end(server, bridge, webhooks):
    for number, (state, ends) in enumerate(
        [("success", "finished"), ("failure", "failed"), ("error", "failed")], start=1
    ):
        for waits in ("pending", "queued", "inactive"):
            assert bridge.send("deployment_status", status_sample(webhooks, waits, number))[0] == 200
        assert len(server.deployments()) == number - 1
        assert bridge.send("deployment_status", status_sample(webhooks, "in_progress", number)) == (200, "it has begun")
        assert server.deployments()[-1]["status"] == "running"
        payload = status_sample(webhooks, state, number)
        payload["deployment_status"]["description"] = "2 of 40 pods are ready"
        for _ in range(3):
            assert bridge.send("deployment_status", payload)[0] == 200
        # What comes late changes nothing.
        assert bridge.send("deployment_status", status_sample(webhooks, "in_progress", number))[0] == 200
        deployment = server.deployments()[-1]
        assert deployment["status"] == ends
        assert deployment["error"] == (None if state == "success" else "2 of 40 pods are ready")
    assert server.events().count("deployment.succeeded") == 1


def test_conclusions_of_checks_have_their_ends(server, bridge, webhooks):
    ends = {
        "success": "finished",
        "neutral": "finished",
        "failure": "failed",
        "timed_out": "failed",
        "action_required": "failed",
        "cancelled": "cancelled",
        "skipped": "skipped",
    }
    for number, (conclusion, status) in enumerate(ends.items(), start=1):
        payload = sample(webhooks, "check_run", lambda p: p["check_run"]["status"] == "completed")
        payload["check_run"]["conclusion"], payload["check_run"]["id"] = conclusion, number
        assert bridge.send("check_run", payload)[0] == 200
        assert server.deployments()[-1]["status"] == status, conclusion


def test_only_what_github_signed_is_taken(server, bridge, webhooks):
    payload = status_sample(webhooks, "success", 1)
    body = json.dumps(payload).encode()
    good = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    other = hmac.new(b"another secret", body, hashlib.sha256).hexdigest()
    for wrong in ("", "é", good, f"sha1={good}", f"sha256={other}", f"sha256={good[:-1]}", f"sha256={good}0"):
        assert bridge.send("deployment_status", body, signature=wrong)[0] == 401, wrong
    assert bridge.send("deployment_status", body + b" ", signature=f"sha256={good}")[0] == 401
    assert server.deployments() == []
    assert bridge.send("deployment_status", body, signature=f"sha256={good}")[0] == 200
    for odd in (b"", b"{}", b"[]", b"not json", b'{"deployment_status":{"state":"success"}}', b"\xff\xfe"):
        assert bridge.send("deployment_status", odd)[0] == 400, odd
    for huge in (str(25 * 1024 * 1024 + 1), "9" * 5000):
        assert bridge.send("deployment_status", b"", headers=[("Content-Length", huge)])[0] == 413
    for odd in ("-1", "0x1", "\u00b2"):
        assert bridge.send("deployment_status", b"", headers=[("Content-Length", odd)])[0] == 411


def test_a_webhook_without_a_signature_is_refused(bridge):
    connection = http.client.HTTPConnection("127.0.0.1", bridge.port, timeout=60)
    connection.request("POST", "/", body=b"{}", headers={"X-GitHub-Event": "deployment_status"})
    assert connection.getresponse().status == 401


def test_what_courant_did_not_take_is_delivered_again_and_a_restart_forgets_nothing(server, bridge, webhooks, tmp_path):
    begin, end = status_sample(webhooks, "in_progress", 1), status_sample(webhooks, "success", 1)
    assert bridge.send("deployment_status", begin)[0] == 200
    server.stop()
    assert bridge.send("deployment_status", end)[0] == 503
    server.start()
    bridge.stop()
    again = Bridge(server, tmp_path / "bridge.db")
    try:
        for _ in range(2):
            assert again.send("deployment_status", end)[0] == 200
    finally:
        again.stop()
    assert [d["status"] for d in server.deployments()] == ["finished"]


def test_what_somebody_cancels_in_courant_stays_so(server, bridge, webhooks):
    assert bridge.send("deployment_status", status_sample(webhooks, "in_progress", 1))[0] == 200
    server.call("POST", f"/deployments/{server.deployments()[0]['id']}:cancel")
    assert bridge.send("deployment_status", status_sample(webhooks, "success", 1))[0] == 200
    assert [d["status"] for d in server.deployments()] == ["cancelled"]


class Between:
    """Stands between a bridge and Courant: passes requests on, and loses what it is told to."""

    def __init__(self, server):
        self.server, self.loses, self.asked = server, lambda line: None, []
        between = self

        class Handler(BaseHTTPRequestHandler):
            def pass_on(self):
                line = f"{self.command} {self.path}"
                between.asked.append(line)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
                connection.request(self.command, self.path, body=body, headers=dict(self.headers))
                answer = connection.getresponse()
                said = answer.read()
                instead = between.loses(line)
                self.close_connection = True
                if instead is not None:
                    self.wfile.write(instead)
                    return
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = pass_on

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def loses_once(self, what, instead=b""):
        """Of the next request whose line ends so, Courant's answer is lost."""
        left = [what]

        def loses(line):
            if left and line.endswith(left[0]):
                left.clear()
                return instead
            return None

        self.loses = loses
        return left

    def stop(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def between(server):
    between = Between(server)
    yield between
    between.stop()


@pytest.fixture
def far_bridge(server, between, tmp_path):
    bridge = Bridge(server, tmp_path / "bridge.db", COURANT_URL=between.url, BRIDGE_HEARTBEAT_SECONDS="0.05")
    yield bridge
    bridge.stop()


# An answer that breaks off, none at all, a proxy's page, and one that leads elsewhere.
LOST = (
    b"",
    b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone",
    b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
)


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("step", ["/stacks", "/deployments", "/runs", ":complete"])
def test_an_answer_that_is_lost_repeats_nothing(server, between, far_bridge, webhooks, step, lost):
    left = between.loses_once(step, lost)
    first = status_sample(webhooks, "success", 1)
    assert far_bridge.send("deployment_status", first)[0] == 503
    assert not left and not any("elsewhere" in line for line in between.asked)
    # Another webhook of the same deployment comes before the first one does again, with another page.
    other = status_sample(webhooks, "success", 1)
    other["deployment_status"]["log_url"] = "https://ci.example.com/2"
    for payload in (other, first):
        assert far_bridge.send("deployment_status", payload)[0] == 200
    assert [d["status"] for d in server.deployments()] == ["finished"]
    assert [event for event in server.events() if event.startswith("deployment.")] == ["deployment.created", "deployment.succeeded"]
    assert len(server.call("GET", "/stacks")["items"]) == 1


def rename(directory, table, to):
    with closing(sqlite3.connect(directory / "bridge.db")) as db:
        db.execute(f"ALTER TABLE {table} RENAME TO {to}")


def test_open_runs_are_heard_of_until_they_end_whatever_the_answers(server, between, far_bridge, webhooks, tmp_path):
    assert far_bridge.send("deployment_status", status_sample(webhooks, "in_progress", 1))[0] == 200
    deployment = server.deployments()[0]

    def heard():
        return server.call("GET", f"/deployments/{deployment['id']}/runs")["items"][0]["heartbeatAt"]

    for lost in LOST:
        left = between.loses_once(":heartbeat", lost)
        eventually("a heartbeat that is lost", lambda: not left)
        before = heard()
        eventually("a later heartbeat", lambda: heard() > before)
    # Nor does a failure of its own end them.
    rename(tmp_path, "followed", "away")
    eventually("a failure", lambda: any("heartbeats: " in line for line in far_bridge.process.lines))
    rename(tmp_path, "away", "followed")
    before = heard()
    eventually("a later heartbeat", lambda: heard() > before)
    server.call("POST", f"/deployments/{deployment['id']}:cancel")
    eventually("the end of heartbeats", lambda: any("heartbeat" in line and "cancelled" in line for line in far_bridge.process.lines))
    assert far_bridge.send("deployment_status", status_sample(webhooks, "success", 1)) == (200, "it has ended before")


def test_a_stack_that_was_deleted_is_made_again(server, bridge, webhooks):
    assert bridge.send("deployment_status", status_sample(webhooks, "success", 1))[0] == 200
    stack = server.call("GET", "/stacks")["items"][0]["id"]
    server.call("DELETE", f"/stacks/{stack}")
    assert bridge.send("deployment_status", status_sample(webhooks, "success", 2))[0] == 200
    assert server.deployments()[-1]["status"] == "finished" and server.deployments()[-1]["stackId"] != stack


def test_what_cannot_be_told_as_it_is_is_told_as_far_as_it_can(server, bridge, webhooks):
    payload = status_sample(webhooks, "failure", 1)
    payload["deployment_status"] |= {
        "environment": " a\nb\u001b[31m" + "é" * 300,
        "description": "no\u001b[31m bucket\n\ud800" + "x" * 20_000,
        "log_url": "javascript:alert(1)",
        "target_url": "https://ci.example.com/a b",
    }
    payload["deployment"]["ref"] = "b" * 600
    assert bridge.send("deployment_status", payload)[0] == 200
    deployment = server.deployments()[0]
    assert deployment["error"].startswith("no[31m bucket\nx") and len(deployment["error"]) == 10_000
    assert deployment["url"] == payload["repository"]["html_url"]
    stack = server.call("GET", "/stacks")["items"][0]
    assert stack["name"].startswith("Codertocat/Hello-World  ab[31mé") and len(stack["name"]) == 200


# The pipeline.

TOFU = """#!/bin/sh
case "$1" in
  plan) echo planned; exit ${PLAN_CODE:-2} ;;
  show) cat <<'JSON'
{"format_version": "1.2", "resource_changes": [
  {"change": {"actions": ["create"]}}, {"change": {"actions": ["delete", "create"]}}]}
JSON
  ;;
  apply) echo applied; exit ${APPLY_CODE:-0} ;;
esac
"""


class Pipeline:
    def __init__(self, server, directory, tool=TOFU, **env):
        tools = directory / "tools"
        tools.mkdir(exist_ok=True)
        tofu = tools / "tofu"
        tofu.write_text(tool)
        tofu.chmod(tofu.stat().st_mode | stat.S_IXUSR)
        (tools / "courant").unlink(missing_ok=True)
        (tools / "courant").symlink_to(BINARY)
        env = {**server.client_env(), "PATH": f"{tools}:{os.environ['PATH']}", "STACK": "network", "COMMIT": "4f9c2d1", "BRANCH": "main", **env}
        script = ROOT / "examples/pipeline/pipeline.sh"
        self.process = subprocess.Popen(
            [script],
            env=env,
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def send(self, name, to):
        """A CI system sends a signal to the script alone, a terminal to all that runs in it."""
        send = os.killpg if to == "all" else os.kill
        send(self.process.pid, getattr(signal, f"SIG{name}"))

    def ended(self):
        out, error = self.process.communicate(timeout=120)
        return self.process.returncode, out, error


def waiting(server):
    return next((d for d in server.deployments() if d["status"] == "awaiting_confirmation"), None)


def test_the_pipeline_plans_waits_applies_and_tells(server, tmp_path):
    pipeline = Pipeline(server, tmp_path)
    deployment = eventually("a plan that waits", lambda: waiting(server))
    assert (deployment["planSummary"]["add"], deployment["planSummary"]["destroy"]) == (2, 1)
    assert (deployment["commitSha"], deployment["origin"]) == ("4f9c2d1", {"kind": "push", "branch": "main"})
    server.call("POST", f"/deployments/{deployment['id']}:confirm")
    code, out, error = pipeline.ended()
    assert (code, out) == (0, f"{deployment['id']}: finished\n"), error
    expected = ["deployment.created", "deployment.awaiting_confirmation", "deployment.confirmed", "deployment.succeeded"]
    assert [event for event in server.events() if event.startswith("deployment.")] == expected


def test_the_pipeline_asks_nobody_when_nothing_changes(server, tmp_path):
    code, out, error = Pipeline(server, tmp_path, PLAN_CODE="0").ended()
    assert code == 0 and out.endswith(": finished\n"), error


@pytest.mark.parametrize("failing", ["PLAN_CODE", "APPLY_CODE"])
def test_the_pipeline_tells_its_failure(server, tmp_path, failing):
    pipeline = Pipeline(server, tmp_path, **{failing: "7"})
    if failing == "APPLY_CODE":
        deployment = eventually("a plan that waits", lambda: waiting(server))
        server.call("POST", f"/deployments/{deployment['id']}:confirm")
    code, _, error = pipeline.ended()
    deployment = server.deployments()[0]
    assert (code, deployment["status"]) == (7, "failed"), error
    assert deployment["error"] == "the pipeline ended with code 7"


def test_a_pipeline_whose_deployment_is_skipped_ends(server, tmp_path):
    pipeline = Pipeline(server, tmp_path)
    deployment = eventually("a plan that waits", lambda: waiting(server))
    server.call("POST", f"/deployments/{deployment['id']}:skip")
    code, _, error = pipeline.ended()
    assert code == 1 and "the deployment is skipped" in error


# Says that it has begun, and which signal it was sent, and ends then.
TOFU_THAT_WAITS = """#!/bin/sh
sleep 86400 &
for name in INT TERM; do trap "kill $!; echo $name >> told; exit 9" $name; done
echo > begun
wait
"""


@pytest.mark.parametrize(("to", "sent", "code", "told"), [("script", "TERM", 143, "TERM"), ("all", "INT", 130, "INT")])
def test_a_pipeline_that_is_stopped_lets_its_tool_end_and_fails_its_run(server, tmp_path, to, sent, code, told):
    pipeline = Pipeline(server, tmp_path, TOFU_THAT_WAITS)
    eventually("the plan", (tmp_path / "begun").exists)
    pipeline.send(sent, to)
    ended, _, error = pipeline.ended()
    assert ended == code, error
    assert (tmp_path / "told").read_text() == f"{told}\n", "once: at a second signal a tool breaks off"
    deployment = server.deployments()[0]
    assert (deployment["status"], deployment["error"]) == ("failed", f"the pipeline ended with code {code}")


@pytest.mark.parametrize(("to", "sent", "code"), [("script", "TERM", 143), ("all", "INT", 130)])
def test_a_pipeline_that_is_stopped_while_it_waits_for_a_person_ends_at_once(server, tmp_path, to, sent, code):
    pipeline = Pipeline(server, tmp_path)
    deployment = eventually("a plan that waits", lambda: waiting(server))
    eventually("the wait", (tmp_path / "confirmed.env").exists)
    pipeline.send(sent, to)
    ended, _, error = pipeline.ended()
    assert ended == code, error
    assert waiting(server)["id"] == deployment["id"]


# The commands.


def courant(server, *arguments):
    return subprocess.run([BINARY, "deployments", *arguments], env=server.client_env(), capture_output=True, text=True)


def test_what_the_commands_say_is_fit_for_a_script(server):
    started = courant(server, "start", "--stack", "web", "--create-stack", "--mode", "raw", "--command", "make", "--json")
    made = json.loads(started.stdout)
    assert (made["deployment"]["status"], made["run"]["commandBytes"]) == ("running", 4)
    run = made["run"]["id"]
    passed = courant(server, "report", "--run", run, "--every", "1", "--", "sh", "-c", "echo out; exit 3")
    assert (passed.returncode, passed.stdout) == (3, "out\n")
    killed = courant(server, "report", "--run", run, "--", "sh", "-c", "kill -9 $$")
    assert killed.returncode == 137
    done = courant(server, "finish", "--run", run, "--status", "succeeded")
    assert done.stdout == f"deployment={made['deployment']['id']}\nstatus=finished\nrun={run}\n"
    for late in (["finish", "--run", run, "--status", "succeeded"], ["report", "--run", run]):
        refused = courant(server, *late)
        assert (refused.returncode, refused.stdout) == (1, "") and "succeeded" in refused.stderr, refused.stderr


def test_what_is_wrong_is_said(server):
    for arguments, code, said in [
        (["start", "--stack", "nowhere"], 1, "--create-stack"),
        (["start"], 2, "--stack"),
        (["start", "--stack", "a", "--deployment", "b"], 2, ""),
        (["start", "--stack", "a", "--mode", "apply"], 2, "plan_unlocked"),
        (["finish", "--run", "1", "--status", "succeeded"], 2, "--run"),
        (["finish", "--run", "019a2f51-d37a-7535-b849-b0ca43e91613", "--status", "done"], 2, "succeeded"),
        (["finish", "--run", "019a2f51-d37a-7535-b849-b0ca43e91613", "--status", "succeeded"], 1, "not found"),
        (["start", "--stack", "a", "--create-stack", "--mode", "raw"], 1, "--command"),
    ]:
        ended = courant(server, *arguments)
        assert (ended.returncode, ended.stdout) == (code, ""), arguments
        assert said in ended.stderr, ended.stderr
    for _ in range(2):
        server.call("POST", "/stacks", {"name": "twin"})
    assert "several stacks" in courant(server, "start", "--stack", "twin").stderr


def test_a_command_that_courant_has_cancelled_is_ended(server, tmp_path):
    made = json.loads(courant(server, "start", "--stack", "web", "--create-stack", "--json").stdout)
    env, run = server.client_env(), made["run"]["id"]
    report = subprocess.Popen(
        [BINARY, "deployments", "report", "--run", run, "--every", "1", "--", "sh", "-c", "touch begun; exec sleep 1000"],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually("the command", (tmp_path / "begun").exists)
    server.call("POST", f"/deployments/{made['deployment']['id']}:cancel")
    _, error = report.communicate(timeout=60)
    assert report.returncode == 1 and "the command was ended" in error
