//! The `[orchestrate.judge_command]` section.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The longest a trial may take, in seconds.
const MAX_SECONDS: u64 = 3_600;

/// What the judge `command` runs on each answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Section")]
pub struct JudgeCommand {
    /// The program and its arguments. No shell reads them.
    pub command: Vec<String>,
    /// How long one trial may take, in seconds: from 1 to 3,600.
    pub timeout_seconds: u64,
    /// The file the answer is put into, relative to the directory of the trial.
    pub file: PathBuf,
    /// Which part of the answer is tried; unset: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<Extract>,
    /// A directory that is copied into the directory of each trial first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<PathBuf>,
    /// Variables the program gets beside the usual ones, by name.
    pub env: Vec<String>,
}

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extract {
    /// The inside of its first fenced block; all of it where it has none.
    Code,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    command: Vec<String>,
    #[serde(default = "seconds")]
    timeout_seconds: u64,
    #[serde(default = "file")]
    file: PathBuf,
    extract: Option<Extract>,
    copy: Option<PathBuf>,
    #[serde(default)]
    env: Vec<String>,
}

const fn seconds() -> u64 {
    120
}

fn file() -> PathBuf {
    PathBuf::from("answer.txt")
}

impl TryFrom<Section> for JudgeCommand {
    type Error = String;

    fn try_from(section: Section) -> Result<Self, Self::Error> {
        let Section { command, timeout_seconds, file, extract, copy, env } = section;
        if command.first().is_none_or(String::is_empty) {
            return Err("`command` must name a program".to_owned());
        }
        if !(1..=MAX_SECONDS).contains(&timeout_seconds) {
            return Err(format!("`timeout_seconds` is {timeout_seconds}, and not from 1 to {MAX_SECONDS}"));
        }
        if !is_within(&file) {
            let shown = file.display();
            return Err(format!("`file` is `{shown}`: it must be a path within the directory of the trial"));
        }
        Ok(Self { command, timeout_seconds, file, extract, copy, env })
    }
}

/// Whether a path leads down and nowhere else.
fn is_within(path: &Path) -> bool {
    path.file_name().is_some() && path.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_read_with_its_defaults_and_what_cannot_be_is_refused() {
        let read = |text: &str| serde_json::from_str::<JudgeCommand>(text);
        let command = read(r#"{"command":["cargo","test"]}"#).unwrap();
        assert_eq!((command.timeout_seconds, command.file.to_str()), (120, Some("answer.txt")));
        assert_eq!(read(&serde_json::to_string(&command).unwrap()).unwrap(), command);
        for (wrong, said) in [
            (r#"{"command":[]}"#, "must name a program"),
            (r#"{"command":["x"],"timeout_seconds":0}"#, "not from 1 to 3600"),
            (r#"{"command":["x"],"file":"../x"}"#, "within the directory"),
            (r#"{"command":["x"],"file":"/x"}"#, "within the directory"),
            (r#"{"command":["x"],"file":""}"#, "within the directory"),
            (r#"{"command":["x"],"extract":"all"}"#, "unknown variant `all`"),
            (r#"{"command":["x"],"shell":true}"#, "unknown field `shell`"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
