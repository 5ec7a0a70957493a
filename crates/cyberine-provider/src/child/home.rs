//! A home of the turn's own for a program that keeps its configuration in one: nothing of the user's
//! is read but the login, and what the program leaves there goes with the turn.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

use cyberine_process::ChildEnvironment;

/// Where a program keeps its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home {
    /// The variable that names its home.
    pub(crate) variable: &'static str,
    /// Where its home is in the user's where that is not set.
    pub(crate) usual: &'static str,
    /// The file that holds the login, where it is to be used. It is linked, not copied: a login that
    /// the program renews is worth nothing in its old form.
    pub(crate) login: Option<&'static str>,
}

impl Home {
    /// Makes one in `scratch` for a program that would have `environment` and work in `cwd`.
    pub(crate) fn made_in(
        &self,
        scratch: &Path,
        environment: ChildEnvironment,
        cwd: &Path,
    ) -> io::Result<ChildEnvironment> {
        let own = scratch.join("home");
        DirBuilder::new().mode(0o700).create(&own)?;
        if let (Some(name), Some(theirs)) = (self.login, self.of_user(&environment)) {
            let login = cwd.join(theirs).join(name);
            if login.is_file() {
                symlink(login, own.join(name))?;
            }
        }
        Ok(environment.set(self.variable, own))
    }

    fn of_user(&self, environment: &ChildEnvironment) -> Option<PathBuf> {
        let named = environment.get(self.variable).filter(|named| !named.is_empty()).map(PathBuf::from);
        named.or_else(|| environment.get("HOME").map(|home| Path::new(home).join(self.usual)))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HOME: Home = Home { variable: "AGENT_HOME", usual: ".agent", login: Some("auth.json") };

    /// A user's directory with a configuration and a login in `at`.
    fn user(at: &str) -> tempfile::TempDir {
        let user = tempfile::tempdir().unwrap();
        fs::create_dir(user.path().join(at)).unwrap();
        fs::write(user.path().join(at).join("auth.json"), "old").unwrap();
        fs::write(user.path().join(at).join("config.toml"), "x").unwrap();
        user
    }

    /// The names in the home that is made, and its login.
    fn made(home: Home, environment: ChildEnvironment, cwd: &Path) -> (Vec<String>, Option<PathBuf>) {
        let scratch = tempfile::tempdir().unwrap();
        let environment = home.made_in(scratch.path(), environment, cwd).unwrap();
        let own = Path::new(environment.get("AGENT_HOME").unwrap());
        assert!(own.starts_with(scratch.path()));
        let names = fs::read_dir(own).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        (names.collect(), fs::read_link(own.join("auth.json")).ok())
    }

    #[test]
    fn nothing_of_the_user_s_is_there_but_the_login() {
        let user = user(".agent");
        let environment = || ChildEnvironment::allowed([("HOME".into(), user.path().into())]);
        let (names, login) = made(HOME, environment(), Path::new("/"));
        assert_eq!(
            (names, login),
            (vec!["auth.json".to_owned()], Some(user.path().join(".agent/auth.json")))
        );
        assert_eq!(made(Home { login: None, ..HOME }, environment(), Path::new("/")), (vec![], None));
    }

    #[test]
    fn a_home_that_is_named_is_where_the_login_is_and_none_need_be_there() {
        let user = user("mine");
        let environment = ChildEnvironment::allowed([]).set("AGENT_HOME", "mine");
        assert_eq!(made(HOME, environment, user.path()).1, Some(user.path().join("mine/auth.json")));
        let nobody = ChildEnvironment::allowed([]).set("AGENT_HOME", user.path().join("not-there"));
        assert_eq!(made(HOME, nobody, Path::new("/")), (vec![], None));
        assert_eq!(made(HOME, ChildEnvironment::allowed([]), Path::new("/")), (vec![], None));
    }
}
