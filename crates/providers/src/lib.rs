//! How Courant says it: one folder a provider, each two pure functions around a configuration.
//!
//! `render` turns a stored notification into a request, `judge` turns the answer into a verdict. Nothing here opens a
//! socket, reads a clock, makes randomness or knows a database: the delivery engine does the sending, and what it
//! sends for a tenant passes the outbound guard. Secrets come in as arguments and leave in header values only.

#![warn(missing_docs)]

mod fields;
mod outgoing;
mod provider;
mod slack;
mod story;
mod webhook;

#[cfg(test)]
mod golden;

pub use outgoing::{HttpRequest, Outgoing, Response, Target};
pub use provider::{ConfigError, Provider, Render, Settings};

/// Every provider, one line each: this is also the list of types.
static PROVIDERS: [&dyn Provider; 2] = [
    &slack::Slack, //
    &webhook::Webhook,
];

/// What every request calls itself.
const USER_AGENT: &str = concat!("courant/", env!("CARGO_PKG_VERSION"));

/// Every provider.
pub fn all() -> &'static [&'static dyn Provider] {
    &PROVIDERS
}

/// The provider of a type, such as `slack`.
pub fn provider(provider_type: &str) -> Option<&'static dyn Provider> {
    all().iter().copied().find(|p| p.provider_type() == provider_type)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_providers_share_a_type() {
        let types: BTreeSet<_> = all().iter().map(|p| p.provider_type()).collect();
        assert_eq!(types.len(), all().len());
    }

    #[test]
    fn every_provider_is_found_by_its_type_and_no_other_is() {
        for known in all() {
            assert_eq!(provider(known.provider_type()).unwrap().provider_type(), known.provider_type());
        }
        for unknown in ["", "Slack", "email"] {
            assert!(provider(unknown).is_none());
        }
    }

    #[test]
    fn every_provider_has_goldens() {
        for known in all() {
            assert!(!golden::stored(known.provider_type()).is_empty(), "{} has none", known.provider_type());
        }
    }
}
