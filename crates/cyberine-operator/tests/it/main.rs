//! The operator tools over the store in memory, with runs carried out in this process.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod dispatching;
mod inspecting;
mod listing;
mod published;
mod slow;
mod stage;
mod surface;
