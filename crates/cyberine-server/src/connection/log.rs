//! Carries the log of one request.

use cyberine_protocol::model::LogLevel;
use serde_json::Value;

use super::Entry;
use crate::log::LogSink;
use crate::output::Flush;

impl LogSink for Entry {
    fn send(&self, level: LogLevel, logger: Option<&str>, data: &Value) {
        let Self { connection, key, .. } = self;
        let session = connection.session();
        if !connection.output.has_room() {
            return;
        }
        if let Some(line) = session.log(*key, level, logger, data) {
            connection.output.push(connection.redacted(line), Flush::Now);
        }
    }
}
