//! A place to run the command line in.

use std::io::{BufRead, BufReader, Read};
use std::ops::Deref;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

pub(crate) use cyberine_testkit::{held, shell, wait_until, write_private};
use rustix::process::Signal;
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

/// Whether any process has a file open that lies in `directory`.
fn is_used(directory: &std::path::Path) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut files =
        processes.filter_map(|process| std::fs::read_dir(process.path().join("fd")).ok()).flatten();
    files.any(|file| {
        file.and_then(|file| std::fs::read_link(file.path())).is_ok_and(|of| of.starts_with(directory))
    })
}

impl Place {
    /// Removes the database, once whoever has ended the last run has closed it.
    pub(crate) fn lose_database(&self) {
        wait_until("nobody has the home open", || !is_used(&self.home()));
        for name in ["state.db", "state.db-wal", "state.db-shm"] {
            let _ = std::fs::remove_file(self.home().join(name));
        }
    }

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
        command.args(arguments).env("USER", "tester");
        command
    }

    /// The command, started, with its output to be read line by line.
    pub(crate) fn start(&self, arguments: &[&str]) -> Started {
        let mut child =
            self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Started { child, out, err }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }
}

/// A command that goes on.
pub(crate) struct Started {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Started {
    /// The next line of its remarks.
    pub(crate) fn remark(&mut self) -> String {
        let mut line = String::new();
        self.err.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The next line of its results. Every wait ends with it, or with the command.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "it has ended: {:?}", self.child.wait());
        line.trim_end().to_owned()
    }

    /// Lines up to the first one that holds all of `words`, which is given.
    pub(crate) fn line_with(&mut self, words: &[&str]) -> String {
        loop {
            let line = self.line();
            if words.iter().all(|word| line.contains(word)) {
                return line;
            }
        }
    }

    /// As Ctrl-C does; what it says then, and how it ends.
    pub(crate) fn interrupt(self) -> Said {
        interrupt(&self.child);
        self.end()
    }

    /// As `kill` does; what it says then, and how it ends.
    pub(crate) fn terminate(self) -> Said {
        signal(&self.child, Signal::TERM);
        self.end()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Goes on without reading any more of its results; what it remarks, and how it ends.
    pub(crate) fn deafen(self) -> Said {
        let Self { mut child, out, mut err } = self;
        drop(out);
        let mut remarks = String::new();
        err.read_to_string(&mut remarks).unwrap();
        Said { code: child.wait().unwrap().code(), out: String::new(), err: remarks }
    }

    /// What else it says, and how it ends.
    pub(crate) fn end(mut self) -> Said {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.err.read_to_string(&mut err).unwrap();
        Said { code: self.child.wait().unwrap().code(), out, err }
    }
}

/// As Ctrl-C does.
pub(crate) fn interrupt(child: &Child) {
    signal(child, Signal::INT);
}

fn signal(child: &Child, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}
