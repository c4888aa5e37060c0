//! A throw-away PostgreSQL for a terminal: `cargo run -p courant-pgtest` prints its URL and ends with ctrl-c or ctrl-d.

use std::io::{self, Write as _};

use courant_pgtest::{Options, PrivatePostgres};

fn main() -> anyhow::Result<()> {
    let server = PrivatePostgres::start(Options::default())?;
    writeln!(io::stdout(), "{}\n{}", server.url("postgres"), server.dir().display())?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
