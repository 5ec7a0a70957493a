use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

/// The variable that marks every process of a run, by which leftovers of a dead runner are found.
pub const RUN_MARK: &str = "CYBERINE_RUN";

/// The variable that tells the trees of two children of one run apart.
pub(crate) const SPAWN_MARK: &str = "CYBERINE_SPAWN";

/// What a child may know of its surroundings: who the user is, where things lie, how text is
/// written, and how the network is reached. No key, no token.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];
const ALLOWED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Never handed to a child, whoever names it: it would open our own gate to what the child runs.
const FORBIDDEN: &[&str] = &["CYBERINE_MCP_AUTH_TOKEN"];

/// The whole environment of a child: an allow-list of the caller's, and what is named besides.
///
/// Nothing is inherited. Variables that only some programs need, such as the API key of one
/// provider, are named by the caller with [`ChildEnvironment::pass`] or given with
/// [`ChildEnvironment::set`]. `TERM` is `dumb`, since no child has a terminal.
///
/// ```
/// use cyberine_process::ChildEnvironment;
///
/// let snapshot = [("PATH", "/bin"), ("LC_ALL", "C"), ("ANTHROPIC_API_KEY", "k"), ("EDITOR", "vi")];
/// let snapshot = snapshot.map(|(name, value)| (name.into(), value.into()));
/// let environment = ChildEnvironment::allowed(snapshot.clone()).pass(snapshot, &["ANTHROPIC_API_KEY"]);
/// let names: Vec<_> = environment.names().collect();
/// assert_eq!(names, ["ANTHROPIC_API_KEY", "LC_ALL", "PATH", "TERM"]);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ChildEnvironment(BTreeMap<OsString, OsString>);

impl ChildEnvironment {
    /// Keeps what every child may have of `snapshot`, the environment as the caller read it.
    #[must_use]
    pub fn allowed(snapshot: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let kept = snapshot.into_iter().filter(|(name, _)| is_allowed(name));
        Self(kept.collect()).set("TERM", "dumb")
    }

    /// Adds those variables of `snapshot` that `names` names.
    #[must_use]
    pub fn pass(
        self,
        snapshot: impl IntoIterator<Item = (OsString, OsString)>,
        names: &[impl AsRef<OsStr>],
    ) -> Self {
        let named = |name: &OsStr| names.iter().any(|wanted| wanted.as_ref() == name);
        snapshot
            .into_iter()
            .filter(|(name, _)| named(name))
            .fold(self, |all, (name, value)| all.set(name, value))
    }

    /// Sets one variable. A name that is empty or holds `=`, a name or value that holds a NUL, and
    /// the token of our own gate are left out.
    #[must_use]
    pub fn set(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let (name, value) = (name.into(), value.into());
        if is_settable(&name, &value) {
            self.0.insert(name, value);
        }
        self
    }

    /// Marks every process that inherits this environment as part of the run `run`.
    #[must_use]
    pub fn marked(self, run: &str) -> Self {
        self.set(RUN_MARK, run)
    }

    /// The value of one variable.
    #[must_use]
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.0.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// The names of all variables, sorted.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.0.keys().map(OsString::as_os_str)
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter()
    }
}

impl fmt::Debug for ChildEnvironment {
    /// Prints names only: values may be keys.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

fn is_allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    ALLOWED.contains(&name) || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_settable(name: &OsStr, value: &OsStr) -> bool {
    let (key, bytes) = (name.as_encoded_bytes(), value.as_encoded_bytes());
    let well_formed = !key.is_empty() && !key.contains(&b'=') && !key.contains(&0) && !bytes.contains(&0);
    well_formed && !FORBIDDEN.iter().any(|forbidden| name == *forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(names: &[&str]) -> Vec<(OsString, OsString)> {
        names.iter().map(|name| (name.into(), format!("canary-{name}").into())).collect()
    }

    #[test]
    fn only_named_variables_pass_the_allow_list() {
        let all = snapshot(&[
            "PATH",
            "LC_TIME",
            "XDG_CONFIG_HOME",
            "https_proxy",
            "TERM",
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "LD_PRELOAD",
            "CYBERINE_RUN",
            "CYBERINE_MCP_AUTH_TOKEN",
        ]);
        let environment = ChildEnvironment::allowed(all.clone());
        let expected = ["LC_TIME", "PATH", "TERM", "XDG_CONFIG_HOME", "https_proxy"];
        assert_eq!(environment.names().collect::<Vec<_>>(), expected);
        assert_eq!(environment.get("TERM"), Some(OsStr::new("dumb")));

        let named = environment.pass(all, &["OPENAI_API_KEY", "CYBERINE_MCP_AUTH_TOKEN", "ABSENT"]);
        assert_eq!(named.get("OPENAI_API_KEY"), Some(OsStr::new("canary-OPENAI_API_KEY")));
        assert_eq!(named.get("CYBERINE_MCP_AUTH_TOKEN"), None);
        assert_eq!(named.set("CYBERINE_MCP_AUTH_TOKEN", "t").names().count(), expected.len() + 1);
    }

    #[test]
    fn what_would_make_a_second_variable_is_left_out() {
        let environment = ChildEnvironment::allowed([])
            .set("", "x")
            .set("A=B", "x")
            .set("A\0", "x")
            .set("A", "x\0B=y")
            .marked("run\0LD_PRELOAD=/x");
        assert_eq!(environment.names().collect::<Vec<_>>(), ["TERM"]);
    }

    #[test]
    fn values_are_not_printed() {
        let environment = ChildEnvironment::allowed([]).set("OPENAI_API_KEY", "canary");
        assert_eq!(format!("{environment:?}"), r#"{"OPENAI_API_KEY", "TERM"}"#);
    }
}
