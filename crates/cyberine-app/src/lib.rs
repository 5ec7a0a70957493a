//! The composition root of Cyberine: configuration, wiring, telemetry, the runner process.
//!
//! The only crate that reads the environment, and the one place where ports meet their
//! implementations. It holds no logic of a tool, an engine or a store.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use cyberine_app::{Environment, Problem, Workplace};
//!
//! # async fn ask() -> Result<(), Problem> {
//! let workplace = Workplace::resolve(None, Arc::new(Environment::read()))?;
//! let run = workplace.dispatch("What is a monad?".to_owned(), "cli".to_owned()).await?;
//! assert!(run.pid > 0);
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod config;
mod discovery;
mod environment;
mod examining;
mod exit;
mod gates;
mod guardian;
mod hand_out;
mod handover;
mod home;
mod host_line;
mod invocation;
mod keys;
mod launcher;
mod messaging;
mod no_token;
mod probing;
mod problem;
mod project;
mod reach;
mod reaper;
mod roster;
mod rubric;
mod runner;
mod runtime;
mod serve;
mod serve_http;
mod team;
mod telemetry;
mod trial;
mod trust;
mod who;
mod workplace;

pub use config::{
    AccessConfig, Algorithm, Budget, BusBackend, BusConfig, Config, ConfigError, ConfigSource, Digest,
    HostExit, HttpConfig, IdentityConfig, IdentityMode, JwtConfig, Label, LabelError, Misnamed, Name,
    NoSuchBackend, Offer, Overwrite, Place, PresenceConfig, PriceBook, PriceSource, RunConfig, Setting,
    Tenant, TokenConfig, Untrusted, Written, offer_of, write_config,
};
pub use cyberine_server::StdioGuard;
pub use discovery::{DiscoveryError, Found, FoundKey, FoundProgram, ModelServer, OLLAMA, find as discover};
pub use environment::{
    BACKEND_VARIABLE, DISCOVERY_VARIABLE, Environment, HOME_VARIABLE, LOG_VARIABLE, NAME_VARIABLE,
    PROJECT_VARIABLE, ROLE_VARIABLE, TEAM_VARIABLE, TOKEN_VARIABLE,
};
pub use examining::{Examined, Examining};
pub use exit::{Exit, say};
pub use gates::Closure;
pub use guardian::run_guardian;
pub use hand_out::{HandedOut, NewToken};
pub use home::{Home, HomeError};
pub use invocation::{Invocation, ServeOptions, UsageError, version};
pub use launcher::ProcessLauncher;
pub use probing::{Probed, ask_briefly, probe};
pub use problem::{Problem, chain};
pub use project::{Project, ProjectError, ProjectSource};
pub use reach::{Reach, reach};
pub use reaper::MarkReaper;
pub use roster::{Roster, RosterSource, roster};
pub use runner::run_runner;
pub use runtime::{Interrupts, block_on};
pub use serve::serve_stdio;
pub use serve_http::serve_http;
pub use telemetry::{escape_controls, start as start_telemetry};
pub use trust::{Trust, TrustError, TrustState};
pub use workplace::{Planning, Workplace};
