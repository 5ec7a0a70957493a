//! Presence against its contract, killed processes, stopped ones, and clocks that step.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops where it fails, and starts children of its own"
)]

mod contract;
mod files;
mod processes;
mod support;
mod times;
