//! Settings of sign-in: whose tokens are accepted.

use std::str::FromStr;

use courant_api::TenantId;
use schemars::JsonSchema;
use url::Url;

use super::ConfigError;
use super::layers::Layers;
use super::values::ValueProblem;
use crate::identity::{IssuerSettings, is_safe};

const DEFAULT_AUDIENCE: &str = "courant";
const MAX_ISSUERS: usize = 50;

/// Sign-in.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Whose tokens are accepted.
    pub issuers: Vec<IssuerSettings>,
    /// What tokens must be for, where their issuer names nothing else.
    pub audience: String,
}

/// An issuer as it is written: `https://login.example.com;audience=courant;jwks=https://…;tenant=<id>`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct GivenIssuer {
    issuer: String,
    audience: Option<String>,
    jwks: Option<Url>,
    tenant: Option<TenantId>,
}

/// The issuers of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerList(Vec<GivenIssuer>);

impl FromStr for IssuerList {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let given = text.split(',').map(|entry| entry.trim().parse()).collect::<Result<Vec<GivenIssuer>, _>>()?;
        let twice = |issuer: &GivenIssuer| given.iter().filter(|other| other.issuer == issuer.issuer).count() > 1;
        if let Some(issuer) = given.iter().find(|issuer| twice(issuer)) {
            return Err(ValueProblem::new(&format!("names `{}` twice", issuer.issuer)));
        }
        if given.len() > MAX_ISSUERS {
            return Err(ValueProblem::new(&format!("names more than {MAX_ISSUERS} issuers")));
        }
        Ok(Self(given))
    }
}

impl FromStr for GivenIssuer {
    type Err = ValueProblem;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split(';').map(str::trim);
        let issuer = parts.next().unwrap_or_default().to_owned();
        let problem = |what: &str| ValueProblem::new(&format!("`{issuer}` {what}"));
        let url = Url::parse(&issuer).map_err(|_| problem("is no URL"))?;
        if !is_safe(&url) {
            return Err(problem("is not https (http is for this machine alone)"));
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
            return Err(problem("holds a query, a fragment or a password"));
        }
        let mut given = Self { issuer: issuer.clone(), audience: None, jwks: None, tenant: None };
        for part in parts {
            let (name, value) = part.split_once('=').ok_or_else(|| problem("has an attribute without a value"))?;
            let again = match name {
                "audience" => given.audience.replace(value.to_owned()).is_some() || value.is_empty(),
                "jwks" => {
                    let url = Url::parse(value).ok().filter(is_safe);
                    given.jwks.replace(url.ok_or_else(|| problem("has a jwks that is no https URL"))?).is_some()
                }
                "tenant" => {
                    let tenant = value.parse().map_err(|_| problem("has a tenant that is no id"))?;
                    given.tenant.replace(tenant).is_some()
                }
                _ => return Err(problem("has an attribute other than audience, jwks and tenant")),
            };
            if again {
                return Err(problem("has an attribute twice, or an empty one"));
            }
        }
        Ok(given)
    }
}

/// Flags of sign-in.
#[derive(Clone, Debug, Default, clap::Args, JsonSchema)]
pub struct IdentityArgs {
    /// Issuers whose tokens are accepted, comma-separated, each perhaps with `;audience=…`, `;jwks=URL` and `;tenant=ID`
    /// (COURANT_OIDC_ISSUERS; default none)
    #[arg(long, value_name = "LIST")]
    #[schemars(with = "String")]
    pub oidc_issuers: Option<IssuerList>,

    /// Audience that tokens must be for, where their issuer names no other (COURANT_OIDC_AUDIENCE; default courant)
    #[arg(long, value_name = "NAME")]
    #[schemars(with = "String", extend("default" = DEFAULT_AUDIENCE))]
    pub oidc_audience: Option<String>,
}

impl Identity {
    pub(super) fn resolve(args: &IdentityArgs, layers: &mut Layers<'_>) -> Result<Self, ConfigError> {
        let IssuerList(given) =
            layers.pick("oidc_issuers", args.oidc_issuers.as_ref())?.unwrap_or_else(|| IssuerList(Vec::new()));
        let audience = layers.pick("oidc_audience", args.oidc_audience.as_ref())?;
        let audience = audience.unwrap_or_else(|| DEFAULT_AUDIENCE.to_owned());
        let settings = |given: GivenIssuer| IssuerSettings {
            issuer: given.issuer,
            audience: given.audience.unwrap_or_else(|| audience.clone()),
            jwks: given.jwks,
            tenant: given.tenant,
        };
        Ok(Self { issuers: given.into_iter().map(settings).collect(), audience: audience.clone() })
    }
}
