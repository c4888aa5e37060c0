//! The `courant` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    courant_server::cli::main()
}
