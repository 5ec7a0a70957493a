//! The process environment, read once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use cyberine_http::identity::checked_name;
use cyberine_process::RUN_MARK;
use cyberine_types::Secret;

/// The variable that names the home.
pub const HOME_VARIABLE: &str = "CYBERINE_HOME";
/// The variable that closes the gate of the operator surface.
pub const TOKEN_VARIABLE: &str = "CYBERINE_MCP_AUTH_TOKEN";
/// The variable that names the project.
pub const PROJECT_VARIABLE: &str = "CYBERINE_PROJECT";
/// The variable that says what is worth a line on stderr: `error`, `warn`, `info`, `debug`.
pub const LOG_VARIABLE: &str = "CYBERINE_LOG";
/// The variable that says where to look for model servers: `off`, or addresses on loopback.
pub const DISCOVERY_VARIABLE: &str = "CYBERINE_DISCOVERY";

/// The variable that says what keeps the mail: `file` or `none`.
pub const BACKEND_VARIABLE: &str = "CYBERINE_BUS_BACKEND";
/// The variable that names the team a server belongs to.
pub const TEAM_VARIABLE: &str = "CYBERINE_TEAM";
/// The variable that names a server's role in its team.
pub const ROLE_VARIABLE: &str = "CYBERINE_ROLE";
/// The variable that gives a server a name of its own.
pub const NAME_VARIABLE: &str = "CYBERINE_NAME";

/// A snapshot of the environment and the working directory, taken once at start. Everything that
/// depends on either is handed this, so that a test can hand over another one.
#[derive(Clone)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    cwd: Option<PathBuf>,
    program: Option<PathBuf>,
    /// What a user is called whom no variable names.
    uid: String,
}

impl Environment {
    /// Reads the environment of this process, and conceals the process: the programs that runs ask
    /// are other programs of the same user, and must not read the keys here. A process that was
    /// started within a run has nothing that its agent does not have, and is found by its mark.
    #[must_use]
    pub fn read() -> Self {
        let variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        if !variables.contains_key(OsStr::new(RUN_MARK)) {
            cyberine_process::conceal();
        }
        Self {
            variables,
            cwd: std::env::current_dir().ok(),
            program: std::env::current_exe().ok(),
            uid: uid(),
        }
    }

    /// An environment made of these variables, for a process that works in `cwd`.
    #[must_use]
    pub fn of<const N: usize>(variables: [(&str, &str); N], cwd: impl Into<PathBuf>) -> Self {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, cwd: Some(cwd.into()), program: None, uid: uid() }
    }

    /// The working directory, where there is one.
    #[must_use]
    pub fn cwd(&self) -> Option<&PathBuf> {
        self.cwd.as_ref()
    }

    /// This program, as the system found it.
    #[must_use]
    pub fn program(&self) -> Option<&PathBuf> {
        self.program.as_ref()
    }

    /// A program that is installed beside this one, whether or not it is there.
    #[must_use]
    pub fn sibling(&self, name: &str) -> Option<PathBuf> {
        let directory = self.program.as_ref()?.parent()?;
        Some(directory.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
    }

    /// The raw value of a variable.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable that is set, not empty, and text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.raw(name)?.to_str().filter(|value| !value.is_empty())
    }

    /// A variable that is set and not empty, as a path.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// A variable that holds a credential; surrounding white space, which no key has and many a
    /// pasted one does, is dropped.
    #[must_use]
    pub fn secret(&self, name: &str) -> Option<Secret> {
        let value = self.text(name)?.trim();
        (!value.is_empty()).then(|| Secret::new(value))
    }

    /// The user's home directory.
    #[must_use]
    pub fn user_home(&self) -> Option<PathBuf> {
        self.path("HOME").or_else(|| self.path("USERPROFILE"))
    }

    /// The user's name as the system has it in the environment, where that can name somebody: one visible
    /// line, as the configuration's `user`. Else the number of the user, such as `uid-1000`.
    #[must_use]
    pub fn user(&self) -> &str {
        let named = |name: &&str| self.text(name).filter(|text| checked_name(text).is_ok());
        ["USER", "LOGNAME", "USERNAME"].iter().find_map(named).unwrap_or(&self.uid)
    }

    /// The directories programs are looked for in.
    #[must_use]
    pub fn search_path(&self) -> Vec<PathBuf> {
        self.raw("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default()
    }

    /// All variables, for whoever picks from them by an allow-list.
    #[must_use]
    pub fn variables(&self) -> Vec<(OsString, OsString)> {
        self.variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The same environment with one variable changed.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }
}

fn uid() -> String {
    format!("uid-{}", rustix::process::geteuid().as_raw())
}

/// Where programs that are started here put their temporary files.
pub(crate) fn temporary() -> PathBuf {
    std::env::temp_dir()
}

impl std::fmt::Debug for Environment {
    /// Names only: values may be credentials.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.variables.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_never_printed_and_keys_are_trimmed() {
        let environment =
            Environment::of([("OPENAI_API_KEY", " sk-1\n"), ("EMPTY", ""), ("BLANK", "  ")], "/");
        assert_eq!(environment.secret("OPENAI_API_KEY").unwrap().expose(), "sk-1");
        for absent in ["EMPTY", "BLANK", "MISSING"] {
            assert!(environment.secret(absent).is_none(), "{absent}");
        }
        assert!(!format!("{environment:?}").contains("sk-1"));
    }

    #[test]
    fn a_variable_that_cannot_name_somebody_names_nobody() {
        let number = format!("uid-{}", rustix::process::geteuid().as_raw());
        let long = "x".repeat(129);
        for bad in ["", " ", "a\nb", "a\u{202e}b", "\u{200b}", long.as_str()] {
            assert_eq!(Environment::of([("USER", bad)], "/").user(), number, "{bad:?}");
            assert_eq!(Environment::of([("USER", bad), ("LOGNAME", "ada")], "/").user(), "ada", "{bad:?}");
        }
        assert_eq!(Environment::of([], "/").user(), number);
        assert_eq!(Environment::of([("USER", "Ada Ö"), ("LOGNAME", "x")], "/").user(), "Ada Ö");
    }
}
