//! Files, locks and watches on a real file system. Some tests run this binary again as a process
//! of its own: to be killed, or to change what belongs to a whole process.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests start their own helpers, may panic, and say why they skip"
)]

mod faults;
mod files;
mod helper;
mod locks;
mod logs;
mod watching;

use cyberine_fs::PrivateDir;
use tempfile::TempDir;

/// A private directory of its own for one test.
fn home() -> (TempDir, PrivateDir) {
    let scratch = tempfile::tempdir().unwrap();
    let home = PrivateDir::open_or_create(&scratch.path().join("home")).unwrap();
    (scratch, home)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
