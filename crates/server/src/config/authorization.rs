//! Settings of authorization: which grants count, or who else decides.

use std::path::PathBuf;
use std::str::FromStr;

use courant_core::access::Reach;
use schemars::JsonSchema;

use super::error::Origin;
use super::layers::{Layers, env_name};
use super::values::ValueProblem;
use super::{BaseUrl, ConfigError};
use crate::decision::DecisionPointAddress;
use crate::secrets::Secret;

/// How it is decided what somebody may do.
#[derive(Clone, Debug)]
pub struct Authorization {
    /// How far grants on workspaces reach.
    pub reach: Reach,
    /// The policy service that decides instead of the grants.
    pub pdp_url: Option<BaseUrl>,
    /// Its bearer token.
    pub pdp_token: Option<Secret>,
}

/// The mode by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorizeMode(Reach);

impl FromStr for AuthorizeMode {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "local" => Ok(Self(Reach::Exact)),
            "policy" => Ok(Self(Reach::Subtree)),
            _ => Err(ValueProblem::new("is neither local nor policy")),
        }
    }
}

/// Flags of authorization.
#[derive(Clone, Debug, Default, clap::Args, JsonSchema)]
pub struct AuthorizationArgs {
    /// How far a grant on a workspace reaches: local (that workspace) or policy (all below it as well, or what the
    /// service at COURANT_PDP_URL decides) (COURANT_AUTHORIZE; default local)
    #[arg(long, value_name = "MODE")]
    #[schemars(with = "String", extend("enum" = ["local", "policy"], "default" = "local"))]
    pub authorize: Option<AuthorizeMode>,

    /// Policy service that decides instead of the grants, by the OpenID AuthZEN evaluation API; without a path,
    /// /access/v1/evaluation there (COURANT_PDP_URL; makes COURANT_AUTHORIZE policy)
    #[arg(long, value_name = "URL")]
    #[schemars(with = "String", extend("format" = "uri"))]
    pub pdp_url: Option<BaseUrl>,

    /// Bearer token for the policy service (COURANT_PDP_TOKEN; default none)
    #[arg(skip)]
    #[schemars(with = "String", extend("writeOnly" = true))]
    pub pdp_token: Option<Secret>,

    /// File that holds the bearer token for the policy service (COURANT_PDP_TOKEN_FILE, or the token itself in
    /// COURANT_PDP_TOKEN; default none)
    #[arg(long, value_name = "PATH")]
    #[schemars(with = "String")]
    pub pdp_token_file: Option<PathBuf>,
}

/// A token as a header takes it.
struct HeaderToken(Secret);

impl FromStr for HeaderToken {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.bytes().all(|b| b.is_ascii_graphic()) {
            return Ok(Self(Secret::new(text.to_owned())));
        }
        Err(ValueProblem::new("is not made of visible ASCII characters"))
    }
}

impl Authorization {
    pub(super) fn resolve(args: &AuthorizationArgs, layers: &mut Layers<'_>) -> Result<Self, ConfigError> {
        let mode = layers.pick("authorize", args.authorize.as_ref())?;
        let pdp_url: Option<BaseUrl> = layers.pick("pdp_url", args.pdp_url.as_ref())?;
        let token = layers.pick_secret("pdp_token", args.pdp_token.as_ref(), args.pdp_token_file.as_ref())?;
        let reach = match mode {
            // Silently ignored, it would leave the grants to decide where the operator means the service to.
            Some(AuthorizeMode(Reach::Exact)) if pdp_url.is_some() => {
                let problem = "a policy service is not asked with COURANT_AUTHORIZE=local".to_owned();
                return Err(ConfigError::Invalid { origin: Origin::Environment(env_name("pdp_url")), problem });
            }
            Some(AuthorizeMode(reach)) => reach,
            None if pdp_url.is_some() => Reach::Subtree,
            None => Reach::Exact,
        };
        Ok(Self { reach, pdp_url, pdp_token: token.map(|HeaderToken(token)| token) })
    }

    /// The policy service, if one decides.
    pub fn decision_point(&self) -> Option<DecisionPointAddress> {
        let url = self.pdp_url.as_ref()?.url().clone();
        Some(DecisionPointAddress { url, token: self.pdp_token.clone() })
    }
}
