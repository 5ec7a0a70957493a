//! A directory for the temporary files of one turn: what a program leaves there, such as a report
//! of a crash with the prompt in it, is nobody else's to read and does not outlive the turn.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use cyberine_process::{ChildEnvironment, RUN_MARK};
use tempfile::TempDir;

/// Where programs look for a place for temporary files.
const VARIABLE: &str = "TMPDIR";

/// What the names of these directories begin with; the run's mark follows.
const PREFIX: &str = "cyberine-turn-";

pub(crate) struct Scratch(TempDir);

impl Scratch {
    /// A directory of mode 0700 that holds `files`, each of mode 0600.
    pub(crate) fn create(environment: &ChildEnvironment, files: Vec<(&str, String)>) -> io::Result<Self> {
        let parent = environment.get(VARIABLE).map_or_else(|| Path::new("/tmp"), Path::new);
        let private = Permissions::from_mode(0o700);
        let mark = environment.get(RUN_MARK).and_then(|mark| mark.to_str()).unwrap_or_default();
        let prefix = prefix(mark);
        let scratch = tempfile::Builder::new().prefix(&prefix).permissions(private).tempdir_in(parent)?;
        for (name, text) in files {
            let path = scratch.path().join(name);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(text.as_bytes())?;
        }
        Ok(Self(scratch))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// `environment` with this directory as the place for temporary files.
    pub(crate) fn named_in(&self, environment: ChildEnvironment) -> ChildEnvironment {
        environment.set(VARIABLE, self.0.path().as_os_str())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(self.0.path());
    }
}

/// Removes the directories that turns of the run `mark` have left in `parent`, the place for
/// temporary files. Only for a run of which nothing lives any more. Blocks.
pub fn remove_scratch(parent: &Path, mark: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let prefix = prefix(mark);
    let is_ours = |entry: &fs::DirEntry| {
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix));
        named && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    for entry in entries.flatten().filter(is_ours) {
        remove(&entry.path());
    }
}

fn prefix(mark: &str) -> String {
    let plain: String = mark.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    format!("{PREFIX}{plain}-")
}

/// Removes `path` and all below, also where a program has closed a directory.
fn remove(path: &Path) {
    let removed = fs::remove_dir_all(path).or_else(|_| {
        open_all(path);
        fs::remove_dir_all(path)
    });
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let path = path.display();
            tracing::warn!("cannot remove `{path}`, which may hold what was asked: {error}; remove it");
        }
        _ => {}
    }
}

/// Lets the owner into every directory from `path` down.
fn open_all(path: &Path) {
    let mut waiting: Vec<PathBuf> = vec![path.to_owned()];
    while let Some(directory) = waiting.pop() {
        // What cannot be opened is told by the removal that follows.
        let _ = fs::set_permissions(&directory, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        waiting.extend(below.map(|entry| entry.path()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(parent: &Path, mark: &str) -> ChildEnvironment {
        ChildEnvironment::allowed([]).set(VARIABLE, parent).marked(mark)
    }

    fn close(directory: &Path) {
        fs::set_permissions(directory, Permissions::from_mode(0o000)).unwrap();
    }

    #[test]
    fn a_directory_goes_with_its_turn_also_where_it_was_closed() {
        let parent = tempfile::tempdir().unwrap();
        let files = vec![("prompt", "secret".to_owned())];
        let scratch = Scratch::create(&environment(parent.path(), "run-1"), files).unwrap();
        let inner = scratch.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("c"), "x").unwrap();
        close(&inner);
        close(inner.parent().unwrap());
        close(scratch.path());
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_run_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let left = Scratch::create(&environment(parent.path(), "run-1"), Vec::new()).unwrap();
        // Its end is not seen, as where its process was killed.
        let path = left.path().to_owned();
        std::mem::forget(left);
        fs::create_dir(path.join("closed")).unwrap();
        close(&path.join("closed"));
        let other = Scratch::create(&environment(parent.path(), "run-10"), Vec::new()).unwrap();
        let (outside, link) = (parent.path().join("outside"), parent.path().join("cyberine-turn-run-1-link"));
        fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        remove_scratch(parent.path(), "run-1");
        assert!(!path.exists());
        assert!(other.path().is_dir() && outside.is_dir() && link.is_symlink());
    }
}
