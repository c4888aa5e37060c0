//! The command line. Exit codes: 0 done, 1 failed, 2 wrong usage.

mod bootstrap;
mod contract;
mod demo;
mod deployments;
mod doctor;
mod journal;
mod migrate;
mod output;
mod secrets;
mod serve;
mod tail;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::ServeArgs;

/// An event journal and notification service for control planes.
#[derive(Parser)]
#[command(name = "courant", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the server: journal, API and deliveries in one process.
    Serve(Box<ServeArgs>),
    /// Show the whole way from an event to what people receive, on a throw-away database.
    Demo(demo::DemoArgs),
    /// Make a tenant with its first principal and key, on the database itself.
    Bootstrap(Box<bootstrap::BootstrapArgs>),
    /// Bring the database's schema up to date.
    Migrate(Box<ServeArgs>),
    /// Follow the journal of a running server.
    Tail(tail::TailArgs),
    /// Say from a pipeline what it deploys.
    #[command(subcommand)]
    Deployments(deployments::DeploymentsCommand),
    /// Export, prune and show the journal, on the database itself.
    #[command(subcommand)]
    Journal(journal::JournalCommand),
    /// Keys under which secrets are stored, and their rotation.
    #[command(subcommand)]
    Secrets(secrets::SecretsCommand),
    /// Check configuration, database, clock, keys and the journal, and say what to do.
    Doctor(Box<doctor::DoctorArgs>),
    /// The catalogue of core event types.
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// The generated contract files.
    #[command(subcommand, hide = true)]
    Contract(ContractCommand),
}

#[derive(Subcommand)]
enum CatalogCommand {
    /// Write catalog.md and catalog.json.
    Export(ExportArgs),
}

#[derive(Subcommand)]
enum ContractCommand {
    /// Write openapi.json, config.schema.json, errors.md and permissions.md.
    Export(ExportArgs),
}

#[derive(Args)]
struct ExportArgs {
    /// Where to write the files.
    #[arg(long, value_name = "PATH", default_value = ".")]
    dir: std::path::PathBuf,
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return output::failed(&error.into()),
    };
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => serve::run(&args).await,
            Command::Demo(args) => demo::run(args).await,
            Command::Bootstrap(args) => bootstrap::run(*args).await,
            Command::Migrate(args) => migrate::run(&args).await,
            Command::Tail(args) => tail::run(args).await,
            Command::Deployments(command) => return deployments::run(command).await,
            Command::Journal(command) => journal::run(command).await,
            Command::Secrets(command) => secrets::run(command).await,
            Command::Doctor(args) => doctor::run(*args).await,
            Command::Catalog(CatalogCommand::Export(args)) => contract::export_catalog(&args.dir),
            Command::Contract(ContractCommand::Export(args)) => contract::export_contract(&args.dir),
        }
        .map(|()| ExitCode::SUCCESS)
    });
    match outcome {
        Ok(code) => code,
        Err(error) => output::failed(&error),
    }
}
