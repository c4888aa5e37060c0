//! `courant doctor`: checks what a server needs, and says for each part how it stands and what to do.
//!
//! It changes nothing: no key, directory or schema is made. A check that depends on a broken one is left out.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use courant_api::operations::{HorizonHolder, JournalStatus};
use courant_store::{DatabaseFacts, Options, Store};
use serde::Serialize;

use super::output::line;
use crate::clock;
use crate::config::{Config, ServeArgs};
use crate::ops::retention::micros;
use crate::secrets::KeyRing;
use crate::serve::key_file;

/// Most that two clocks may differ by.
const CLOCK_US: i64 = 1_000_000;
/// An append that takes longer than this is stuck.
const STUCK_SECONDS: i64 = 10;
/// Tenants whose journals are looked at.
const TENANTS: i64 = 1000;
/// Consumers that are named.
const NAMED: usize = 5;

#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ServeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Standing {
    Ok,
    Warn,
    Fail,
}

/// What came of one check.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    status: Standing,
    message: String,
    /// What to do; null when all is well.
    todo: Option<String>,
}

/// What has been found so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, check: &'static str, message: impl Into<String>) {
        self.0.push(Finding { check, status: Standing::Ok, message: message.into(), todo: None });
    }

    fn warn(&mut self, check: &'static str, message: impl Into<String>, todo: impl Into<String>) {
        self.0.push(Finding { check, status: Standing::Warn, message: message.into(), todo: Some(todo.into()) });
    }

    fn fail(&mut self, check: &'static str, message: impl Into<String>, todo: impl Into<String>) {
        self.0.push(Finding { check, status: Standing::Fail, message: message.into(), todo: Some(todo.into()) });
    }
}

pub(super) async fn run(args: DoctorArgs) -> Result<()> {
    let mut findings = Findings::default();
    examine(&args.config, &mut findings).await;
    if args.json {
        line(serde_json::to_string(&findings.0)?)?;
    } else {
        for Finding { check, status, message, todo } in &findings.0 {
            let status = match status {
                Standing::Ok => "ok",
                Standing::Warn => "warn",
                Standing::Fail => "fail",
            };
            line(format!("{status:<5} {check:<14} {message}"))?;
            if let Some(todo) = todo {
                line(format!("{:<20} → {todo}", ""))?;
            }
        }
    }
    match findings.0.iter().filter(|f| f.status == Standing::Fail).count() {
        0 => Ok(()),
        1 => bail!("1 check failed"),
        failed => bail!("{failed} checks failed"),
    }
}

async fn examine(args: &ServeArgs, findings: &mut Findings) {
    let config = match Config::load(args) {
        Ok(config) => config,
        Err(error) => {
            let error = format!("{:#}", anyhow::Error::from(error));
            return findings.fail("configuration", error, "correct the setting that it names");
        }
    };
    match config.journal.problem() {
        Some(problem) => findings.fail("configuration", problem, "the server does not start like this"),
        None => findings.ok("configuration", "can be read"),
    }
    data_dir(&config, findings);
    if let Some(dir) = &config.journal.export_dir {
        // What is not there yet is made below what is.
        let place = dir.ancestors().find(|place| place.is_dir()).unwrap_or(dir);
        match crate::export::writable(place) {
            Ok(()) => findings.ok("export directory", format!("{} can be written", dir.display())),
            Err(error) => {
                let todo = "nothing is deleted until it can be written: give it to the user that the server runs as";
                findings.fail("export directory", error.to_string(), todo);
            }
        }
    }
    let store = match Store::open(&Options::command(config.database.url.expose())).await {
        Ok(store) => store,
        Err(error) => {
            let todo =
                "check COURANT_DATABASE_URL and that the database runs; `courant migrate` brings a schema up to date";
            return findings.fail("database", error.to_string(), todo);
        }
    };
    match store.database_facts().await {
        Ok(facts) => database(&facts, findings),
        Err(error) => return findings.fail("database", error.to_string(), "look into the database's own log"),
    }
    key_ring(&config, &store, findings).await;
    journals(&config, &store, findings).await;
}

fn data_dir(config: &Config, findings: &mut Findings) {
    let path = &config.server.data_dir;
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => {
            findings.fail(
                "data directory",
                format!("{shown} is not a directory"),
                "name another one in COURANT_DATA_DIR",
            );
        }
        Ok(found) if found.permissions().mode() & 0o022 != 0 => {
            let mode = found.permissions().mode() & 0o777;
            let message = format!("{shown} may be written by others (mode {mode:03o})");
            findings.fail("data directory", message, format!("`chmod 700 {shown}`"));
        }
        Ok(found) if found.permissions().mode() & 0o055 != 0 => {
            let mode = found.permissions().mode() & 0o777;
            let message = format!("{shown} may be read by others (mode {mode:03o})");
            findings.warn("data directory", message, format!("`chmod 700 {shown}`"));
        }
        Ok(_) => match tempfile::tempfile_in(path) {
            Ok(_) => findings.ok("data directory", format!("{shown} is this user's own")),
            Err(error) => {
                let todo = "run as the user that the server runs as, or give that user the directory";
                findings.fail("data directory", format!("{shown} cannot be written: {error}"), todo);
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.ok("data directory", format!("{shown} is not there yet; a server makes it when it needs it"));
        }
        Err(error) => {
            findings.fail("data directory", format!("{shown}: {error}"), "run as the user that the server runs as");
        }
    }
}

