//! A place to run in.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A home and a project of a test's own.
pub(crate) struct Place {
    root: tempfile::TempDir,
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
        let place = Self { root: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.project()).unwrap();
        place
    }

    /// A place whose home has this configuration.
    pub(crate) fn with(config: &str) -> Self {
        let place = Self::new();
        std::fs::create_dir(place.home()).unwrap();
        write_private(&place.home().join("config.toml"), config);
        place
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    /// The command in the project, with an environment of its own.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyberine"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path())
            .env("CYBERINE_HOME", self.home())
            .env("CYBERINE_DISCOVERY", "off")
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }
}

pub(crate) fn write_private(path: &Path, text: &str) {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// A provider that runs `script` with a shell.
pub(crate) fn shell(name: &str, script: &str) -> String {
    format!("[providers.{name}]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {}]\n", Value::from(script))
}

/// The same, paid by a subscription: it holds money until it has ended, and is charged none.
pub(crate) fn held(name: &str, script: &str) -> String {
    shell(name, script) + "billing = \"subscription\"\n"
}

pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "still waiting until {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}
