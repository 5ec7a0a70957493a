//! One prompt to many providers, and a judged winner.
//!
//! This crate owns the fan-out, the judges, admission and the supervision of runs. It holds ports
//! and never paths, subjects or JSON-RPC: what a run is lives in `cyberine-run-store`, how a model
//! is driven in `cyberine-provider`.
//!
//! A configuration is frozen into a [`Plan`]; the [`Supervisor`] admits a run with it and has it
//! launched; the [`Engine`] carries it out. The course of a run and every verdict are pure
//! functions of what the candidates said: the `async` part only performs what they decide.
//!
//! ```
//! use cyberine_orchestrator::{Answer, consensus};
//!
//! let verdict = consensus(&[
//!     Answer { candidate: "a", text: "The answer is 42." },
//!     Answer { candidate: "b", text: "**42.0**" },
//!     Answer { candidate: "c", text: "41" },
//! ]);
//! assert_eq!(verdict.winner.as_deref(), Some("a"));
//! ```
#![warn(missing_docs)]

mod adversarial;
mod config;
mod consensus;
mod control;
mod criteria;
mod effect;
mod engine;
mod estimate;
mod forecast;
mod in_process;
mod judge;
mod label;
mod llm_judge;
mod machine;
mod news;
mod plan;
mod purse;
mod reaper;
mod revision;
mod selftest;
mod shuffle;
mod supervisor;
mod team;
mod text;
mod ticks;
mod trial;
mod turn;

pub use adversarial::ADVERSARIAL;
pub use config::{Approval, JudgeKind, Misfit, OrchestrateConfig, RoleConfig};
pub use consensus::{Answer, CONSENSUS, consensus};
pub use control::{Control, ControlSource, NoControls};
pub use criteria::{Criterion, Rubric, RubricError};
pub use effect::Effect;
pub use engine::{Engine, EngineError};
pub use estimate::{Caps, Estimate, OwnCaps, ProviderEstimate};
pub use forecast::{CapForecast, Forecast, ProviderForecast};
pub use in_process::InProcessLauncher;
pub use label::{SCRIPTED_LABEL, is_scripted, labelled};
pub use llm_judge::LLM_JUDGE;
pub use plan::{Gate, MAX_RUBRIC, Plan, PlanError, Planned, STEP_ID, STEP_NAME, WORKFLOW, plan};
pub use reaper::{NoProcesses, Reaper};
pub use selftest::{
    Allowance, Case, Examination, Group, GroupReport, Inquiry, JudgeReport, Replied, cases, estimate, inquire,
};
pub use supervisor::{
    DispatchError, DispatchRequest, Dispatched, LaunchError, Launched, Launcher, MAX_PROMPT, Supervisor,
    Unanswered,
};
pub use team::{Team, Unavailable};
pub use ticks::{NoTicks, TickSink};
pub use trial::{COMMAND, Extract, JudgeCommand, NoTrials, Trial, TrialError, TrialReport, Trials};
