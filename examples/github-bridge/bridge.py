"""Turns GitHub's `deployment_status` and `check_run` webhooks into deployments of Courant.

Each environment of a repository, and each check, is a stack of its own. GitHub carries the deployment out; this program is
the runner that Courant hears of. Needs Python 3.11 or newer and nothing else. Configuration comes from the environment:

    COURANT_URL, COURANT_API_KEY, COURANT_ORG   where to report, and as whom
    GITHUB_WEBHOOK_SECRET                       the secret of the webhook
    BRIDGE_LISTEN                               host:port, 127.0.0.1:8090 unless given
    BRIDGE_STATE                                a SQLite file, github-bridge.db unless given
    BRIDGE_HEARTBEAT_SECONDS                    how often open runs are told to go on, 60 unless given
"""

import hashlib
import hmac
import http.client
import json
import os
import sqlite3
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
import uuid
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# GitHub sends no larger webhooks.
MAX_BODY_BYTES = 25 * 1024 * 1024
# Courant gives up a runner that is silent for five minutes.
HEARTBEAT_SECONDS = 60
# What a check or an environment that nobody ends is held open for.
MAX_OPEN_SECONDS = 24 * 60 * 60

BEGIN, SUCCEED, FAIL, CANCEL, SKIP = "begin", "succeed", "fail", "cancel", "skip"

DEPLOYMENT_STATES = {
    "in_progress": BEGIN,
    "success": SUCCEED,
    "failure": FAIL,
    "error": FAIL,
}
CONCLUSIONS = {
    "success": SUCCEED,
    "neutral": SUCCEED,
    "failure": FAIL,
    "timed_out": FAIL,
    "action_required": FAIL,
    "startup_failure": FAIL,
    "stale": FAIL,
    "cancelled": CANCEL,
    "skipped": SKIP,
}


class Refused(Exception):
    """Courant does not take a request, and would not take it again."""

    def __init__(self, status, code, text):
        super().__init__(f"{status} {code}: {text}")
        self.code = code

    @property
    def is_over(self):
        """Whether what is told of has ended in Courant before: somebody cancelled it there, say."""
        return self.code == "illegal_transition"


class Away(OSError):
    """Courant may take the same request later."""


class StaysHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key is for the configured address alone."""

    def redirect_request(self, *_):
        return None


class Courant:
    """The part of Courant's API that deployments need."""

    def __init__(self, url, key, org):
        self.base = f"{url.rstrip('/')}/api/v1/orgs/{org}"
        self.key = key
        self.opener = urllib.request.build_opener(StaysHere())

    def call(self, method, path, body=None, idempotency_key=None):
        headers = {"Authorization": f"Bearer {self.key}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if idempotency_key is not None:
            headers["Idempotency-Key"] = hashlib.sha256(idempotency_key.encode()).hexdigest()
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method, headers=headers)
        try:
            with self.opener.open(request, timeout=30) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            raise refusal(error) from None
        except (http.client.HTTPException, ValueError) as error:
            raise Away(f"its answer cannot be read: {error!r}") from error

    def stack(self, name, labels):
        """The stack of this name, made when there is none."""
        found = self.call("GET", "/stacks?limit=1&name=" + urllib.parse.quote(name))["items"]
        if found:
            return found[0]["id"]
        # Not under a key of its name: it may have been deleted, and is made again.
        return self.call("POST", "/stacks", {"name": name, "labels": labels}, str(uuid.uuid4()))["id"]


def refusal(error):
    """What an error's answer means."""
    try:
        said = json.loads(error.read(64 * 1024))["error"]
        code, message = said["code"], said["message"]
    except (http.client.HTTPException, OSError, ValueError, KeyError, TypeError):
        # Something between here and Courant says so, not Courant.
        return Away(f"{error.code} {error.reason}")
    if error.code >= 500 or code in ("rate_limited", "idempotency_in_flight"):
        return Away(f"{error.code} {code}: {message}")
    return Refused(error.code, code, message)


def line(text, most):
    """A text as one line that can be seen."""
    return "".join(c for c in str(text or "") if c.isprintable()).strip()[:most].strip()


def link(*pages):
    """The first that is the address of a page."""
    good = (p for p in pages if isinstance(p, str) and p.startswith(("https://", "http://")))
    return next((p for p in good if p.isprintable() and " " not in p and len(p) <= 2000), None)


class Change:
    """What a webhook says has become of one of GitHub's deployments or checks."""

    def __init__(self, key, does, stack, labels, deployment, error):
        self.key = key
        self.does = does
        self.stack = line(stack, 200)
        self.labels = {name: line(value, 200) for name, value in labels.items()}
        self.deployment = {name: value for name, value in deployment.items() if value}
        self.error = "".join(c for c in error if c.isprintable() or c in "\n\t")[:10_000]


