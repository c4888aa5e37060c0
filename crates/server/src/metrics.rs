//! Metrics: one recorder for the process, read by `/metrics`.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Seconds; fixed buckets, so that histograms stay bounded.
const BUCKETS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 30.0];

/// Installs the recorder; further calls change nothing.
pub fn install() {
    HANDLE.get_or_init(|| {
        let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".into()), BUCKETS);
        match builder.and_then(PrometheusBuilder::install_recorder) {
            Ok(handle) => Some(handle),
            Err(error) => {
                tracing::error!(%error, "metrics are off");
                None
            }
        }
    });
}

/// Folds what has been measured; to be called every few seconds, or histograms grow.
pub fn upkeep() {
    if let Some(Some(handle)) = HANDLE.get() {
        handle.run_upkeep();
    }
}

/// The Prometheus text.
pub fn render() -> String {
    HANDLE.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
}
