//! Files on the disk: modes, links, backups, and somebody else who writes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use cyberine_install::{ConfigFile, FileError, Scope};
use cyberine_types::Timestamp;

const NOW: Timestamp = Timestamp::from_unix_ms(1_795_000_000_123);

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_keeps_its_mode_and_its_old_bytes_lie_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mcp.json");
    fs::write(&path, "old").unwrap();
    set_mode(&path, 0o640);
    let file = ConfigFile::read(&path).unwrap();
    let backup = file.write("new", Scope::User, NOW).unwrap().unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("new", 0o640));
    assert_eq!((fs::read_to_string(&backup).unwrap().as_str(), mode(&backup)), ("old", 0o600));
    let backup_name = backup.file_name().unwrap().to_str().unwrap();
    assert!(
        backup_name.starts_with("mcp.json.cyberine-2026") && backup_name.ends_with(".bak"),
        "{backup_name}"
    );
    // A second one in the same instant has a name of its own.
    let again = ConfigFile::read(&path).unwrap().write("newer", Scope::User, NOW).unwrap().unwrap();
    assert_ne!(again, backup);
    let file = ConfigFile::read(&path).unwrap();
    let mut earlier = file.earlier().unwrap();
    earlier.sort();
    assert_eq!(earlier, ["new", "old"]);
    file.give_back(Some("old"), Scope::User).unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode(&path)), ("old", 0o640));
    assert!(!backup.exists() && again.exists());
}

#[test]
fn a_new_file_is_its_users_alone_and_goes_without_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er/mcp.json");
    let file = ConfigFile::read(&path).unwrap();
    assert_eq!(file.text(), None);
    assert!(file.earlier().unwrap().is_empty());
    assert_eq!(file.write("new", Scope::User, NOW).unwrap(), None);
    assert_eq!(mode(&path), 0o600);
    ConfigFile::read(&path).unwrap().give_back(None, Scope::User).unwrap();
    assert!(names(path.parent().unwrap()).is_empty());
}

#[test]
fn a_link_is_written_through_and_stays_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (dotfiles, home) = (dir.path().join("dotfiles"), dir.path().join("home"));
    fs::create_dir(&dotfiles).unwrap();
    fs::create_dir(&home).unwrap();
    let (target, link) = (dotfiles.join("cursor-mcp"), home.join("mcp.json"));
    fs::write(&target, "old").unwrap();
    symlink("../dotfiles/cursor-mcp", &link).unwrap();
    let file = ConfigFile::read(&link).unwrap();
    assert_eq!(file.real_path(), fs::canonicalize(&target).unwrap());
    let backup = file.write("new", Scope::User, NOW).unwrap().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    assert!(backup.starts_with(fs::canonicalize(&dotfiles).unwrap()));
    assert_eq!(names(&home), ["mcp.json"]);
}

#[test]
fn what_is_no_file_of_the_user_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| -> PathBuf { dir.path().join(name) };
    symlink("nowhere", at("dangling")).unwrap();
    assert!(matches!(ConfigFile::read(&at("dangling")), Err(FileError::Dangling { .. })));
    fs::create_dir(at("directory")).unwrap();
    assert!(matches!(ConfigFile::read(&at("directory")), Err(FileError::Fs(_))));
    fs::write(at("bytes"), [0xff, 0xfe]).unwrap();
    assert!(matches!(ConfigFile::read(&at("bytes")), Err(FileError::NotText { .. })));
    fs::write(at("one"), "x").unwrap();
    fs::hard_link(at("one"), at("two")).unwrap();
    assert!(matches!(ConfigFile::read(&at("two")), Err(FileError::Fs(_))));
    fs::write(at("read-only"), "x").unwrap();
    set_mode(&at("read-only"), 0o444);
    assert!(matches!(ConfigFile::read(&at("read-only")), Err(FileError::ReadOnly { .. })));
    symlink("loop", at("loop")).unwrap();
    assert!(ConfigFile::read(&at("loop")).is_err());
}

#[test]
fn somebody_elses_change_in_between_is_kept_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mcp.json");
    fs::write(&path, "old").unwrap();
    let file = ConfigFile::read(&path).unwrap();
    fs::write(&path, "theirs").unwrap();
    assert!(matches!(file.write("ours", Scope::User, NOW), Err(FileError::Changed { .. })));
    assert!(matches!(file.give_back(Some("old"), Scope::User), Err(FileError::Changed { .. })));
    assert!(matches!(file.give_back(None, Scope::User), Err(FileError::Changed { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    assert_eq!(names(dir.path()), ["mcp.json"], "nothing is left lying about");
    // Removed, or born, in between.
    fs::remove_file(&path).unwrap();
    assert!(matches!(file.write("ours", Scope::User, NOW), Err(FileError::Changed { .. })));
    let absent = ConfigFile::read(&path).unwrap();
    fs::write(&path, "theirs").unwrap();
    assert!(matches!(absent.write("ours", Scope::User, NOW), Err(FileError::Changed { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    assert_eq!(names(dir.path()), ["mcp.json"]);
}

#[test]
fn a_directory_that_cannot_be_written_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mcp.json");
    fs::write(&path, "old").unwrap();
    let file = ConfigFile::read(&path).unwrap();
    set_mode(dir.path(), 0o500);
    let written = file.write("new", Scope::User, NOW);
    set_mode(dir.path(), 0o700);
    // The superuser may write anywhere.
    if written.is_err() {
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(dir.path()), ["mcp.json"]);
    }
}
