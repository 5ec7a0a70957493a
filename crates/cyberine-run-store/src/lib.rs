//! Runs as event logs: admission, claims, control, listing, search and their projections.
//!
//! A [`Run`] is what its [`Event`]s make of it, and changes in no other way than by appending one.
//! Four ports say what engines and surfaces may ask: [`RunStore`] (events, and who may write
//! them), [`Registry`] (all runs of a home), [`Ledger`] (money held and spent) and [`Idempotency`]
//! (calls that carry a key). Two
//! implementations keep their contract: [`SqliteRunStore`], shared by every process of a home, and
//! [`MemoryRunStore`]. Feature `contract` publishes the suite that both pass.
//!
//! This crate never speaks JSON-RPC, never starts a process and never judges an answer.
//!
//! ```
//! use std::sync::Arc;
//! use cyberine_run_store::{MemoryRunStore, NewRun, Reserve, RunStore, RunState};
//! use cyberine_types::{RunId, SystemClock, Usd};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryRunStore::new(Arc::new(SystemClock));
//! let run = NewRun {
//!     id: RunId::random(),
//!     workflow: "mcp-orchestrate".to_owned(),
//!     prompt: "name three rivers".to_owned(),
//!     cwd: "/home/me/project".to_owned(),
//!     requested_by: "cli".to_owned(),
//!     spec: serde_json::json!({}),
//! };
//! let reserve = Reserve::of(Usd::from_dollars(1.0), None);
//! let claim = store.admit(run, reserve).await?;
//! let run = store.load(claim.run()).await?.ok_or("the run is there")?;
//! assert_eq!(run.state, RunState::Queued);
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod charge;
mod claim;
#[cfg(feature = "contract")]
pub mod contract;
mod control;
pub mod doctor;
mod error;
mod event;
mod fold;
mod home;
mod keys;
mod memory;
mod money;
mod port;
mod projection;
mod run;
mod schema;
mod sqlite;
mod tick;
mod ticks;

pub use charge::{Charge, charge, charges, is_unbilled, unknown_turns};
pub use claim::Claim;
pub use control::{Control, ControlReader};
pub use error::{StoreError, StoreErrorKind};
pub use event::{
    Attack, Choice, CriterionScore, DeciderKind, Event, OperatorDecision, ProcessCount, RunEvent, RunState,
    Severity, Verdict, VerdictOutcome, Vote,
};
pub use fold::{FoldError, PREVIEW_CHARS, apply, begin, choose_verdict, fold, preview};
pub use memory::MemoryRunStore;
pub use money::{
    CallerCap, CallerSpending, Cap, Capped, DaySpending, DayTotals, Ledger, MOST_LINES, ProviderSpending,
    Reserve, Share, Used, is_caller,
};
pub use port::{
    Begun, COMMENT_CHARS, CancelOutcome, Cursor, DecideOutcome, Idempotency, IdempotencyKey, NewRun,
    ProjectId, Registry, RunStore, RunSummary, Wish,
};
pub use projection::RunDir;
pub use run::{Awaiting, Candidate, CandidateError, FellBack, GateOutcome, JudgeCall, Run, Steer, Step};
pub use sqlite::SqliteRunStore;
pub use tick::{Tick, TickKind};
pub use ticks::{TICK_SPACING, TickReader, TickWriter};
