use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Long enough for a machine under load; every wait ends as soon as what it waits for is there.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A home and a project of a test's own, removed afterwards.
pub struct Place {
    root: tempfile::TempDir,
}

impl Place {
    /// A project without a configuration, and a home that is not there yet.
    ///
    /// # Panics
    ///
    /// As everything here: at the first surprise of the file system.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it makes directories")]
    pub fn new() -> Self {
        let place = Self { root: tempfile::tempdir().expect("a directory for a test") };
        std::fs::create_dir(place.project()).expect("a project for a test");
        place
    }

    /// A place whose home has this configuration.
    #[must_use]
    pub fn with(config: &str) -> Self {
        let place = Self::new();
        place.configure(config);
        place
    }

    /// Gives the home this configuration in place of the one it has.
    ///
    /// # Panics
    ///
    /// When it cannot be written.
    pub fn configure(&self, config: &str) {
        std::fs::create_dir_all(self.home()).expect("a home for a test");
        write_private(&self.home().join("config.toml"), config);
    }

    /// The home.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// The project.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Where the project keeps the files of a run.
    #[must_use]
    pub fn run_dir(&self, run: &str) -> PathBuf {
        self.project().join(".local/runs").join(run)
    }

    /// Something beside the home and the project.
    ///
    /// # Panics
    ///
    /// When the place is gone.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().expect("the place of a test").join(name)
    }

    /// A program in the project, with an environment of its own: nothing of the test's but the PATH.
    #[must_use]
    pub fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root.path())
            .env("CYBERINE_HOME", self.home())
            .env("CYBERINE_DISCOVERY", "off")
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }
}

/// Writes a file that nobody else may write.
///
/// # Panics
///
/// When it cannot be written.
pub fn write_private(path: &Path, text: &str) {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file of a test");
}

/// The configuration of a provider that runs `script` with a shell.
#[must_use]
pub fn shell(name: &str, script: &str) -> String {
    format!("[providers.{name}]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", {}]\n", Value::from(script))
}

/// The same, paid by a subscription: it holds money until it has ended, and is charged none.
#[must_use]
pub fn held(name: &str, script: &str) -> String {
    shell(name, script) + "billing = \"subscription\"\n"
}

/// The configuration of a provider that says `answer` once `gate` exists.
#[must_use]
pub fn gated(name: &str, gate: &Path, answer: &str) -> String {
    let wait =
        format!("cat > /dev/null; while [ ! -e '{}' ]; do sleep 0.02; done; echo '{answer}'", gate.display());
    shell(name, &wait)
}

/// Returns once `holds` says so.
///
/// # Panics
///
/// When it has not for [`PATIENCE`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "still waiting until {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_program_runs_in_the_project_with_nothing_of_the_tests_environment() {
        let place = Place::with("# here\n");
        let output = place.program("sh").args(["-c", "pwd; env"]).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.lines().next(), place.project().to_str());
        assert!(said.contains(&format!("CYBERINE_HOME={}\n", place.home().display())), "{said}");
        assert!(!said.contains("CARGO"), "{said}");
        let mode = std::fs::metadata(place.home().join("config.toml")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
