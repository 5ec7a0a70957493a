//! Everything a surface works with, put together for one project.

use std::path::Path;
use std::sync::Arc;

use cyberine_bus::{Bus, Channel, FileBus, Sender};
use cyberine_orchestrator::{
    DispatchError, DispatchRequest, Dispatched, Estimate, Forecast, OrchestrateConfig, Plan, Supervisor, plan,
};
use cyberine_presence::{FilePresence, Presence};
use cyberine_run_store::SqliteRunStore;
use cyberine_types::{Clock as _, InstanceId, Principal, RunId, SystemClock, UtcDay};

use crate::config::{BusConfig, Config, PresenceConfig, PriceBook, Untrusted};
use crate::environment::Environment;
use crate::exit::Exit;
use crate::home::Home;
use crate::host_line::HostLine;
use crate::launcher::ProcessLauncher;
use crate::messaging::{self, Messaging};
use crate::problem::{Problem, chain};
use crate::project::Project;
use crate::reaper::MarkReaper;
use crate::roster::{Roster, roster};
use crate::rubric;
use crate::team;
use crate::trial;

/// The store, the supervisor and the configuration of one project of one home. Cheap to make:
/// no file is opened before the first use.
#[derive(Clone)]
pub struct Workplace {
    /// The environment as it was at start.
    pub environment: Arc<Environment>,
    /// The home.
    pub home: Home,
    /// The project.
    pub project: Project,
    /// The runs of the home.
    pub store: Arc<SqliteRunStore>,
    /// Starts, stops and buries runs.
    pub supervisor: Supervisor,
    /// The mailboxes of the home.
    pub bus: Arc<dyn Bus>,
    /// Who is there.
    pub presence: Arc<dyn Presence>,
    /// This process, in what it sends and announces.
    pub instance: InstanceId,
}

/// A plan with the configuration it was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Planning {
    /// What a run is to do.
    pub plan: Plan,
    /// The configuration that holds.
    pub config: Config,
    /// Whom it asks, and how they were found.
    pub roster: Roster,
}

impl Workplace {
    /// Puts everything together for the project that `flag`, the environment or the working
    /// directory names.
    ///
    /// # Errors
    /// Where there is no home, the project cannot be used, or the environment names a bus there is
    /// not.
    pub fn resolve(flag: Option<&Path>, environment: Arc<Environment>) -> Result<Self, Problem> {
        Self::resolved(flag, environment, None)
    }

    /// As [`resolve`](Self::resolve), for a server: the runs that it starts end with this process,
    /// however it ends, where `[run] on_host_exit` says so when they are started.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve), and where the system gives no line to their guardians.
    pub fn of_server(flag: Option<&Path>, environment: Arc<Environment>) -> Result<Self, Problem> {
        let line = HostLine::new().map_err(|error| Problem::of(Exit::Internal, &error))?;
        Self::resolved(flag, environment, Some(line))
    }

    fn resolved(
        flag: Option<&Path>,
        environment: Arc<Environment>,
        line: Option<HostLine>,
    ) -> Result<Self, Problem> {
        let home = Home::resolve(&environment)?;
        let project = Project::resolve(flag, &environment, &home)?;
        let backend = messaging::backend(&environment)?;
        // Whoever needs a configuration that is wrong says so; until then it says nothing.
        let config = Config::load(&home, &project).map(|config| config.bus).unwrap_or_default();
        let config = BusConfig { backend: backend.or(config.backend), ..config };
        Ok(Self::with_bus(environment, home, project, config, line))
    }

    /// Puts everything together for `project`, with mail in files.
    #[must_use]
    pub fn of(environment: Arc<Environment>, home: Home, project: Project) -> Self {
        Self::with_bus(environment, home, project, BusConfig::default(), None)
    }

    fn with_bus(
        environment: Arc<Environment>,
        home: Home,
        project: Project,
        config: BusConfig,
        line: Option<HostLine>,
    ) -> Self {
        let store = Arc::new(SqliteRunStore::new(home.directory(), Arc::new(SystemClock)));
        let launcher = ProcessLauncher::new(Arc::clone(&environment), home.clone());
        let launcher = match line {
            Some(line) => launcher.holding(line, project.clone()),
            None => launcher,
        };
        let instance = InstanceId::random();
        let Messaging { bus, presence } = Messaging::of(&home, config, instance);
        let sender = Sender::new(&Principal::local(environment.user()), Channel::Run, instance);
        let supervisor = Supervisor::new(store.clone(), Arc::new(launcher), Arc::new(MarkReaper::Leftovers))
            .with_bus(Arc::clone(&bus), sender);
        Self { environment, home, project, store, supervisor, bus, presence, instance }
    }

