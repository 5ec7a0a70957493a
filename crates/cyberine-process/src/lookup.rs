//! Finding the program, so that "not found" can say where it was looked for.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::{ChildEnvironment, SpawnError};

/// Finds the program that [`crate::spawn()`] would start: in the `PATH` of `environment`, or, where
/// its name holds a slash, relative to `cwd`.
///
/// # Errors
///
/// Says where it was looked for.
pub fn find_program(
    program: &OsStr,
    environment: &ChildEnvironment,
    cwd: &Path,
) -> Result<PathBuf, SpawnError> {
    find(program, environment.get("PATH"), cwd)
}

/// Finds `program` in the directories of `path`, or, where it holds a slash, relative to `cwd`.
/// Relative directories in `path`, the empty one among them, are passed over: they would let a
/// project choose the program.
pub(crate) fn find(program: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Result<PathBuf, SpawnError> {
    if program.as_bytes().contains(&b'/') {
        let full = cwd.join(program);
        return if is_program(&full) { Ok(full) } else { Err(not_found(program, "this place".to_owned())) };
    }
    let path = path.unwrap_or_default();
    std::env::split_paths(path)
        .filter(|directory| directory.is_absolute() && !program.is_empty())
        .map(|directory| directory.join(program))
        .find(|candidate| is_program(candidate))
        .ok_or_else(|| not_found(program, format!("PATH (`{}`)", path.display())))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

fn not_found(program: &OsStr, searched: String) -> SpawnError {
    SpawnError::NotFound { program: program.display().to_string(), searched }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_directories_of_the_path_are_searched() {
        let scratch = tempfile::tempdir().unwrap();
        let tool = scratch.path().join("tool");
        std::fs::write(&tool, "#!/bin/sh\n").unwrap();
        let look = |name: &str, path: &str| find(name.as_ref(), Some(path.as_ref()), scratch.path()).ok();
        let here = scratch.path().to_str().unwrap();

        assert_eq!(look("tool", here), None, "a file without the executable bit is no program");
        std::fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(look("tool", &format!("/nonexistent:{here}")), Some(tool.clone()));
        assert_eq!(look("tool", ":.:bin"), None);
        assert_eq!(look("./tool", ""), Some(scratch.path().join("./tool")));
        assert_eq!(look("", here), None);
    }
}