def from_deployment_status(payload):
    """The change in a `deployment_status`; none when it says nothing of interest."""
    status, deployment = payload["deployment_status"], payload["deployment"]
    does = DEPLOYMENT_STATES.get(status["state"])
    if does is None:
        return None
    repository, environment = payload["repository"]["full_name"], status.get("environment") or "production"
    page = link(status.get("log_url"), status.get("target_url"), payload["repository"].get("html_url"))
    return Change(
        key=f"deployment {deployment['id']}",
        does=does,
        stack=f"{repository} {environment}",
        labels={"repository": repository, "environment": environment},
        deployment={
            "commitSha": line(deployment.get("sha"), 100),
            "origin": {"kind": "push", "branch": line(deployment.get("ref"), 500)},
            "url": page,
        },
        error=status.get("description") or f"GitHub says {status['state']}",
    )


def from_check_run(payload):
    """The change in a `check_run`; none when it says nothing of interest."""
    check = payload["check_run"]
    does = CONCLUSIONS.get(check.get("conclusion")) if check["status"] == "completed" else None
    if check["status"] == "in_progress":
        does = BEGIN
    if does is None:
        return None
    repository = payload["repository"]["full_name"]
    pulls, branch = check.get("pull_requests") or [], line((check.get("check_suite") or {}).get("head_branch"), 500)
    origin = {"kind": "push", "branch": branch}
    if pulls:
        origin = {"kind": "pull_request", "number": pulls[0]["number"], "branch": branch}
    output = check.get("output") or {}
    return Change(
        key=f"check {check['id']}",
        does=does,
        stack=f"{repository} {check['name']}",
        labels={"repository": repository, "check": check["name"]},
        deployment={
            "commitSha": line(check.get("head_sha"), 100),
            "origin": origin,
            "url": link(check.get("html_url"), check.get("details_url")),
        },
        error=output.get("title") or f"GitHub says {check.get('conclusion')}",
    )


EVENTS = {"deployment_status": from_deployment_status, "check_run": from_check_run}


class Bridge:
    """Carries changes over, each once, and keeps open runs alive."""

    def __init__(self, courant, state, heartbeat_seconds=HEARTBEAT_SECONDS):
        self.courant = courant
        self.state = state
        self.heartbeat_seconds = heartbeat_seconds
        self.lock = threading.Lock()
        with closing(self.open()) as db, db:
            db.execute(
                # What is sent is kept before it is: a repeat under the same key must be the same.
                "CREATE TABLE IF NOT EXISTS followed (key TEXT PRIMARY KEY, body TEXT NOT NULL, deployment TEXT, run TEXT, "
                "open INTEGER NOT NULL DEFAULT 1, begun_at TEXT NOT NULL DEFAULT (datetime('now')))"
            )

    def open(self):
        return sqlite3.connect(self.state, timeout=30)

    def apply(self, change):
        """Carries a change over. Every request repeats safely, so that a webhook may come again at any point."""
        with self.lock, closing(self.open()) as db:
            read = "SELECT body, deployment, run, open FROM followed WHERE key = ?"
            row = db.execute(read, (change.key,)).fetchone()
            if row is None:
                row = self.follow(db, change), None, None, True
            body, deployment, run, is_open = row
            if not is_open:
                return "it has ended before"
            try:
                if deployment is None:
                    deployment = self.create(db, change, body)
                # A command is what Courant calls work whose steps it does not know; to leave one out, it must not have begun.
                if run is None and change.does not in (SKIP, CANCEL):
                    run = self.start(db, change, deployment)
                if change.does == BEGIN:
                    return "it has begun"
                self.end(change, deployment, run)
            except Refused as refused:
                if not refused.is_over:
                    raise
            close(db, change.key)
            return f"it is told: {change.does}"

    def follow(self, db, change):
        stack = self.courant.stack(change.stack, change.labels)
        body = json.dumps({"stackId": stack, "mode": "raw", **change.deployment})
        with db:
            db.execute("INSERT INTO followed (key, body) VALUES (?, ?)", (change.key, body))
        return body

    def create(self, db, change, body):
        step = f"github {change.key} create"
        try:
            deployment = self.courant.call("POST", "/deployments", json.loads(body), step)["id"]
        except Refused as refused:
            if refused.code not in ("unauthenticated", "permission_denied"):
                # Its stack is gone, say: the next webhook begins anew.
                with db:
                    db.execute("DELETE FROM followed WHERE key = ?", (change.key,))
            raise
        with db:
            db.execute("UPDATE followed SET deployment = ? WHERE key = ?", (deployment, change.key))
        return deployment

    def start(self, db, change, deployment):
        body = {"kind": "command", "command": f"GitHub {change.key}"}
        run = self.courant.call("POST", f"/deployments/{deployment}/runs", body, f"github {change.key} start")["id"]
        with db:
            db.execute("UPDATE followed SET run = ? WHERE key = ?", (run, change.key))
        return run

    def end(self, change, deployment, run):
        if change.does in (CANCEL, SKIP):
            # What is under way cannot be left out any more, only stopped.
            verb = "skip" if change.does == SKIP and run is None else "cancel"
            self.courant.call("POST", f"/deployments/{deployment}:{verb}", None, f"github {change.key} {verb}")
            return
        body = {"status": "succeeded"} if change.does == SUCCEED else {"status": "failed", "error": change.error}
        self.courant.call("POST", f"/runs/{run}:complete", body, f"github {change.key} end {json.dumps(body)}")

    def beat(self):
        """Says of every open run that its runner is there, but for those that nobody ends."""
        with closing(self.open()) as db:
            rows = db.execute(
                "SELECT key, run FROM followed WHERE open AND run IS NOT NULL AND begun_at > datetime('now', ?)",
                (f"-{MAX_OPEN_SECONDS} seconds",),
            ).fetchall()
            for key, run in rows:
                try:
                    self.courant.call("POST", f"/runs/{run}:heartbeat")
                except Refused as refused:
                    log(f"heartbeat of {key}: {refused}")
                    if refused.is_over:
                        close(db, key)
                except OSError as error:
                    log(f"heartbeat of {key}: {error}")

    def beat_for_ever(self, stop):
        while not stop.wait(self.heartbeat_seconds):
            try:
                self.beat()
            except Exception as error:
                # Whatever it is, the runs that are open must be heard of again.
                log(f"heartbeats: {error!r}")


