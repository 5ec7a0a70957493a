//! Orchestrations against the store in memory, with providers that do what a test tells them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod approving;
mod database;
mod engine;
mod fake;
mod faults;
mod judging;
mod post;
mod rounds;
mod sampling;
mod steering;
mod supervisor;
mod telling;
mod withdrawing;
