//! What a configuration says without effect, where that does no harm: told by `cyberine doctor`.

use std::time::Duration;

use cyberine_orchestrator::Approval;
use cyberine_provider::{Limits, ProviderConfig};
use cyberine_types::Billing;

use super::document::advice;
use super::{BusBackend, Config, PresenceConfig};

impl Config {
    /// What it says that has no effect, each with what to do about it.
    #[must_use]
    pub fn hints(&self) -> Vec<String> {
        let providers = self.providers.iter().flat_map(|(name, provider)| self.of_provider(name, provider));
        self.of_orchestrate()
            .into_iter()
            .chain(providers)
            .chain(self.of_caps())
            .chain(self.of_mail())
            .collect()
    }

    /// A cap of the home may be on a provider of other projects, or on nobody.
    fn of_caps(&self) -> Vec<String> {
        let known = self.known_providers();
        if self.providers.is_empty() {
            return Vec::new();
        }
        let unknown = self.budget.own.providers.keys().filter(|name| !known.contains(&name.as_str()));
        let hint = |name: &String| {
            let advice = advice(name, &known);
            let stop = if advice.ends_with('?') { "" } else { "." };
            format!(
                "`[budget.providers] {name}` of the home limits nothing here: there is no provider of that \
                 name{advice}{stop} It is right where another project has one"
            )
        };
        unknown.map(hint).collect()
    }

    fn of_orchestrate(&self) -> Vec<String> {
        let orchestrate = &self.orchestrate;
        let mut hints = Vec::new();
        if !orchestrate.judge_providers.is_empty() && !orchestrate.asks_models() {
            hints.push(
                "`[orchestrate] judge_providers` is read by `cyberine judge selftest` only: no judge of `judges` asks \
                 a model; add `llm-judge` or `adversarial`"
                    .to_owned(),
            );
        }
        if let Some(count) = orchestrate.count(&self.providers)
            && orchestrate.quorum > count.max(2)
        {
            let quorum = orchestrate.quorum;
            hints.push(format!(
                "`[orchestrate] quorum` is {quorum}, and there are {count} candidates: {count} answers suffice"
            ));
        }
        if let Some(why) = self.is_never_judged()
            && orchestrate.approval == Approval::Required
        {
            hints.push(format!(
                "`[orchestrate] approval` is \"required\", and {why}: a run waits for an approval of nothing; \
                 leave it out, or have something to judge"
            ));
        }
        if orchestrate.idle_seconds > orchestrate.wall_seconds
            && orchestrate.idle_seconds != usual().idle.as_secs()
        {
            hints.push(
                "`[orchestrate] idle_seconds` is more than `wall_seconds`, which ends a turn before; lower it"
                    .to_owned(),
            );
        }
        hints
    }

    /// Why no run is judged, where none is.
    fn is_never_judged(&self) -> Option<&'static str> {
        let one = self.orchestrate.count(&self.providers).is_some_and(|count| count < 2);
        if self.orchestrate.judges.is_empty() {
            return Some("`judges` is empty");
        }
        one.then_some("there is one candidate")
    }

    fn of_provider(&self, name: &str, provider: &ProviderConfig) -> Vec<String> {
        let (profile, at) = (provider.profile(), format!("`[providers.{name}]"));
        let free = matches!(provider.billing(), Billing::Free | Billing::Scripted);
        let mut hints = Vec::new();
        if free && profile.prices.is_some() {
            hints.push(format!(
                "{at} prices` has no effect: the provider costs nothing; set `billing = \"metered\"` where it does"
            ));
        }
        if free && self.budget.providers.contains_key(name) {
            hints.push(format!(
                "`[budget.providers] {name}` limits nothing: the provider costs nothing; set `billing = \"metered\"` \
                 for it where it does"
            ));
        }
        let plain = profile.url.starts_with("http://") && profile.key_env.is_some();
        if profile.plain_http && !plain {
            hints.push(format!(
                "{at} allow_plain_http` has no effect: no key is sent over plain `http`; leave it out"
            ));
        }
        let seconds = |limit: Option<std::num::NonZeroU64>| limit.map(std::num::NonZeroU64::get);
        let (idle, wall) = (seconds(profile.idle_seconds), seconds(profile.wall_seconds));
        let limits = provider.limits(Limits {
            idle: Duration::from_secs(self.orchestrate.idle_seconds),
            wall: Duration::from_secs(self.orchestrate.wall_seconds),
            ..usual()
        });
        if idle.is_some() && limits.idle > limits.wall {
            let of = if wall.is_some() { "its `wall_seconds`" } else { "`[orchestrate] wall_seconds`" };
            hints.push(format!("{at} idle_seconds` is more than {of}, which ends a turn before; lower it"));
        }
        hints
    }

    fn of_mail(&self) -> Vec<String> {
        let mut hints = Vec::new();
        if self.bus.backend != Some(BusBackend::None) {
            return hints;
        }
        let off = "has no effect: `[bus] backend` is \"none\"; leave it out, or set `backend = \"file\"`";
        if self.bus.retention_days.is_some() {
            hints.push(format!("`[bus] retention_days` {off}"));
        }
        if self.presence != PresenceConfig::default() {
            hints.push(format!("`[presence]` {off}"));
        }
        hints
    }
}

/// The limits of a turn where nobody sets any.
fn usual() -> Limits {
    Limits::default()
}
