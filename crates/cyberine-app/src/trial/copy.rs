//! A directory, copied within bounds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most files and directories that are copied.
const MOST_ENTRIES: u64 = 20_000;
/// The most bytes that are copied.
const MOST_BYTES: u64 = 256 << 20;
/// What lies at the top of a project and is not part of what is tried.
const LEFT_OUT: [&str; 3] = [".git", ".local", "target"];

/// How deep directories may lie in each other. Deeper ones make paths that no program can open.
const MOST_DEEP: usize = 100;

/// What has been copied so far.
#[derive(Default)]
struct Copied {
    entries: u64,
    bytes: u64,
}

/// A directory that is to be copied: from where, to where, and how deep it lies.
type Open = (PathBuf, PathBuf, usize);

/// Copies the directory `from` into `to`, which exists. Links and whatever is no file are left out,
/// and so are `.git`, `.local` and `target` at its top.
///
/// # Errors
/// Where there is more than 20,000 entries or 256 MiB of it, directories lie in each other more than
/// 100 deep, something cannot be read, or `stopped` says so.
pub(super) fn tree(from: &Path, to: &Path, stopped: &dyn Fn() -> bool) -> io::Result<()> {
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("`copy` names `{}`: {error}", from.display()))
    };
    if !fs::metadata(from).map_err(named)?.is_dir() {
        return Err(named(io::Error::other("it is no directory")));
    }
    let mut copied = Copied::default();
    let mut open: Vec<Open> = vec![(from.to_owned(), to.to_owned(), 0)];
    while let Some(directory) = open.pop() {
        copied.directory(&directory, &mut open, stopped).map_err(named)?;
    }
    Ok(())
}

impl Copied {
    /// Copies the files of a directory, and adds the directories in it to `open`.
    fn directory(
        &mut self,
        (from, to, depth): &Open,
        open: &mut Vec<Open>,
        stopped: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        if *depth > MOST_DEEP {
            return Err(io::Error::other(format!(
                "its directories lie in each other more than {MOST_DEEP} deep"
            )));
        }
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if *depth == 0 && LEFT_OUT.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
            self.entries += 1;
            if stopped() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "it was cancelled"));
            }
            if kind.is_dir() {
                fs::create_dir(&target)?;
                open.push((entry.path(), target, depth + 1));
            } else if kind.is_file() {
                self.bytes = self.bytes.saturating_add(entry.metadata()?.len());
                self.check()?;
                fs::copy(entry.path(), &target)?;
            }
            self.check()?;
        }
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        if self.entries > MOST_ENTRIES || self.bytes > MOST_BYTES {
            return Err(io::Error::other(format!(
                "it holds more than {MOST_ENTRIES} entries or {} MiB; name a smaller directory",
                MOST_BYTES >> 20
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_copied_and_links_and_what_is_not_tried_are_left_out() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for directory in ["src/deep", ".git", "target"] {
            fs::create_dir_all(from.path().join(directory)).unwrap();
        }
        fs::write(from.path().join("src/deep/a.rs"), "a").unwrap();
        fs::write(from.path().join(".git/config"), "c").unwrap();
        std::os::unix::fs::symlink("/etc", from.path().join("out")).unwrap();
        tree(from.path(), to.path(), &|| false).unwrap();
        assert_eq!(fs::read_to_string(to.path().join("src/deep/a.rs")).unwrap(), "a");
        for absent in [".git", "target", "out"] {
            assert!(!to.path().join(absent).exists(), "{absent}");
        }
    }

    #[test]
    fn what_is_no_directory_too_much_or_cancelled_is_an_error_that_says_so() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let error = tree(&from.path().join("none"), to.path(), &|| false).unwrap_err().to_string();
        assert!(error.starts_with("`copy` names `"), "{error}");
        fs::File::create(from.path().join("big")).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let error = tree(from.path(), to.path(), &|| false).unwrap_err().to_string();
        assert!(error.contains("256 MiB; name a smaller directory"), "{error}");
        assert!(!to.path().join("big").exists());
        let error = tree(from.path(), to.path(), &|| true).unwrap_err().to_string();
        assert!(error.contains("it was cancelled"), "{error}");
    }

    #[test]
    fn a_tree_too_deep_is_an_error_and_no_overflow() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let deep: std::path::PathBuf = std::iter::repeat_n("d", MOST_DEEP + 1).collect();
        fs::create_dir_all(from.path().join(deep)).unwrap();
        let error = tree(from.path(), to.path(), &|| false).unwrap_err().to_string();
        assert!(error.contains("more than 100 deep"), "{error}");
    }
}
