//! What the tests of several crates share: a home and a project of a test's own, running a test
//! binary again as a process, making the system calls of a process fail, and telling whether a
//! process is gone.
//!
//! For tests only. It depends on no crate of the product, so that every crate can use it.
#![warn(missing_docs)]
#![expect(clippy::disallowed_methods, reason = "the product's own way to start children is what is tested")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]

mod place;
mod process;
mod rerun;
mod strace;

pub use place::{PATIENCE, Place, gated, held, shell, wait_until, write_private};
pub use process::{is_gone, is_reaped};
pub use rerun::{ROLE, assert_played, played, rerun, rerun_args, role};
pub use strace::under_strace;
