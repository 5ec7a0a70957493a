//! The real server, spoken to as a host does, with runs in real processes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

mod asked;
mod cut_short;
mod faults;
mod gate;
mod host;
mod http;
mod life;
mod messages;
mod runs;
mod served;
mod start;