fn database(facts: &DatabaseFacts, findings: &mut Findings) {
    let message = format!("{}, schema {}", facts.version, facts.schema);
    match &facts.unwritable {
        None => findings.ok("database", format!("{message}, can be written")),
        Some(why) => {
            let todo =
                "use the user that owns the tables, or grant it SELECT, INSERT, UPDATE and DELETE on all of them";
            findings.fail("database", format!("{message}, cannot be written: {why}"), todo);
        }
    }
    match facts.clock.map(|clock| clock.micros() - clock::now().micros()) {
        None => findings.ok("clock", "the database has this machine's clock"),
        Some(off) => clocks(off, findings),
    }
    if let Some(timeouts) = &facts.session_timeouts {
        let names = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"];
        let endless: Vec<_> = names.iter().zip(timeouts).filter(|(_, value)| *value == "0").map(|(n, _)| *n).collect();
        if endless.is_empty() {
            let said: Vec<_> = names.iter().zip(timeouts).map(|(name, value)| format!("{name} {value}")).collect();
            findings.ok("time-outs", said.join(", "));
        } else {
            let todo = "a pooler between server and database drops them; connect directly, or set them for the user";
            findings.warn("time-outs", format!("sessions have no {}", endless.join(", ")), todo);
        }
    }
}

fn clocks(off_us: i64, findings: &mut Findings) {
    let (seconds, millis) = (off_us.abs() / 1_000_000, off_us.abs() % 1_000_000 / 1000);
    let message = format!("the database's clock differs by {seconds}.{millis:03} s");
    if off_us.abs() > CLOCK_US {
        findings.fail("clock", message, "synchronise the clocks of both machines (NTP)");
    } else {
        findings.ok("clock", message);
    }
}

async fn key_ring(config: &Config, store: &Store, findings: &mut Findings) {
    let needed = match store.encryption_keys().await {
        Ok(needed) => needed,
        Err(error) => return findings.fail("key ring", error.to_string(), "look into the database's own log"),
    };
    let path = key_file(&config.server.data_dir);
    let ring = match &config.security.encryption_keys {
        Some(ring) => Ok(Some(ring.clone())),
        None => read_ring(&path),
    };
    let todo = "restore the key from a backup: what it sealed cannot be read without it";
    match ring {
        Err(problem) => findings.fail("key ring", problem, todo),
        Ok(None) if needed.is_empty() => findings.ok("key ring", "none is needed yet; the first start makes one"),
        Ok(None) => {
            let message = format!("{} is missing, and the database needs a key", path.display());
            findings.fail("key ring", message, todo);
        }
        Ok(Some(ring)) => match ring.verify(&needed) {
            Ok(()) => findings.ok("key ring", "has every key that the database needs"),
            Err(missing) => findings.fail("key ring", missing.to_string(), todo),
        },
    }
}

