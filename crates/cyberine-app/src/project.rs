//! Which directory is the project.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::environment::{Environment, PROJECT_VARIABLE};
use crate::home::{Home, HomeError};

/// The configuration of a project.
const CONFIG: &str = "cyberine.toml";
/// Where a project keeps what its runs wrote.
const RECORDS: &str = ".local";

/// The directory whose runs these are, absolute and free of symbolic links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    directory: PathBuf,
    source: ProjectSource,
}

/// What named the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectSource {
    /// `--project`.
    Flag,
    /// `CYBERINE_PROJECT`.
    Variable,
    /// The working directory.
    WorkingDirectory,
    /// None of these could be used: `projects/default` in the home.
    Default,
}

impl ProjectSource {
    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flag => "--project",
            Self::Variable => PROJECT_VARIABLE,
            Self::WorkingDirectory => "the working directory",
            Self::Default => "the default project",
        }
    }
}

/// The project named cannot be one.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// It cannot be reached.
    #[error("cannot use `{}` ({}) as the project", .path.display(), .source_name)]
    Unreachable {
        /// The directory.
        path: PathBuf,
        /// What named it.
        source_name: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is something else than a directory.
    #[error("`{}` ({source_name}) is not a directory, so it cannot be the project", .path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
        /// What named it.
        source_name: &'static str,
    },
    /// Runs could not be written there.
    #[error("`{}` ({source_name}) is not writable, and a run writes its files to the project; name another directory with --project", .path.display())]
    ReadOnly {
        /// The directory.
        path: PathBuf,
        /// What named it.
        source_name: &'static str,
    },
    /// The working directory is somebody's project, and must not be.
    #[error("the working directory `{}` holds `{CONFIG}`, but the user's home and `/` are projects only where they are named: name it with --project, or move that file away", .path.display())]
    NeedsAName {
        /// The directory.
        path: PathBuf,
    },
    /// The default project could not be made.
    #[error("no working directory can be used as the project, and the default one could not be made")]
    Default(#[source] HomeError),
}

impl Project {
    /// Finds the project: `flag`, else `CYBERINE_PROJECT`, else the working directory where it is
    /// writable and neither `/` nor the user's home, else `projects/default` in `home`, which is
    /// made where it is missing.
    ///
    /// # Errors
    /// A directory that was named and cannot be used is an error: nothing else is put in its place.
    /// So is a working directory that is a project already and cannot be used: its budget would be
    /// left behind.
    pub fn resolve(
        flag: Option<&Path>,
        environment: &Environment,
        home: &Home,
    ) -> Result<Self, ProjectError> {
        if let Some(path) = flag {
            return Self::named(path, ProjectSource::Flag, environment);
        }
        if let Some(path) = environment.path(PROJECT_VARIABLE) {
            return Self::named(&path, ProjectSource::Variable, environment);
        }
        if let Some(directory) = working_directory(environment, writable)? {
            return Ok(Self { directory, source: ProjectSource::WorkingDirectory });
        }
        let directory = home.default_project().map_err(ProjectError::Default)?;
        Ok(Self { directory, source: ProjectSource::Default })
    }

    /// The project of a run, whose directory is on record.
    ///
    /// # Errors
    /// As [`Project::resolve`].
    pub fn at(path: &Path, environment: &Environment) -> Result<Self, ProjectError> {
        Self::named(path, ProjectSource::Flag, environment)
    }

    fn named(path: &Path, source: ProjectSource, environment: &Environment) -> Result<Self, ProjectError> {
        let source_name = source.name();
        let path = environment.cwd().map_or_else(|| path.to_owned(), |cwd| cwd.join(path));
        let directory = path.canonicalize().map_err(|source| ProjectError::Unreachable {
            path: path.clone(),
            source_name,
            source,
        })?;
        if !directory.is_dir() {
            return Err(ProjectError::NotADirectory { path: directory, source_name });
        }
        if !writable(&directory) {
            return Err(ProjectError::ReadOnly { path: directory, source_name });
        }
        Ok(Self { directory, source })
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What named it.
    #[must_use]
    pub const fn source(&self) -> ProjectSource {
        self.source
    }

    /// Its configuration file, whether or not there is one.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.directory.join(CONFIG)
    }
}

