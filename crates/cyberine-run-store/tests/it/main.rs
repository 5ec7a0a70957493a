//! The store against its contract, a model, and faults.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test stops where it fails, says why it skips, and starts children of its own"
)]

mod budgets;
mod contract;
mod decisions;
mod doctor;
mod formats;
mod kills;
mod model;
mod processes;
mod project;
mod support;
mod syscalls;
