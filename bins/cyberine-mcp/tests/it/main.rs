//! The real server, spoken to as a host does, with runs in real processes.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests stop at the first surprise, and start the program under test as a host would"
)]

mod faults;
mod gate;
mod host;
mod life;
mod messages;
mod runs;
mod start;
