//! A place to run the command line in.

use std::ops::Deref;
use std::process::{Command, Output};

pub(crate) use cyberine_testkit::{held, shell, wait_until, write_private};
use serde_json::Value;

/// A home and a project of a test's own, and the program under test.
pub(crate) struct Place(cyberine_testkit::Place);

impl Deref for Place {
    type Target = cyberine_testkit::Place;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Said {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic_with(&format!("{error}: {self:?}")))
    }

    /// The command ended with `code` and said all of `words` on stderr.
    pub(crate) fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        words.iter().for_each(|word| assert!(self.err.contains(word), "{word}: {self:?}"));
    }
}

fn panic_with(text: &str) -> Value {
    assert!(text.is_empty(), "{text}");
    Value::Null
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(cyberine_testkit::Place::new())
    }

    /// A place whose home has this configuration.
    pub(crate) fn with(config: &str) -> Self {
        Self(cyberine_testkit::Place::with(config))
    }

    /// The command in the project, with an environment of its own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_cyberine"));
        command.args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }
}
