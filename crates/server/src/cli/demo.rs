//! placeholder
use anyhow::Result;
use clap::Args;
#[derive(Args)]
pub(super) struct DemoArgs {}
#[expect(clippy::unused_async, reason = "placeholder")]
pub(super) async fn run(_args: DemoArgs) -> Result<()> { Ok(()) }