    /// The configuration that holds now.
    ///
    /// # Errors
    /// Where a file of it is wrong.
    pub fn config(&self) -> Result<Config, Problem> {
        Ok(Config::load(&self.home, &self.project)?)
    }

    /// As whom this process is found by others: what `flags` say, else the environment, else the
    /// configuration.
    ///
    /// # Errors
    /// Where the environment or the configuration says what cannot be.
    pub fn presented(&self, flags: PresenceConfig) -> Result<PresenceConfig, Problem> {
        let environment = messaging::presence(&self.environment)?;
        Ok(flags.over(environment).over(self.config()?.presence))
    }

    /// The mailboxes as the files they are kept in, for whoever lists or checks them, whether or
    /// not messages are switched on.
    #[must_use]
    pub fn mailbox_files(&self) -> FileBus {
        FileBus::new(self.home.directory(), Arc::new(SystemClock))
    }

    /// The files of those who are there, for whoever checks them.
    #[must_use]
    pub fn presence_files(&self) -> FilePresence {
        FilePresence::new(self.home.directory(), Arc::new(SystemClock), self.instance)
    }

    /// What an orchestration would do now: whom it would ask, and who would judge.
    ///
    /// # Errors
    /// Where the configuration is wrong, a provider could not be built, or there is none.
    pub async fn planning(&self) -> Result<Planning, Problem> {
        let planning = self.planned(|_| {}).await?;
        match team::unbuilt(&planning.plan, &self.environment) {
            faults if faults.is_empty() => Ok(planning),
            faults => Err(Problem::new(Exit::Configuration, faults.join("; "))),
        }
    }

    /// Whom a prompt can be put to now.
    ///
    /// # Errors
    /// Where the configuration is wrong, is not trusted and would name somebody, or names nobody.
    pub async fn roster(&self) -> Result<Roster, Problem> {
        self.roster_of(&self.config()?).await
    }

    async fn roster_of(&self, config: &Config) -> Result<Roster, Problem> {
        let roster = roster(config, &self.environment).await?;
        if roster.providers.is_empty() {
            return Err(nobody(config));
        }
        if let Some(untrusted) = &config.untrusted {
            tracing::warn!("{untrusted}");
        }
        Ok(roster)
    }

    /// Everything that keeps the providers of an orchestration from answering, as far as it shows
    /// without asking them: a key that is not set, a program that is not there.
    ///
    /// # Errors
    /// Where the configuration is wrong, or there is no provider.
    pub async fn faults(&self) -> Result<Vec<Problem>, Problem> {
        let planning = self.planned(|_| {}).await?;
        let project = self.project.directory();
        let mut faults = team::faults(&planning.plan, &self.environment, project);
        faults.extend(trial::faults(&planning.plan, &self.environment, project));
        Ok(faults.into_iter().map(|fault| Problem::new(Exit::Configuration, fault)).collect())
    }

    /// As [`planning`](Self::planning), whether or not the providers can be built.
    /// `tune` has a word on how candidates are judged.
    pub(crate) async fn planned(
        &self,
        tune: impl FnOnce(&mut OrchestrateConfig),
    ) -> Result<Planning, Problem> {
        let mut config = self.config()?;
        tune(&mut config.orchestrate);
        rubric::take_in(&mut config.orchestrate).await?;
        let roster = self.roster_of(&config).await?;
        let seed = getrandom::u32().map_err(|error| Problem::of(Exit::Internal, &error))?;
        let mut plan = plan(&config.orchestrate, &roster.providers, seed)
            .map_err(|error| Problem::of(Exit::Configuration, &error))?;
        if !plan.costs_nothing() {
            config.budget.check()?;
            plan.run_cap = Some(config.budget.run_usd);
            self.prices()?.apply(&mut plan, &today().to_string());
        }
        Ok(Planning { plan, config, roster })
    }

    /// Puts `prompt` to everyone there is. Returns as soon as the run is durable and under way.
    ///
    /// # Errors
    /// Where it cannot start; nothing is spent then.
    ///
    /// # Cancel safety
    /// As [`Supervisor::dispatch`]: dropping the future takes the request back.
    pub async fn dispatch(&self, prompt: String, requested_by: String) -> Result<Dispatched, Problem> {
        let (dispatched, _) = self.dispatch_noting(RunId::random(), prompt, requested_by).await?;
        Ok(dispatched)
    }

