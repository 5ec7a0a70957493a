//! What the tests of several crates share: running a test binary again as a process of its own,
//! making the system calls of a process fail, and telling whether a process is gone.
//!
//! For tests only. It depends on no crate of the product, so that every crate can use it.
#![warn(missing_docs)]
#![expect(clippy::disallowed_methods, reason = "the product's own way to start children is what is tested")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]

mod process;
mod rerun;
mod strace;

pub use process::{is_gone, is_reaped};
pub use rerun::{ROLE, assert_played, played, rerun, rerun_args, role};
pub use strace::under_strace;
