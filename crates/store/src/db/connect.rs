//! Where a PostgreSQL connection goes and how: the URL, TLS, and what holds in every session of ours.
//!
//! It must never repeat the URL in an error: it may hold a password.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Error;

/// Bounds on what one statement, one lock wait and one idle transaction of ours may take: a unit that appended holds
/// readers back until it ends, so it must end. Planning is kept generic-safe and free of JIT.
const SESSION: &str =
    "-c statement_timeout=30s -c lock_timeout=10s -c idle_in_transaction_session_timeout=30s -c jit=off";

/// What a URL says.
#[derive(Debug)]
pub struct Target {
    config: Config,
    tls: Option<rustls::ClientConfig>,
}

impl Target {
    pub fn parse(url: &str) -> Result<Self, Error> {
        let (url, tls) = tls_of(url)?;
        let mut config: Config = url.parse().map_err(|_| {
            // The parser's own words could repeat the password.
            Error::Configuration(
                "the PostgreSQL URL cannot be read; expected postgres://user:password@host/database".into(),
            )
        })?;
        // What the URL sets itself stands behind ours and wins.
        let options = config.get_options().map_or_else(|| SESSION.to_owned(), |own| format!("{SESSION} {own}"));
        config
            .options(options)
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .connect_timeout(Duration::from_secs(5))
            .keepalives_idle(Duration::from_secs(30))
            .tcp_user_timeout(Duration::from_secs(15));
        if tls.is_some() {
            config.ssl_mode(SslMode::Require);
        }
        Ok(Self { config, tls })
    }

    /// For connections that the database shows under this name.
    pub fn config(&self, application: &str) -> Config {
        let mut config = self.config.clone();
        config.application_name(application);
        config
    }

    /// How to encrypt, if at all.
    pub fn tls(&self) -> Option<MakeRustlsConnect> {
        self.tls.clone().map(MakeRustlsConnect::new)
    }
}

/// `sslmode` and `sslrootcert` as libpq spells them. Every mode from `require` up verifies the certificate and the
/// host name: against `sslrootcert` when given, else against the system's authorities.
fn tls_of(url: &str) -> Result<(String, Option<rustls::ClientConfig>), Error> {
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let (mut mode, mut root, mut rest) = ("disable", None, Vec::new());
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = value,
            Some(("sslrootcert", value)) => root = Some(value.replace("%2F", "/").replace("%2f", "/")),
            _ => rest.push(pair),
        }
    }
    let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
    match mode {
        "disable" | "allow" | "prefer" => Ok((url, None)),
        "require" | "verify-ca" | "verify-full" => Ok((url, Some(verifying(root.as_deref())?))),
        // Not repeated: what stands there may be a part of the password that was not escaped.
        _ => Err(Error::Configuration(
            "sslmode is not one of disable, allow, prefer, require, verify-ca, verify-full".into(),
        )),
    }
}

fn verifying(root: Option<&str>) -> Result<rustls::ClientConfig, Error> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    let mut roots = rustls::RootCertStore::empty();
    if let Some(path) = root {
        let unreadable = |e: &dyn std::fmt::Display| Error::Configuration(format!("sslrootcert {path}: {e}"));
        for certificate in CertificateDer::pem_file_iter(path).map_err(|e| unreadable(&e))? {
            roots.add(certificate.map_err(|e| unreadable(&e))?).map_err(|e| unreadable(&e))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::Configuration(e.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