def close(db, key):
    with db:
        db.execute("UPDATE followed SET open = 0 WHERE key = ?", (key,))


def log(text):
    seen = "".join(c if c.isprintable() else "?" for c in text)
    print(f"github-bridge: {seen}", file=sys.stderr, flush=True)


def is_signed(secret, body, signature):
    """Whether GitHub signed these bytes: HMAC-SHA256, compared in constant time."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), (signature or "").encode(errors="replace"))


def handler(bridge, secret):
    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self):
            status, text = self.take()
            body = json.dumps({"message": text}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            # What was not read of a body would be taken for the next request.
            self.send_header("Connection", "close")
            self.close_connection = True
            self.end_headers()
            self.wfile.write(body)

        def take(self):
            length = self.headers.get("Content-Length", "")
            if not (length.isascii() and length.isdecimal()):
                return 411, "Content-Length is missing"
            if len(length) > 20 or int(length) > MAX_BODY_BYTES:
                return 413, f"more than {MAX_BODY_BYTES} bytes"
            body = self.rfile.read(int(length))
            if not is_signed(secret, body, self.headers.get("X-Hub-Signature-256")):
                return 401, "the signature does not match"
            read = EVENTS.get(self.headers.get("X-GitHub-Event", ""))
            if read is None:
                return 200, "nothing to do for this event"
            try:
                change = read(json.loads(body))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                return 400, f"not the payload of its event: {error!r}"
            if change is None:
                return 200, "nothing to do for this state"
            try:
                return 200, bridge.apply(change)
            except Refused as refused:
                log(f"{change.key}: {refused}")
                return 502, "Courant refused it; the log says why"
            except (OSError, sqlite3.Error, KeyError, TypeError) as error:
                log(f"{change.key}: {error}")
                return 503, "not carried over; deliver it again"

        def log_message(self, template, *arguments):
            log(template % arguments)

    return Handler


def main():
    missing = [
        name
        for name in ("COURANT_URL", "COURANT_API_KEY", "COURANT_ORG", "GITHUB_WEBHOOK_SECRET")
        if not os.environ.get(name)
    ]
    if missing:
        sys.exit(f"github-bridge: {', '.join(missing)} must be set")
    courant = Courant(*(os.environ[name] for name in ("COURANT_URL", "COURANT_API_KEY", "COURANT_ORG")))
    heartbeat_seconds = float(os.environ.get("BRIDGE_HEARTBEAT_SECONDS", HEARTBEAT_SECONDS))
    bridge = Bridge(courant, os.environ.get("BRIDGE_STATE", "github-bridge.db"), heartbeat_seconds)
    host, _, port = os.environ.get("BRIDGE_LISTEN", "127.0.0.1:8090").rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), handler(bridge, os.environ["GITHUB_WEBHOOK_SECRET"]))
    stop = threading.Event()
    threading.Thread(target=bridge.beat_for_ever, args=(stop,), daemon=True).start()
    log(f"listening on {server.server_address[0]}:{server.server_address[1]}")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        stop.set()


if __name__ == "__main__":
    main()
