//! Settings of the journal: how long events are kept, and where they go before they are deleted.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;

use super::layers::Layers;
use super::values::ValueProblem;
use super::{ConfigError, Span};

/// The journal.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    /// How long events are kept; none: for ever.
    pub retention: Option<Duration>,
    /// Where events are written before they are deleted.
    pub export_dir: Option<PathBuf>,
}

/// How long events are kept: at least a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention(pub Duration);

impl FromStr for Retention {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Span(time) = text.parse()?;
        if time < Duration::from_mins(1) {
            return Err(ValueProblem::new("is shorter than a minute"));
        }
        Ok(Self(time))
    }
}

/// Flags of the journal.
#[derive(Clone, Debug, Default, clap::Args, JsonSchema)]
pub struct JournalArgs {
    /// How long events are kept, at least 1m; older ones are deleted for good once every lease is past them
    /// (COURANT_JOURNAL_RETENTION; default: for ever)
    #[arg(long, value_name = "TIME")]
    #[schemars(with = "String", extend("pattern" = "^[0-9]+[smhd]$"))]
    pub journal_retention: Option<Retention>,

    /// Directory where events are written as NDJSON before they are deleted; needs a retention
    /// (COURANT_JOURNAL_EXPORT_DIR; default: they are not written)
    #[arg(long, value_name = "PATH")]
    #[schemars(with = "String")]
    pub journal_export_dir: Option<PathBuf>,
}

impl Journal {
    pub(super) fn resolve(args: &JournalArgs, layers: &mut Layers<'_>) -> Result<Self, ConfigError> {
        let retention = layers.pick("journal_retention", args.journal_retention.as_ref())?;
        Ok(Self {
            retention: retention.map(|Retention(time)| time),
            export_dir: layers.pick("journal_export_dir", args.journal_export_dir.as_ref())?,
        })
    }

    /// What is wrong with the settings together.
    pub fn problem(&self) -> Option<&'static str> {
        (self.export_dir.is_some() && self.retention.is_none()).then_some(
            "COURANT_JOURNAL_EXPORT_DIR is set and COURANT_JOURNAL_RETENTION is not: nothing would ever be exported; \
             set both or neither",
        )
    }
}
