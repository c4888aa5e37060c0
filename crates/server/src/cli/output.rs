//! Writing to the terminal. A closed pipe ends a command quietly.

use std::io::{ErrorKind, Write as _, stderr, stdout};
use std::process::ExitCode;

use anyhow::Result;

/// Writes a line to standard output.
pub(super) fn line(text: impl AsRef<str>) -> Result<()> {
    let mut out = stdout().lock();
    match writeln!(out, "{}", text.as_ref()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        outcome => Ok(outcome?),
    }
}

/// Says on standard error what goes on nevertheless.
pub(super) fn warn(text: &str) {
    let _ = writeln!(stderr().lock(), "courant: {text}");
}

/// Says on standard error why a command failed.
pub(super) fn failed(error: &anyhow::Error) -> ExitCode {
    // Nothing can be done about an unwritable standard error.
    let _ = writeln!(stderr().lock(), "courant: {error:#}");
    ExitCode::FAILURE
}
