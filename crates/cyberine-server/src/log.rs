//! Lines of one request's log on their way to the client that asked for them.

use std::fmt;
use std::sync::Arc;

use cyberine_protocol::model::LogLevel;
use serde_json::Value;

/// Where the log of one request goes: to the client, where it asked for one at this level. In the
/// stateless era it asks in each request, in the `initialize` era once (`logging/setLevel`).
///
/// Full-policy: a line that finds no room in the queue to the client is dropped. What an operator
/// must see belongs into the server's own log; what a client must see, into the result.
#[derive(Clone)]
pub struct Log(Option<Bound>);

#[derive(Clone)]
struct Bound {
    sink: Arc<dyn LogSink>,
    least: LogLevel,
}

/// Carries lines to one client; the rail has one per request, tests may have their own.
pub trait LogSink: Send + Sync {
    /// Queues one line, or drops it where there is no room or the request is over.
    fn send(&self, level: LogLevel, logger: Option<&str>, data: &Value);
}

impl Log {
    /// For a request whose client wants no log.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// For a request whose client wants what is at least as severe as `least`.
    #[must_use]
    pub fn to(sink: Arc<dyn LogSink>, least: LogLevel) -> Self {
        Self(Some(Bound { sink, least }))
    }

    /// Whether a line of this level would go out: ask before data is made that is costly to make.
    #[must_use]
    pub fn wants(&self, level: LogLevel) -> bool {
        self.0.as_ref().is_some_and(|bound| level >= bound.least)
    }

    /// Sends one line: `data` is any JSON, `logger` the part of the server it comes from. No secret
    /// belongs in it.
    pub fn send(&self, level: LogLevel, logger: Option<&str>, data: &Value) {
        if let Some(bound) = self.0.as_ref().filter(|bound| level >= bound.least) {
            bound.sink.send(level, logger, data);
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => out.write_str("Log(none)"),
            Some(bound) => write!(out, "Log(from {:?})", bound.least),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct Lines(Mutex<Vec<(LogLevel, Value)>>);

    impl LogSink for Lines {
        fn send(&self, level: LogLevel, _logger: Option<&str>, data: &Value) {
            self.0.lock().unwrap().push((level, data.clone()));
        }
    }

    #[test]
    fn only_what_is_severe_enough_goes_out() {
        let lines = Arc::new(Lines::default());
        let log = Log::to(Arc::clone(&lines) as Arc<dyn LogSink>, LogLevel::Notice);
        for level in [LogLevel::Debug, LogLevel::Info, LogLevel::Notice, LogLevel::Emergency] {
            log.send(level, None, &json!("x"));
        }
        assert!(!log.wants(LogLevel::Info) && log.wants(LogLevel::Notice));
        let sent: Vec<LogLevel> = lines.0.lock().unwrap().iter().map(|(level, _)| *level).collect();
        assert_eq!(sent, [LogLevel::Notice, LogLevel::Emergency]);
        assert!(!Log::none().wants(LogLevel::Emergency));
    }
}
