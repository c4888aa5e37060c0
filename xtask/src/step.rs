//! One step of a command: a heading, a program, and an error that names what failed.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Says what comes next.
pub(crate) fn heading(text: &str) {
    println!("\n== {text}");
}

/// Runs a program to its end; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", line_of(command)))?;
    if !status.success() {
        bail!("failed ({status}): {}", line_of(command));
    }
    Ok(())
}

/// Runs a program and returns what it prints.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {}", line_of(command)))?;
    if !output.status.success() {
        bail!("failed ({}): {}", output.status, line_of(command));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Whether a program can be started and succeeds; what it prints is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn line_of(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
