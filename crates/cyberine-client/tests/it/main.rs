//! Clients with real children: they answer, log, go silent, write nonsense, end early and stay.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests stop at the first surprise")]

mod elsewhere;
mod ends;
mod http;
mod peer;
mod talks;
