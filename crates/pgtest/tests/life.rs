//! The private server against a real PostgreSQL.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use courant_pgtest::{Options, PrivatePostgres};

fn start() -> PrivatePostgres {
    PrivatePostgres::start(Options::default()).expect("a private server")
}

#[test]
fn databases_are_separate_and_the_settings_are_those_asked_for() {
    let options = Options { fsync: false, settings: vec![("work_mem".into(), "7MB".into())] };
    let server = PrivatePostgres::start(options).unwrap();
    server.create_database("one").unwrap();
    server.create_database("two").unwrap();
    server.execute("one", "CREATE TABLE t (n int)").unwrap();

    assert!(server.execute("two", "SELECT * FROM t").is_err());
    assert_eq!(server.execute("one", "SHOW max_connections").unwrap(), "300");
    assert_eq!(server.execute("one", "SHOW work_mem").unwrap(), "7MB");
    let collation = "SELECT datcollate || ' ' || pg_encoding_to_char(encoding) FROM pg_database WHERE datname = 'one'";
    assert_eq!(server.execute("one", collation).unwrap(), "C.UTF-8 UTF8");
    assert_eq!(server.execute("one", "SHOW fsync").unwrap(), "off");
    assert!(server.create_database("no\" quoting").is_err());
}

#[test]
fn what_was_committed_survives_a_hard_kill_and_what_was_open_does_not() {
    let mut server = start();
    let url = server.url("postgres");
    server.execute("postgres", "CREATE TABLE t (n int); INSERT INTO t VALUES (1)").unwrap();
    let open = "BEGIN; INSERT INTO t VALUES (2); SELECT 'inside'; SELECT pg_sleep(1000)";
    let psql = courant_pgtest::Installation::newest().unwrap().program("psql");
    let mut session = Command::new(psql)
        .args(["-X", "-A", "-t", "-q", "-d", &url])
        .args(open.split("; ").flat_map(|statement| ["-c", statement]))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(session.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "inside\n");

    server.kill_hard().unwrap();
    assert!(!session.wait().unwrap().success());
    assert!(server.execute("postgres", "SELECT 1").is_err());
    server.restart().unwrap();

    assert_eq!(server.url("postgres"), url);
    assert_eq!(server.execute("postgres", "SELECT n FROM t").unwrap(), "1");
}

#[test]
fn a_stopped_server_starts_again_with_its_data() {
    let mut server = start();
    server.execute("postgres", "CREATE TABLE t (n int)").unwrap();
    server.stop().unwrap();
    assert!(server.execute("postgres", "SELECT 1").is_err());
    server.restart().unwrap();
    assert_eq!(server.execute("postgres", "SELECT count(*) FROM t").unwrap(), "0");
}

#[test]
fn dropping_it_leaves_nothing_behind() {
    let server = start();
    let dir = server.dir().to_owned();
    assert!(dir.join("data/postmaster.pid").exists());
    drop(server);
    assert!(!dir.exists());
    assert_eq!(processes_in(&dir), Vec::<PathBuf>::new());
}

#[test]
fn killing_its_owner_leaves_nothing_behind() {
    let mut owner = Command::new(env!("CARGO_BIN_EXE_courant-pgtest"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(owner.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.next().unwrap().starts_with("postgres://postgres@127.0.0.1:"));
    let dir = PathBuf::from(said.next().unwrap());
    assert!(dir.exists());

    owner.kill().unwrap();
    owner.wait().unwrap();

    // The watcher is no child of ours, so all there is to wait on is the state it brings about.
    while dir.exists() || !processes_in(&dir).is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
}

fn processes_in(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok())
        .filter(|cwd| cwd.starts_with(dir))
        .collect()
}
