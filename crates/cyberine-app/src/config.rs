//! The configuration: `config.toml` in the home, `cyberine.toml` in the project.

mod access;
mod check;
mod criteria;
mod document;
mod hints;
mod http;
mod mail;
mod money;
mod names;
mod offer;
mod prices;
mod source;
mod write;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use cyberine_orchestrator::{Caps, OrchestrateConfig, OwnCaps};
use cyberine_provider::ProviderConfig;
use cyberine_types::Usd;
use serde::{Deserialize, Serialize};

use crate::home::Home;
use crate::project::Project;
use crate::trust::{Trust, TrustError, TrustState};

pub use access::{AccessConfig, HttpConfig, IdentityConfig, IdentityMode, JwtConfig, TokenConfig};
use check::Said;
pub(crate) use criteria::rubric_of;
pub use document::Place;
pub use mail::{BusBackend, BusConfig, Label, LabelError, NoSuchBackend, PresenceConfig};
pub use names::{Algorithm, Digest, Misnamed, Name, Tenant};
use offer::Layer;
pub use offer::{Offer, Setting, offer_of};
pub use prices::{PriceBook, PriceSource};
pub use source::ConfigSource;
pub(crate) use source::read_own;
pub use write::{Overwrite, Written, write_config};

/// The one section of a project's file that needs no trust: it can only tighten.
const BUDGET: &str = "budget";

/// Whose `[budget]` a word is about.
const HOME_FILE: &str = "home's config.toml";
const PROJECT_FILE: &str = "project's cyberine.toml";

/// What a run may hold and spend, where nothing else is said.
const DEFAULT_RUN: Usd = Usd::from_micros(1_000_000);

/// The configuration that holds for one project of one home.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The configured providers, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// How candidates are judged.
    pub orchestrate: OrchestrateConfig,
    /// What may be spent.
    pub budget: Budget,
    /// How runs live and end.
    pub run: RunConfig,
    /// As whom a process is found by others.
    pub presence: PresenceConfig,
    /// What keeps the mail.
    pub bus: BusConfig,
    /// The files it was read from, the home's first.
    pub files: Vec<PathBuf>,
    /// The project's file, where it says more than a budget and the user has not trusted it as it
    /// is: nothing of it holds but a tighter budget.
    pub untrusted: Option<Untrusted>,
}

/// A project configuration that is not in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Untrusted {
    /// The file.
    pub path: PathBuf,
    /// How it stands.
    pub state: TrustState,
    /// The providers it would define.
    pub providers: Vec<String>,
    /// Its sections that are not in force, by name.
    pub sections: Vec<String>,
}

impl std::fmt::Display for Untrusted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.state {
            TrustState::Changed => "has changed since you trusted it",
            TrustState::Unknown | TrustState::Trusted => "is not trusted",
        };
        let path = self.path.display();
        let sections = self.sections.join("], [");
        write!(
            out,
            "`{path}` {what}, so nothing in it counts but a tighter [budget], not its [{sections}]: \
             `cyberine trust` shows what it would do and asks whether you want it"
        )
    }
}

/// `[budget]`: what may be spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The most that may be held and spent in one UTC day, over all projects of the home.
    pub daily_usd: Option<Usd>,
    /// The most that one run may hold and spend.
    pub run_usd: Usd,
    /// What a run holds at a provider of which nobody knows what it costs.
    pub hold_usd: Usd,
    /// The most that may be held and spent in one UTC day by provider, over all projects of the home.
    pub providers: BTreeMap<String, Usd>,
    /// The most that may be held and spent in one UTC day by caller.
    pub callers: BTreeMap<String, Usd>,
    /// The home's own `daily_usd`.
    pub own_daily_usd: Option<Usd>,
    /// The home's own `run_usd`.
    pub own_run_usd: Usd,
    /// The home's own caps by provider and caller.
    pub own: OwnCaps,
}

/// `[run]`: how runs live and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunConfig {
    /// What becomes of the runs a host started when it goes away.
    pub on_host_exit: HostExit,
}