    /// As [`dispatch`](Self::dispatch), with the project's configuration where it was not used.
    pub(crate) async fn dispatch_noting(
        &self,
        run: RunId,
        prompt: String,
        requested_by: String,
    ) -> Result<(Dispatched, Option<Untrusted>), Problem> {
        let planning = self.planning().await?;
        self.dispatch_planned(planning, run, prompt, requested_by).await
    }

    /// Carries `planning` out.
    pub(crate) async fn dispatch_planned(
        &self,
        Planning { plan, config, .. }: Planning,
        run: RunId,
        prompt: String,
        requested_by: String,
    ) -> Result<(Dispatched, Option<Untrusted>), Problem> {
        let reserve = Estimate::of(&plan, prompt.len()).reserve(&config.budget.caps(), &requested_by);
        let cwd = self.cwd()?;
        let request = DispatchRequest { run, prompt, cwd, requested_by, plan, reserve };
        Ok((self.supervisor.dispatch(request).await?, config.untrusted))
    }

    /// What [`dispatch`](Self::dispatch) would do now, and what it may cost. Nobody is asked, and
    /// nothing is recorded.
    ///
    /// With it comes how the dispatch would end: [`Exit::Done`] where nothing speaks against it.
    ///
    /// # Errors
    /// Where it could not start, other than for want of money or of a key: that is part of the
    /// forecast.
    pub async fn forecast(&self, prompt: &str, requested_by: &str) -> Result<(Forecast, Exit), Problem> {
        let Planning { plan, config, .. } = self.planned(|_| {}).await?;
        Supervisor::check(prompt, &plan)?;
        let estimate = Estimate::of(&plan, prompt.len());
        let reserve = estimate.reserve(&config.budget.caps(), requested_by);
        let mut forecast =
            Forecast::of(&plan, prompt.len(), &estimate, &reserve, &*self.store, today()).await?;
        let unbuilt = team::unbuilt(&plan, &self.environment);
        let exit = match &forecast.refusal {
            _ if !unbuilt.is_empty() => Exit::Configuration,
            Some(_) => Exit::TryAgain,
            None => Exit::Done,
        };
        if !unbuilt.is_empty() {
            let refused = unbuilt.into_iter().chain(forecast.refusal.take());
            forecast.refusal = Some(refused.collect::<Vec<_>>().join("; "));
        }
        forecast.note = config.untrusted.map(|untrusted| untrusted.to_string());
        Ok((forecast, exit))
    }

    /// The price tables that hold: the home's, and the one that is built in.
    ///
    /// # Errors
    /// Where the home's is wrong.
    pub fn prices(&self) -> Result<PriceBook, Problem> {
        Ok(PriceBook::load(&self.home)?)
    }

    /// The project's directory as records have it.
    ///
    /// # Errors
    /// Where its path is not UTF-8, which records are.
    pub fn cwd(&self) -> Result<String, Problem> {
        let directory = self.project.directory();
        directory.to_str().map(str::to_owned).ok_or_else(|| {
            let path = directory.display();
            Problem::new(
                Exit::Configuration,
                format!("the path of the project `{path}` is not UTF-8; use another one"),
            )
        })
    }
}

/// The UTC day it is now.
fn today() -> UtcDay {
    SystemClock.now().day()
}

/// Nobody to ask. Where a configuration would name somebody, that is what to say.
fn nobody(config: &Config) -> Problem {
    match (&config.untrusted, config.files.last()) {
        (Some(untrusted), _) => Problem::new(Exit::Denied, untrusted.to_string()),
        (None, Some(file)) => Problem::new(
            Exit::Unavailable,
            format!(
                "no provider is switched on in `{}`, and no model server that costs nothing was found: name \
                 one there under [providers.NAME], or take the `#` from one that `cyberine init` has \
                 written; `cyberine doctor` shows what was found",
                file.display()
            ),
        ),
        (None, None) => Problem::from(DispatchError::NoProvider),
    }
}

impl From<DispatchError> for Problem {
    fn from(error: DispatchError) -> Self {
        let exit = match error {
            DispatchError::EmptyPrompt | DispatchError::PromptTooLong => Exit::Usage,
            DispatchError::TooDear { .. } => Exit::TryAgain,
            DispatchError::NoProvider | DispatchError::Launch { .. } => Exit::Unavailable,
            DispatchError::Plan(_) => Exit::Configuration,
            DispatchError::Store(error) => return Self::from(error),
        };
        Self::new(exit, format!("{}. {}", chain(&error), error.advice()))
    }
}
