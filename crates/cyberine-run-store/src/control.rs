//! The one input of a run's directory: `control.json`, by which anyone who may write there stops
//! the run.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use cyberine_fs::{Subscription, Watcher};
use serde::Deserialize;

use crate::error::chain;
use crate::projection::{CONTROL, RunDir};

/// The largest control file that is read, in bytes.
const CONTROL_MAX: usize = 4 << 10;
/// How many different contents are reported for one run. More than that is noise.
const REPORTED_MAX: usize = 32;

/// What a control file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Stop the run: `{"action":"stop","target":{"type":"run"}}`.
    Stop,
    /// Something that is not understood; it belongs into the log, as `controlIgnored`.
    Ignored {
        /// What is wrong with it.
        detail: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    action: String,
    target: Target,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    r#type: String,
}

/// Looks for control files. Belongs to the holder of the run's claim.
pub struct ControlReader {
    dir: RunDir,
    /// What has been reported, as hashes.
    reported: BTreeSet<u64>,
    /// A content that looked half written at the last look.
    unfinished: Option<Vec<u8>>,
    subscription: Option<Subscription>,
}

impl ControlReader {
    /// A reader of the run's directory.
    #[must_use]
    pub const fn new(dir: RunDir) -> Self {
        Self { dir, reported: BTreeSet::new(), unfinished: None, subscription: None }
    }

    /// What the control file says, once for each distinct content; `None` where there is none or
    /// it has been reported. A content that ends too early is looked at again before it counts,
    /// since somebody may be writing it.
    pub fn look(&mut self) -> Option<Control> {
        let (key, control) = match self.dir.dir.read(CONTROL, CONTROL_MAX) {
            Ok(None) => return None,
            Ok(Some(bytes)) => {
                let control = match parse(&bytes) {
                    Ok(control) => control,
                    Err(_) if self.unfinished.as_ref() != Some(&bytes) => {
                        self.unfinished = Some(bytes);
                        return None;
                    }
                    Err(detail) => Control::Ignored { detail },
                };
                (bytes, control)
            }
            Err(error) => {
                let detail = chain(&error);
                (detail.clone().into_bytes(), Control::Ignored { detail })
            }
        };
        self.unfinished = None;
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let room = self.reported.len() < REPORTED_MAX || control == Control::Stop;
        (room && self.reported.insert(hasher.finish())).then_some(control)
    }

    /// Returns once there may be a control file, and after a while in any case: half a second where
    /// the system does not tell of it.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn changed(&mut self, timeout: Duration) {
        let path = self.dir.path();
        self.subscription.get_or_insert_with(|| Watcher::shared().watch(path)).changed(timeout).await;
    }
}

/// `Err` where the text ends before it is a whole JSON value.
fn parse(bytes: &[u8]) -> Result<Control, String> {
    match serde_json::from_slice::<Body>(bytes) {
        Ok(Body { action, target }) if action == "stop" && target.r#type == "run" => Ok(Control::Stop),
        Ok(Body { action, target }) => {
            let (action, target) = (shown(&action), shown(&target.r#type));
            Ok(Control::Ignored { detail: format!("the action `{action}` on `{target}` is not known") })
        }
        Err(error) if error.is_eof() => Err("it is not a whole JSON object".to_owned()),
        Err(error) => {
            Ok(Control::Ignored { detail: format!("it is not a control: {}", shown(&error.to_string())) })
        }
    }
}

/// A stranger's text in a log: short, and without control characters.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_body_stops_a_run() {
        let stop = br#" { "target" : {"type":"run"}, "action":"stop" } "#;
        assert_eq!(parse(stop), Ok(Control::Stop));
        let strangers: [&[u8]; 9] = [
            br#"{"action":"stop"}"#,
            br#"{"action":"stop","target":{"type":"step"}}"#,
            br#"{"action":"pause","target":{"type":"run"}}"#,
            br#"{"action":"stop","target":{"type":"run"},"force":true}"#,
            br#"{"action":"stop","target":{"type":"run","id":1}}"#,
            br#"{"action":"pause","action":"stop","target":{"type":"run"}}"#,
            br#"["stop"]"#,
            b"stop",
            b"{\"action\":\"\xff\"}",
        ];
        for body in strangers {
            assert!(matches!(parse(body), Ok(Control::Ignored { .. })), "{}", String::from_utf8_lossy(body));
        }
        assert!(parse(br#"{"action":"st"#).is_err());
        assert!(parse(b"").is_err());
    }
}