/// What becomes of the runs a host started when it goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HostExit {
    /// They go on in their own processes.
    #[default]
    Continue,
    /// They are asked to stop.
    Cancel,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetSection {
    daily_usd: Option<Usd>,
    run_usd: Option<Usd>,
    #[serde(default)]
    providers: BTreeMap<String, Usd>,
    #[serde(default)]
    callers: BTreeMap<String, Usd>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunSection {
    on_host_exit: Option<HostExit>,
}

/// The configuration cannot be used. Nothing is started with half of one.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration `{}`", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is something else than a file.
    #[error("`{}` is not a regular file", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// It is too long to be a configuration.
    #[error("`{}` is longer than 1 MiB", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It is not text.
    #[error("the configuration `{}` is not UTF-8 text", .path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// It belongs to another user.
    #[error("`{}` belongs to another user (uid {owner}); copy it to a file of your own", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Another user could have written it.
    #[error("`{0}` can be written by others (mode {mode:04o}); run `chmod go-w {0}`", .path.display())]
    WritableByOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A key nobody knows.
    #[error("{at}: unknown key `{key}` in {within}{advice}")]
    UnknownKey {
        /// Where it stands.
        at: Place,
        /// The key.
        key: String,
        /// The section it stands in.
        within: String,
        /// The nearest right key, or those there are.
        advice: String,
    },
    /// A value that cannot be, or no TOML at all.
    #[error("{at}: {message}")]
    Invalid {
        /// Where it stands.
        at: Place,
        /// What is wrong.
        message: String,
    },
    /// What a run holds does not go with the cap of the day.
    #[error(
        "`[budget] run_usd` of the {of} is {run} ($1.00 where it is not set) and `daily_usd` is {daily}: under a cap, a run that can cost money must hold at least $0.01 and at most the cap; set `run_usd` so, or raise `daily_usd`"
    )]
    Hold {
        /// Whose value it is: `home's config.toml`, `project's cyberine.toml`.
        of: &'static str,
        /// What a run would hold.
        run: Usd,
        /// The cap.
        daily: Usd,
    },
    /// Whether the project's file is trusted cannot be said.
    #[error("cannot tell whether `{}` is trusted", .path.display())]
    Trust {
        /// The project's file.
        path: PathBuf,
        /// Why.
        #[source]
        source: TrustError,
    },
}

impl Config {
    /// Reads both files. Either may be missing.
    ///
    /// # Errors
    /// [`ConfigError`], with the file and, where there is one, the place in it.
    pub fn load(home: &Home, project: &Project) -> Result<Self, ConfigError> {
        let (mut config, mut said) = (Self::empty(), Said::default());
        if let Some(source) = ConfigSource::read(&home.config_file())? {
            let layer = Layer::parse(&source)?;
            config.budget = layer.budget.or_default();
            config.apply(layer, &source, &mut said);
        }
        if let Some(source) = ConfigSource::read(&project.config_file())? {
            access::refuse_in_project(&source)?;
            let layer = Layer::parse(&source)?;
            config.budget = config.budget.tightened(&layer.budget);
            said.take_caps(&layer, &source);
            match Untrusted::check(&layer, &source, home)? {
                None => config.apply(layer, &source, &mut said),
                untrusted => config.untrusted = untrusted,
            }
        }
        said.check(&config)?;
        Ok(config)
    }

    /// The names of all providers, with those that the project's file would define once it is trusted.
    fn known_providers(&self) -> Vec<&str> {
        let untrusted = self.untrusted.iter().flat_map(|untrusted| &untrusted.providers);
        self.providers.keys().chain(untrusted).map(String::as_str).collect()
    }

    fn empty() -> Self {
        Self {
            providers: BTreeMap::new(),
            orchestrate: OrchestrateConfig::default(),
            budget: BudgetSection::default().or_default(),
            run: RunConfig::default(),
            presence: PresenceConfig::default(),
            bus: BusConfig::default(),
            files: Vec::new(),
            untrusted: None,
        }
    }

