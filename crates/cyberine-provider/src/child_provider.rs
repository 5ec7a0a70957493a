//! A provider that is a program.

use std::ffi::OsString;
use std::path::PathBuf;

use cyberine_process::{ChildEnvironment, Spawn};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio_util::sync::CancellationToken;

use crate::child;
use crate::config::ProviderConfig;
use crate::error::TurnError;
use crate::port::{Capabilities, Provider, ProviderInfo, Turn, TurnEvent};
use crate::prompt;
use crate::quote::Quoter;
use crate::stream::turn_stream;
use crate::wire::{Edges, Session, Wire};

/// What a program may write for every byte of the longest answer: events around the text, the text
/// in several forms, escapes.
const OUTPUT_FACTOR: usize = 64;

/// What sets one program apart from another.
pub(crate) trait Program: Send + Sync + 'static {
    /// The program to start.
    fn program(&self) -> OsString;

    /// Its arguments; never the prompt.
    fn args(&self, turn: &Turn) -> Vec<OsString>;

    /// Where it works.
    fn cwd(&self, turn: &Turn) -> PathBuf;

    /// What a turn may ask.
    fn capabilities(&self) -> Capabilities;

    /// Whether the white space around its answer is the model's.
    fn edges(&self) -> Edges;

    /// A parser for its output.
    fn wire(&self, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire>;
}

/// A provider that starts `P` for every turn.
pub(crate) struct ChildProvider<P> {
    info: ProviderInfo,
    config: ProviderConfig,
    program: P,
    environment: ChildEnvironment,
    quoter: Quoter,
}

impl<P: Program> ChildProvider<P> {
    /// A provider named `name` whose children get `environment` and the run's mark, nothing else.
    pub(crate) fn new(
        name: &str,
        config: &ProviderConfig,
        program: P,
        environment: ChildEnvironment,
        quoter: Quoter,
    ) -> Self {
        Self { info: config.info(name), config: config.clone(), program, environment, quoter }
    }
}

impl<P: Program> Provider for ChildProvider<P> {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn capabilities(&self) -> Capabilities {
        self.program.capabilities()
    }

    fn turn(
        &self,
        turn: Turn,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        if !turn.tools.is_empty() {
            let detail = format!("kind `{}` cannot be offered tools", self.info.kind);
            return stream::iter([Err(TurnError::Rejected { detail })]).boxed();
        }
        let limits = self.config.limits(turn.limits);
        let environment = self.environment.clone().marked(&turn.mark);
        let spawn = Spawn {
            args: self.program.args(&turn),
            input: prompt::render(&turn.messages).into(),
            output_limit: limits.answer_bytes.saturating_mul(OUTPUT_FACTOR),
            ..Spawn::new(self.program.program(), environment, self.program.cwd(&turn))
        };
        let wire = self.program.wire(limits.answer_bytes, self.quoter.clone());
        let (tariff, redactor) = (self.config.tariff(), self.quoter.redactor());
        let session = Session::new(wire, limits.answer_bytes, self.program.edges(), tariff, redactor);
        let quoter = self.quoter.clone();
        turn_stream(|out| child::drive(spawn, session, limits, cancel, quoter, out))
    }
}