/// The ring in the data directory, if it is there; nothing is made.
fn read_ring(path: &Path) -> Result<Option<KeyRing>, String> {
    match path.try_exists() {
        Ok(true) => KeyRing::load_or_create(path).map(Some).map_err(|e| format!("{:#}", anyhow::Error::from(e))),
        Ok(false) => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

async fn journals(config: &Config, store: &Store, findings: &mut Findings) {
    let tenants = match store.tenant_ids(None, TENANTS).await {
        Ok(tenants) => tenants,
        Err(error) => return findings.fail("journal", error.to_string(), "look into the database's own log"),
    };
    if tenants.is_empty() {
        return findings.ok("journal", "there is no tenant yet");
    }
    let (retention, mut waiting, mut pruning, mut floors) = (config.journal.retention.map(micros), Vec::new(), 0, 0);
    for (n, tenant) in tenants.iter().enumerate() {
        let status = match store.journal_status(*tenant, clock::now(), retention).await {
            Ok(status) => status,
            Err(error) => return findings.fail("journal", error.to_string(), "look into the database's own log"),
        };
        if n == 0 {
            horizon(&status, findings);
        }
        pruning += i32::from(status.pruning);
        floors += i32::from(courant_api::Cursor::decode(&status.floor_cursor).is_ok_and(|c| c.seq > 0));
        let close = |lag: i64| status.retention_seconds.is_some_and(|kept| lag >= kept / 5 * 4);
        let late = status.consumers.iter().filter(|c| c.blocks_retention || close(c.lag_seconds));
        let live = late.filter(|c| c.expires_at.is_none_or(|at| at > clock::now()));
        waiting.extend(live.map(|c| format!("{} of {tenant} ({} s behind)", c.name, c.lag_seconds)));
    }
    let under_way = if pruning > 0 { format!(", {pruning} prunes are under way") } else { String::new() };
    findings.ok("floor", format!("{floors} of {} tenants have lost events to retention{under_way}", tenants.len()));
    match retention {
        None => findings.ok("retention", "events are kept for ever"),
        Some(_) if waiting.is_empty() => findings.ok("retention", "no consumer holds it back"),
        Some(_) => {
            let more = waiting.len().saturating_sub(NAMED);
            waiting.truncate(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let message = format!("waits, or soon will, for {}{more}", waiting.join(", "));
            let todo = "see why they do not read; `DELETE /api/v1/consumers/{name}` gives a lease up, and what it has yet to read";
            findings.warn("retention", message, todo);
        }
    }
}

fn horizon(status: &JournalStatus, findings: &mut Findings) {
    let message = match status.distance {
        0 => "readers are served up to the newest event".to_owned(),
        distance => format!("readers are {distance} positions behind the newest event"),
    };
    let stuck = status.holders.iter().find(|h| h.age_seconds.is_some_and(|age| age >= STUCK_SECONDS));
    match stuck {
        None => findings.ok("horizon", message),
        Some(by) => {
            let todo = match (&by.gid, by.pid) {
                (Some(gid), _) => format!("end it: `ROLLBACK PREPARED '{}'`", gid.replace('\'', "''")),
                (None, Some(pid)) => format!("see what it waits for; `SELECT pg_terminate_backend({pid})` ends it"),
                (None, None) => "look for it in pg_locks".to_owned(),
            };
            findings.fail("horizon", format!("{message}, held by {}", holder(by)), todo);
        }
    }
}

/// Who holds the horizon, in words.
pub(super) fn holder(by: &HorizonHolder) -> String {
    let who = match (&by.gid, by.pid) {
        (Some(gid), _) => format!("the prepared transaction {gid:?}"),
        (None, Some(pid)) => format!("process {pid}"),
        (None, None) => "an unknown session".to_owned(),
    };
    let name = by.application_name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    let state = by.state.as_ref().map_or_else(String::new, |state| format!(", {state}"));
    let age = by.age_seconds.map_or_else(String::new, |age| format!(", for {age} s"));
    format!("{who}{name}{state}{age}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(examine: impl FnOnce(&mut Findings)) -> Finding {
        let mut findings = Findings::default();
        examine(&mut findings);
        findings.0.remove(0)
    }

    #[test]
    fn clocks_may_differ_by_a_second() {
        for (off, status, told) in [
            (999_999, Standing::Ok, "0.999"),
            (-1_000_000, Standing::Ok, "1.000"),
            (1_000_001, Standing::Fail, "1.000"),
            (-7_250_000, Standing::Fail, "7.250"),
        ] {
            let finding = found(|f| clocks(off, f));
            assert_eq!(finding.status, status, "{off}");
            assert!(finding.message.contains(told), "{}", finding.message);
        }
    }

    #[test]
    fn a_session_without_a_bound_is_named() {
        let facts = |timeouts: [&str; 3]| DatabaseFacts {
            version: "PostgreSQL 17.2".into(),
            schema: 4,
            clock: Some(clock::now()),
            session_timeouts: Some(timeouts.map(str::to_owned)),
            unwritable: None,
        };
        let mut findings = Findings::default();
        database(&facts(["30s", "0", "30s"]), &mut findings);
        let last = findings.0.last().unwrap();
        assert_eq!((last.check, last.status), ("time-outs", Standing::Warn));
        assert!(
            last.message.contains("lock_timeout") && !last.message.contains("statement_timeout"),
            "{}",
            last.message
        );
    }

    #[test]
    fn a_prepared_transaction_that_holds_the_horizon_is_named_with_its_end() {
        let place = |sequence| courant_api::operations::JournalPlace { sequence, cursor: String::new() };
        let holder = HorizonHolder {
            pid: None,
            application_name: None,
            state: None,
            gid: Some("it's".into()),
            age_seconds: Some(93),
        };
        let status = JournalStatus {
            head: place(9),
            horizon: place(2),
            distance: 7,
            holders: vec![holder],
            floor_cursor: String::new(),
            oldest_event_at: None,
            retention_seconds: None,
            pruning: false,
            appends_waiting: 0,
            consumers: Vec::new(),
        };
        let finding = found(|f| horizon(&status, f));
        assert_eq!(finding.status, Standing::Fail);
        assert!(finding.message.contains("7 positions") && finding.message.contains("93 s"), "{}", finding.message);
        assert!(finding.todo.unwrap().contains("ROLLBACK PREPARED 'it''s'"));
    }
}
