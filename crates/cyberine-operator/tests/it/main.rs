//! The operator tools over the store in memory, with runs carried out in this process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod authorship;
mod deciding;
mod dispatching;
mod inspecting;
mod listing;
mod messaging;
mod published;
mod repeating;
mod slow;
mod stage;
mod surface;
mod tasking;
mod teaming;
mod watching;