/// The working directory, where it can be the project; `None` where another one is to be used.
fn working_directory(
    environment: &Environment,
    writable: impl Fn(&Path) -> bool,
) -> Result<Option<PathBuf>, ProjectError> {
    let Some(directory) = environment.cwd().and_then(|cwd| cwd.canonicalize().ok()) else { return Ok(None) };
    if !directory.is_dir() {
        return Ok(None);
    }
    let user_home = environment.user_home().and_then(|home| home.canonicalize().ok());
    if directory.parent().is_none() || user_home.as_deref() == Some(&directory) {
        // Other programs keep a `.local` in the user's home, so only our own file tells.
        return if holds(&directory, CONFIG) {
            Err(ProjectError::NeedsAName { path: directory })
        } else {
            Ok(None)
        };
    }
    if writable(&directory) {
        return Ok(Some(directory));
    }
    if holds(&directory, CONFIG) || holds(&directory, RECORDS) {
        let source_name = ProjectSource::WorkingDirectory.name();
        return Err(ProjectError::ReadOnly { path: directory, source_name });
    }
    Ok(None)
}

/// Whether `directory` has an entry of that name, or keeps to itself whether it has.
fn holds(directory: &Path, name: &str) -> bool {
    match directory.join(name).symlink_metadata() {
        Ok(_) => true,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

fn writable(directory: &Path) -> bool {
    rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Place {
        root: tempfile::TempDir,
        home: Home,
    }

    fn place() -> Place {
        let root = tempfile::tempdir().unwrap();
        for name in ["user", "work", "other"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        let home = Home::at(root.path().join("cyberine"));
        Place { root, home }
    }

    impl Place {
        fn path(&self, name: &str) -> PathBuf {
            self.root.path().canonicalize().unwrap().join(name)
        }

        fn environment(&self, cwd: &str, project: &str) -> Environment {
            let user = self.path("user");
            Environment::of([("HOME", user.to_str().unwrap()), (PROJECT_VARIABLE, project)], self.path(cwd))
        }
    }

    #[test]
    fn the_flag_wins_then_the_variable_then_a_fit_working_directory() {
        let place = place();
        let check = |flag: Option<&str>, cwd: &str, variable: &str, want: &str, source: ProjectSource| {
            let environment = place.environment(cwd, variable);
            let project = Project::resolve(flag.map(Path::new), &environment, &place.home).unwrap();
            assert_eq!((project.directory(), project.source()), (place.path(want).as_path(), source));
        };
        check(Some("../other"), "work", "../work", "other", ProjectSource::Flag);
        check(None, "work", "../other", "other", ProjectSource::Variable);
        check(None, "work", "", "work", ProjectSource::WorkingDirectory);
        check(None, "user", "", "cyberine/projects/default", ProjectSource::Default);
        check(None, "/", "", "cyberine/projects/default", ProjectSource::Default);
        check(None, "gone", "", "cyberine/projects/default", ProjectSource::Default);
    }

    #[test]
    fn a_symbolic_link_to_the_user_home_is_the_user_home() {
        let place = place();
        std::os::unix::fs::symlink(place.path("user"), place.path("link")).unwrap();
        let project = Project::resolve(None, &place.environment("link", ""), &place.home).unwrap();
        assert_eq!(project.source(), ProjectSource::Default);
    }

    #[test]
    fn a_working_directory_that_is_a_project_is_never_left_for_another_one() {
        let place = place();
        let look = |cwd: &str| working_directory(&place.environment(cwd, ""), |_| false);
        assert!(matches!(look("work"), Ok(None)));
        std::fs::create_dir(place.path("work/.local")).unwrap();
        assert!(matches!(look("work"), Err(ProjectError::ReadOnly { .. })));
        std::os::unix::fs::symlink("nowhere", place.path("other/cyberine.toml")).unwrap();
        let error = look("other").unwrap_err().to_string();
        assert!(error.contains("(the working directory) is not writable"), "{error}");

        std::fs::create_dir(place.path("user/.local")).unwrap();
        assert!(matches!(look("user"), Ok(None)));
        std::fs::write(place.path("user/cyberine.toml"), "").unwrap();
        assert!(matches!(look("user"), Err(ProjectError::NeedsAName { .. })));
    }

    #[test]
    fn a_named_directory_that_cannot_be_used_is_an_error() {
        let place = place();
        std::fs::write(place.path("work/file"), "").unwrap();
        let environment = place.environment("work", "");
        let refused =
            |flag: &str| Project::resolve(Some(Path::new(flag)), &environment, &place.home).unwrap_err();
        assert!(matches!(refused("missing"), ProjectError::Unreachable { .. }));
        assert!(matches!(refused("file"), ProjectError::NotADirectory { .. }));
        if rustix::process::geteuid().is_root() {
            eprintln!("the read-only case is skipped: no permission bit stops root");
            return;
        }
        std::fs::set_permissions(place.path("other"), PermissionsExt::from_mode(0o555)).unwrap();
        assert!(matches!(refused("../other"), ProjectError::ReadOnly { .. }));
    }
}
