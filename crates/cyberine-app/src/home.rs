//! Where everything of one user lives.

use std::path::{Path, PathBuf};

use cyberine_fs::{FsError, PrivateDir};

use crate::environment::{Environment, HOME_VARIABLE};

/// The directory that holds the database, the configuration, keys, locks and logs of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    directory: PathBuf,
}

/// The home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// Neither `CYBERINE_HOME` nor `HOME` is set.
    #[error("there is no home: set `{HOME_VARIABLE}` to a directory of your own")]
    Unknown,
    /// It is not an absolute path, and would mean another place in another directory.
    #[error("`{HOME_VARIABLE}` must be an absolute path, and `{}` is none", .path.display())]
    Relative {
        /// The path.
        path: PathBuf,
    },
    /// It cannot be made, or is not the user's own and closed to others.
    #[error("cannot use `{}` as the home", .path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: FsError,
    },
}

impl Home {
    /// The home the environment names: `CYBERINE_HOME`, else `.cyberine` in the user's home.
    /// Nothing on disk is touched.
    ///
    /// # Errors
    /// Where the environment names none, or names a relative path.
    pub fn resolve(environment: &Environment) -> Result<Self, HomeError> {
        let directory = match environment.path(HOME_VARIABLE) {
            Some(path) => path,
            None => environment.user_home().ok_or(HomeError::Unknown)?.join(".cyberine"),
        };
        if directory.is_absolute() {
            return Ok(Self { directory });
        }
        Err(HomeError::Relative { path: directory })
    }

    /// The home at `directory`.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Opens the home, and makes it where it is missing. It is closed to others (0700) afterwards.
    ///
    /// # Errors
    /// Where it cannot be made, is another user's, or can be written by others.
    pub fn open(&self) -> Result<PrivateDir, HomeError> {
        PrivateDir::open_or_create(&self.directory).map_err(|source| self.unusable(source))
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The configuration that holds in every project.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.directory.join("config.toml")
    }

    /// The user's own price table, which goes before the one that is built in.
    #[must_use]
    pub fn prices_file(&self) -> PathBuf {
        self.directory.join("prices.toml")
    }

    /// Opens the directory of the runners' logs.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn logs(&self) -> Result<PrivateDir, HomeError> {
        self.open()?.subdir("logs").map_err(|source| self.unusable(source))
    }

    /// Opens the directory of the accounts' gates.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub(crate) fn gates(&self) -> Result<PrivateDir, HomeError> {
        self.open()?.subdir("gates").map_err(|source| self.unusable(source))
    }

    /// Makes and names the project of those who have none.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn default_project(&self) -> Result<PathBuf, HomeError> {
        let projects = self.open()?.subdir("projects");
        let default = projects.and_then(|projects| projects.subdir("default"));
        let path = default.map_err(|source| self.unusable(source))?.path().to_owned();
        Ok(path.canonicalize().unwrap_or(path))
    }

    fn unusable(&self, source: FsError) -> HomeError {
        HomeError::Unusable { path: self.directory.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn the_variable_wins_over_the_user_home_and_must_be_absolute() {
        let check = |variable: &str, want: Option<&str>| {
            let environment = Environment::of([(HOME_VARIABLE, variable), ("HOME", "/u")], "/");
            let home = Home::resolve(&environment).ok();
            assert_eq!(home, want.map(Home::at), "{variable}");
        };
        check("/x", Some("/x"));
        check("", Some("/u/.cyberine"));
        check("x", None);
        assert!(matches!(Home::resolve(&Environment::of([], "/")), Err(HomeError::Unknown)));
    }

    #[test]
    fn a_new_home_is_closed_and_one_that_others_can_write_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path().join("a/home"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        let logs = home.logs().unwrap();
        assert_eq!((mode(home.directory()), mode(logs.path())), (0o700, 0o700));
        std::fs::set_permissions(home.directory(), PermissionsExt::from_mode(0o770)).unwrap();
        let refused = home.open().unwrap_err();
        assert_eq!(refused.to_string(), format!("cannot use `{}` as the home", home.directory().display()));
        assert!(matches!(
            refused,
            HomeError::Unusable { source: FsError::SharedWrite { mode: 0o770, .. }, .. }
        ));
    }
}
