//! The machine, judged by its lines: host lines in, server lines out.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test may stop where it fails")]

mod asks;
mod client;
mod client_asks;
mod client_opening;
mod emitted;
mod features;
mod hostile;
mod http;
mod model;
mod official;
mod openings;
mod requests;
mod strict;
mod subscriptions;
mod support;
mod tasks;
mod wire_examples;
