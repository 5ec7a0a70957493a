//! What is counted of the server, in the text format of Prometheus.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cyberine_types::{Clock as _, SystemClock};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::observe::{Answered, Load, Observer};

/// The content type of what [`Metrics::render`] gives.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Seconds, from an answer that is ready to one that a model is waited for.
const BUCKETS: [f64; 12] = [0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0];

/// Counts requests and refusals. Every label has a small, fixed set of values, whatever clients send:
/// methods and reasons are words of ours.
pub struct Metrics {
    registry: Registry,
    requests: Family<Request, Counter>,
    durations: Family<Asked, Histogram, fn() -> Histogram>,
    rejected: Family<Reason, Counter>,
    load: [Gauge; 4],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    status: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

impl Metrics {
    /// Nothing is counted yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::with_prefix("cyberine_http");
        let requests = Family::<Request, Counter>::default();
        let durations = Family::<Asked, Histogram, fn() -> Histogram>::new_with_constructor(histogram);
        let rejected = Family::<Reason, Counter>::default();
        registry.register("requests", "Requests that were answered, by method and status", requests.clone());
        registry.register(
            "request_duration_seconds",
            "Time from the head of a request to the head of its answer",
            durations.clone(),
        );
        registry.register("rejected", "Requests without a valid identity, by reason", rejected.clone());
        let names = [
            ("requests_in_flight", "Requests whose answer has not begun"),
            ("connections", "Open connections"),
            ("sessions", "Sessions of the initialize era"),
            ("streams", "Open event streams"),
        ];
        let load = names.map(|(name, help)| {
            let gauge: Gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        });
        registry.register("start_time_seconds", "When the server began, in Unix seconds", begun());
        Arc::new(Self { registry, requests, durations, rejected, load })
    }

    /// Counts a request that was refused, by a fixed word that says why.
    pub fn rejected(&self, reason: &'static str) {
        self.rejected.get_or_create(&Reason { reason }).inc();
    }

    /// All of it and `load`, in version 0.0.4 of the format.
    #[must_use]
    pub fn render(&self, load: Load) -> String {
        let values = [load.in_flight, load.connections, load.sessions, load.streams];
        for (gauge, value) in self.load.iter().zip(values) {
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        // A String takes everything that is written to it.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl Observer for Metrics {
    fn answered(&self, answered: &Answered) {
        let Answered { method, status, took } = *answered;
        self.requests.get_or_create(&Request { method, status: status.into() }).inc();
        self.durations.get_or_create(&Asked { method }).observe(took.as_secs_f64());
    }
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

fn begun() -> Gauge<f64, AtomicU64> {
    let gauge = Gauge::<f64, AtomicU64>::default();
    let since = Duration::from_millis(u64::try_from(SystemClock.now().unix_ms()).unwrap_or_default());
    gauge.set(since.as_secs_f64());
    gauge
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_answered_and_what_goes_on_is_in_the_text() {
        let metrics = Metrics::new();
        for (method, status) in [("tools/call", 200), ("tools/call", 200), ("unknown", 404)] {
            metrics.answered(&Answered { method, status, took: Duration::from_millis(20) });
        }
        metrics.rejected("no_token");
        let text = metrics.render(Load { connections: 4, sessions: 3, streams: 2, in_flight: 1 });
        for line in [
            r#"cyberine_http_requests_total{method="tools/call",status="200"} 2"#,
            r#"cyberine_http_requests_total{method="unknown",status="404"} 1"#,
            r#"cyberine_http_request_duration_seconds_bucket{method="tools/call",le="0.05"} 2"#,
            r#"cyberine_http_request_duration_seconds_bucket{method="tools/call",le="0.01"} 0"#,
            r#"cyberine_http_rejected_total{reason="no_token"} 1"#,
            "cyberine_http_connections 4",
            "cyberine_http_sessions 3",
            "cyberine_http_streams 2",
            "cyberine_http_requests_in_flight 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
