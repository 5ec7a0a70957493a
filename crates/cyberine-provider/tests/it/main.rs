//! Providers against real sockets and real processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it stands")]

mod agent;
mod claude;
mod codex;
mod command;
mod config;
mod contract;
mod costs;
mod http;
mod http_faults;
mod http_requests;
mod mcp;
mod real_model;
mod retrying;
mod server;
mod support;
