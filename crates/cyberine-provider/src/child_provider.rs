//! A provider that is a program.

use std::ffi::OsString;
use std::path::Path;

use cyberine_process::{ChildEnvironment, Spawn};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use tokio_util::sync::CancellationToken;

use crate::child::{self, Home, Questions, Start};
use crate::config::{Check, ConfigError, Family, Profile, ProviderConfig};
use crate::error::TurnError;
use crate::mcp_tool;
use crate::port::{Capabilities, Provider, ProviderInfo, Turn, TurnEvent};
use crate::probe::Probe;
use crate::prompt;
use crate::quote::Quoter;
use crate::stream::turn_stream;
use crate::wire::{Edges, Session, Wire};

/// What a program may write for every byte of the longest answer: events around the text, the text
/// in several forms, escapes.
const OUTPUT_FACTOR: usize = 64;

/// What a program reads on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// This text and its end.
    Text(String),
    /// What its wire says, for as long as the turn lasts.
    Dialogue,
}

/// What sets one program apart from another. Implemented by what is written of it.
pub(crate) trait Program: Send + Sync + 'static {
    /// What the configuration comes to.
    fn profile(&self) -> Profile<'_>;

    /// Checks what [`Profile`] does not show to work.
    fn check(&self, check: &Check<'_>) -> Result<(), ConfigError>;

    /// The variable in which the program looks for the key to pay with.
    fn key_variable(&self) -> Option<&'static str> {
        None
    }

    /// Variables of ours that it is started with, unless the configuration hands on a value of its own.
    fn fixed_env(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// What makes it say its version and do nothing else; `None` where no such thing is known.
    fn version_args(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// What makes it say, by its exit status, whether its own login holds.
    fn login_args(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// Its arguments; never the prompt. What [`Program::files`] named lies in `scratch`.
    fn args(&self, turn: &Turn, scratch: &Path) -> Vec<OsString>;

    /// Files it needs, by name: written to a directory that is the turn's alone and ends with it.
    fn files(&self, _turn: &Turn) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Whether it works in that directory, and so sees nothing of the turn's own.
    fn works_apart(&self) -> bool {
        false
    }

    /// Where it keeps its configuration, if a turn is to have a place of its own for that.
    fn home(&self) -> Option<Home> {
        None
    }

    /// What it reads.
    fn input(&self, turn: &Turn) -> Input {
        Input::Text(prompt::render(&turn.messages))
    }

    /// What a turn may ask.
    fn capabilities(&self) -> Capabilities;

    /// Whether the white space around its answer is the model's.
    fn edges(&self) -> Edges {
        Edges::Kept
    }

    /// A parser for its output.
    fn wire(&self, turn: &Turn, answer_bytes: usize, quoter: Quoter) -> Box<dyn Wire>;
}

/// A provider that starts a program for every turn.
pub(crate) struct ChildProvider {
    info: ProviderInfo,
    config: ProviderConfig,
    environment: ChildEnvironment,
    quoter: Quoter,
}

impl ChildProvider {
    /// A provider named `name` whose children get `environment` and the run's mark, nothing else.
    pub(crate) fn new(
        name: &str,
        config: &ProviderConfig,
        environment: ChildEnvironment,
        quoter: Quoter,
    ) -> Self {
        Self { info: config.info(name), config: config.clone(), environment, quoter }
    }

    fn start(&self, program: &dyn Program, turn: &Turn, cancel: CancellationToken) -> Start {
        let profile = program.profile();
        let limits = profile.limits(turn.limits);
        let environment = self.environment.clone().marked(&turn.mark);
        let environment = program.fixed_env().iter().fold(environment, |set, (name, value)| {
            if set.get(name).is_some() { set } else { set.set(*name, *value) }
        });
        let cwd = profile.cwd.map_or_else(|| turn.cwd.clone(), |cwd| turn.cwd.join(cwd));
        let path = profile.program.unwrap_or_else(|| Path::new(""));
        let (input, hold_input) = match program.input(turn) {
            Input::Text(text) => (text.into(), false),
            Input::Dialogue => (bytes::Bytes::new(), true),
        };
        let spawn = Spawn {
            input,
            hold_input,
            output_limit: limits.answer_bytes.saturating_mul(OUTPUT_FACTOR),
            ..Spawn::new(path, environment, cwd)
        };
        let wire = program.wire(turn, limits.answer_bytes, self.quoter.clone());
        let (tariff, redactor) = (profile.tariff(), self.quoter.redactor());
        let session = Session::new(wire, limits.answer_bytes, program.edges(), tariff, redactor);
        let files = program.files(turn);
        Start {
            spawn,
            files,
            apart: program.works_apart(),
            home: program.home(),
            session,
            limits,
            cancel,
            quoter: self.quoter.clone(),
        }
    }
}

impl Provider for ChildProvider {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn capabilities(&self) -> Capabilities {
        match self.config.family() {
            Family::Child(program) => program.capabilities(),
            Family::Http(..) => Capabilities::default(),
        }
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        if let ProviderConfig::Mcp(server) = &self.config {
            let (environment, quoter) = (self.environment.clone(), self.quoter.clone());
            return Box::pin(mcp_tool::probe(server.clone(), environment, quoter));
        }
        let Family::Child(program) = self.config.family() else {
            return Box::pin(std::future::ready(Probe::there()));
        };
        let questions = Questions::of(program);
        Box::pin(child::probe(questions, self.environment.clone(), self.quoter.clone()))
    }

    fn turn(
        &self,
        turn: Turn,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        let rejected = |detail: String| stream::iter([Err(TurnError::Rejected { detail })]).boxed();
        let Family::Child(program) = self.config.family() else {
            return rejected(format!("kind `{}` is no program", self.info.kind));
        };
        if !turn.tools.is_empty() {
            return rejected(format!("kind `{}` cannot be offered tools", self.info.kind));
        }
        let start = self.start(program, &turn, cancel);
        let config = self.config.clone();
        if let ProviderConfig::Mcp(server) = config {
            return turn_stream(move |out| mcp_tool::drive(start, server, turn, out));
        }
        turn_stream(move |out| child::drive(start, args(config, turn), out))
    }
}

/// The arguments for `turn`, once it is known where its files lie.
fn args(config: ProviderConfig, turn: Turn) -> impl FnOnce(&Path) -> Vec<OsString> + Send + 'static {
    move |scratch| match config.family() {
        Family::Child(program) => program.args(&turn, scratch),
        Family::Http(..) => Vec::new(),
    }
}
