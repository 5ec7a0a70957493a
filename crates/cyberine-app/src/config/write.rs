//! Writing a configuration where there is none.

use std::path::Path;

use cyberine_fs::{Durability, FsError, PrivateDir};

/// Whether a file that is there may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// It stays.
    Refuse,
    /// It is replaced.
    Allow,
}

/// What became of a configuration that was to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It is there, whole.
    Whole,
    /// There was one already, and it was left alone.
    RefusedToOverwrite,
}

/// Writes `text` to the configuration at `path` (0600).
///
/// # Errors
/// Where the directory cannot be opened or written to.
pub fn write_config(path: &Path, text: &str, overwrite: Overwrite) -> Result<Written, FsError> {
    let directory = PrivateDir::open_existing(path.parent().unwrap_or(Path::new("/")))?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let there = path.symlink_metadata().is_ok();
    if there && overwrite == Overwrite::Refuse {
        return Ok(Written::RefusedToOverwrite);
    }
    directory.replace(name, text.as_bytes(), Durability::Durable)?;
    Ok(Written::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigSource;

    #[test]
    fn what_is_there_is_replaced_only_where_that_is_allowed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cyberine.toml");
        let read = || ConfigSource::read(&path).unwrap().unwrap().text().to_owned();
        assert_eq!(write_config(&path, "one", Overwrite::Refuse).unwrap(), Written::Whole);
        assert_eq!(write_config(&path, "two", Overwrite::Refuse).unwrap(), Written::RefusedToOverwrite);
        assert_eq!(read(), "one");
        assert_eq!(write_config(&path, "two", Overwrite::Allow).unwrap(), Written::Whole);
        assert_eq!(read(), "two");
        assert!(write_config(Path::new("/nonexistent/cyberine.toml"), "", Overwrite::Allow).is_err());
    }
}