    /// Puts a file on top: its providers beside those there are, or in place of one of the same
    /// name; what else it says in place of what was said. The budget is another matter.
    fn apply(&mut self, layer: Layer, source: &ConfigSource, said: &mut Said) {
        said.take_providers(&layer, source);
        self.providers.extend(layer.providers);
        if let Some(mut orchestrate) = layer.orchestrate {
            let beside = source.path().parent().unwrap_or(Path::new("/"));
            orchestrate.rubric = orchestrate.rubric.map(|rubric| beside.join(rubric));
            self.orchestrate = orchestrate;
            said.orchestrate = Some(source.clone());
        }
        if let Some(on_host_exit) = layer.run.on_host_exit {
            self.run.on_host_exit = on_host_exit;
        }
        self.presence = layer.presence.over(std::mem::take(&mut self.presence));
        self.bus = layer.bus.over(self.bus);
        self.files.push(source.path().to_owned());
    }
}

impl Untrusted {
    fn check(layer: &Layer, source: &ConfigSource, home: &Home) -> Result<Option<Self>, ConfigError> {
        let sections: Vec<String> = layer.sections.iter().filter(|name| *name != BUDGET).cloned().collect();
        if sections.is_empty() {
            return Ok(None);
        }
        let path = source.path().to_owned();
        let state = match Trust::of(home.clone()).state(source) {
            Ok(TrustState::Trusted) => return Ok(None),
            Ok(state) => state,
            Err(source) => return Err(ConfigError::Trust { path, source }),
        };
        Ok(Some(Self { path, state, providers: layer.providers.keys().cloned().collect(), sections }))
    }
}

impl Budget {
    /// Checks that a run which can cost money holds something the cap can be measured by. Under a
    /// cap of nothing such a run is refused anyway; so is one under a cap that a project has lowered
    /// below what it holds.
    ///
    /// # Errors
    /// Where it would hold next to nothing, or more than the whole cap.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Some(daily) = self.daily_usd else { return Ok(()) };
        let (run, own) = (self.run_usd, self.own_run_usd);
        if run < money::LEAST_HOLD {
            let of = if own < money::LEAST_HOLD { HOME_FILE } else { PROJECT_FILE };
            return Err(ConfigError::Hold { of, run, daily });
        }
        match self.own_daily_usd {
            Some(daily) if daily > Usd::ZERO && own > daily => {
                Err(ConfigError::Hold { of: HOME_FILE, run: own, daily })
            }
            _ => Ok(()),
        }
    }

    /// What limits the money of runs.
    #[must_use]
    pub fn caps(&self) -> Caps {
        Caps {
            run: self.run_usd,
            unknown: self.hold_usd,
            daily: self.daily_usd,
            providers: self.providers.clone(),
            callers: self.callers.clone(),
            own: self.own.clone(),
        }
    }

    /// A project may hold a home to less, never to more: it may lower each cap and add others, lower
    /// what a run may spend, and raise what one holds whose cost nobody knows, up to the cap of the
    /// day. A higher value than the home's is no other wish of it.
    fn tightened(self, section: &BudgetSection) -> Self {
        let daily_usd = [self.daily_usd, section.daily_usd].into_iter().flatten().min();
        let fits = section.run_usd.filter(|run| daily_usd.is_none_or(|daily| *run <= daily));
        Self {
            daily_usd,
            run_usd: section.run_usd.map_or(self.run_usd, |run| run.min(self.run_usd)),
            hold_usd: fits.map_or(self.hold_usd, |run| run.max(self.hold_usd)),
            providers: lower(self.providers, &section.providers),
            callers: lower(self.callers, &section.callers),
            ..self
        }
    }
}

/// The caps of both, and the lower one where both have one.
fn lower(mut caps: BTreeMap<String, Usd>, others: &BTreeMap<String, Usd>) -> BTreeMap<String, Usd> {
    for (name, cap) in others {
        caps.entry(name.clone()).and_modify(|known| *known = (*known).min(*cap)).or_insert(*cap);
    }
    caps
}

impl BudgetSection {
    fn or_default(&self) -> Budget {
        let run_usd = self.run_usd.unwrap_or(DEFAULT_RUN);
        let (providers, callers) = (self.providers.clone(), self.callers.clone());
        Budget {
            daily_usd: self.daily_usd,
            run_usd,
            hold_usd: run_usd,
            own_daily_usd: self.daily_usd,
            own_run_usd: run_usd,
            own: OwnCaps { providers: providers.clone(), callers: callers.clone() },
            providers,
            callers,
        }
    }
}

#[cfg(test)]
mod tests;
