use super::*;
use crate::environment::Environment;
use cyberine_orchestrator::JudgeKind;
use cyberine_types::SystemClock;
use std::os::unix::fs::PermissionsExt;

mod effects;

struct Place {
    root: tempfile::TempDir,
    home: Home,
    project: Project,
}

fn place() -> Place {
    let root = tempfile::tempdir().unwrap();
    let home = Home::at(root.path().join("home"));
    home.open().unwrap();
    let directory = root.path().join("project");
    std::fs::create_dir(&directory).unwrap();
    let project = Project::at(&directory, &Environment::of([], "/")).unwrap();
    Place { root, home, project }
}

impl Place {
    fn home(&self, text: &str) -> &Self {
        write(&self.home.config_file(), text);
        self
    }

    fn project(&self, text: &str) -> &Self {
        write(&self.project.config_file(), text);
        self
    }

    fn trust(&self) -> &Self {
        let source = ConfigSource::read(&self.project.config_file()).unwrap().unwrap();
        Trust::of(self.home.clone()).grant(&source, &SystemClock).unwrap();
        self
    }

    fn load(&self) -> Config {
        Config::load(&self.home, &self.project).unwrap()
    }

    fn fault(&self) -> String {
        Config::load(&self.home, &self.project).unwrap_err().to_string()
    }
}

fn write(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

/// One in which the home says the same.
fn budget(daily: Option<f64>, run: f64, hold: f64) -> Budget {
    Budget {
        own_daily_usd: daily.map(Usd::from_dollars),
        own_run_usd: Usd::from_dollars(run),
        own: OwnCaps::default(),
        daily_usd: daily.map(Usd::from_dollars),
        run_usd: Usd::from_dollars(run),
        hold_usd: Usd::from_dollars(hold),
        providers: BTreeMap::new(),
        callers: BTreeMap::new(),
    }
}

const LOCAL: &str = "[providers.local]\nkind = \"command\"\ncommand = [\"cat\"]\n";

#[test]
fn without_files_everything_has_its_default() {
    let config = place().load();
    assert_eq!(config.budget, budget(None, 1.0, 1.0));
    assert_eq!((config.providers.len(), config.files.len(), config.untrusted), (0, 0, None));
    assert_eq!(config.run.on_host_exit, HostExit::Continue);
}

#[test]
fn every_section_is_read() {
    let place = place();
    let text = "[budget]\ndaily_usd = 5\nrun_usd = 0.25\n[run]\non_host_exit = \"cancel\"\n[orchestrate]\njudges = [\"consensus\"]\n";
    let config = place.home(&format!("{text}{LOCAL}")).load();
    assert_eq!(config.budget, budget(Some(5.0), 0.25, 0.25));
    assert_eq!(config.run.on_host_exit, HostExit::Cancel);
    assert_eq!(config.orchestrate.judges, [JudgeKind::Consensus]);
    assert_eq!(config.providers["local"].kind(), "command");
    assert_eq!(config.files, [place.home.config_file()]);
}

#[test]
fn every_mistake_is_told_with_file_line_and_column() {
    let check = |text: &str, want: &str| {
        let place = place();
        let fault = place.home(text).fault();
        let want = format!("{}{want}", place.home.config_file().display());
        assert!(fault.starts_with(&want), "{text}\n{fault}\n{want}");
    };
    check("[provider.a]\n", ":1:2: unknown key `provider` in the file; did you mean `providers`?");
    check("budget = 3\n", ":1:10: [budget]: invalid type");
    check("[budget]\ndaily = 3\n", ":2:1: unknown key `daily` in [budget]");
    check(
        "[budget]\ndaily_used = 3\n",
        ":2:1: unknown key `daily_used` in [budget]; did you mean `daily_usd`?",
    );
    check("[budget]\nrun_usd = -1\n", ":2:11: [budget]: an amount in dollars must be");
    check(
        "[run]\non_host_exit = \"cancle\"\n",
        ":2:16: [run]: `cancle` is not a known value; did you mean `cancel`?",
    );
    check("[orchestrate]\nqorum = 1\n", ":2:1: unknown key `qorum` in [orchestrate]; did you mean `quorum`?");
    check(
        "[orchestrate]\njudges = [\"llm_judge\"]\n",
        ":2:11: [orchestrate]: `llm_judge` is not a known value; did you mean `llm-judge`?",
    );
    check("providers = 1\n", ":1:13: `providers` must be a table of tables");
    check(
        "[providers.a]\nkind = \"opnai\"\n",
        ":2:8: [providers.a]: `opnai` is not a known value; did you mean `openai`?",
    );
    check("[providers.a]\nmodel = \"m\"\n", ":1:1: [providers.a]: missing field `kind`");
    check(
        "[providers.a]\nkind = \"command\"\ncomand = [\"cat\"]\n",
        ":3:1: unknown key `comand` in [providers.a]; did you mean `command`?",
    );
    check("[providers.a]\nkind = \"command\"\ncommand = []\n", ":3:1: `command` of provider `a`");
    check(&LOCAL.replace("local", "\"a b\""), ":1:12: `a b` cannot be a provider's name");
    check("[providers.a\n", ":1:13: ");
    check("[orchestrate.roles.a]\nsample = 2\n", ":2:1: unknown key `sample` in [orchestrate.roles.a]");
    check("[orchestrate.roles.a]\nsamples = 9\n", ":2:11: [orchestrate.roles.a]: `samples` is 9");
    check(
        "[providers.a]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"https://h/v1\"\napi_key = \"sk\"\n",
        ":5:1: unknown key `api_key` in [providers.a]; a key never stands in a file",
    );
    check("[presence]\ntaem = \"red\"\n", ":2:1: unknown key `taem` in [presence]; did you mean `team`?");
    check("[presence]\nteam = \" \"\n", ":2:8: [presence]: a name must not be empty");
    check("[bus]\nbackend = \"nats\"\n", ":2:11: [bus]: there is no bus backend `nats` in this version");
    check("[bus]\nretention_days = 0\n", ":2:18: [bus]: invalid value");
}

#[test]
fn a_project_defines_providers_only_after_trust_and_again_after_a_change() {
    let place = place();
    place.home("[providers.own]\nkind = \"command\"\ncommand = [\"cat\"]\n").project(LOCAL);
    let config = place.load();
    assert_eq!(config.providers.keys().collect::<Vec<_>>(), ["own"]);
    let untrusted = config.untrusted.unwrap();
    assert_eq!(
        (untrusted.state, untrusted.providers.as_slice()),
        (TrustState::Unknown, &["local".to_owned()][..])
    );
    assert_eq!(untrusted.sections, ["providers"]);
    assert!(untrusted.to_string().contains("cyberine trust"), "{untrusted}");

    let config = place.trust().load();
    assert_eq!(config.providers.keys().collect::<Vec<_>>(), ["local", "own"]);
    assert_eq!((config.untrusted, config.files.len()), (None, 2));

    place.project(&LOCAL.replace("cat", "sh"));
    assert_eq!(place.load().untrusted.unwrap().state, TrustState::Changed);
}

#[test]
fn a_project_may_tighten_a_budget_and_never_loosen_it_whether_trusted_or_not() {
    let check = |home: &str, project: &str, daily: Option<f64>, run: f64, hold: f64| {
        let place = place();
        let config = place.home(home).project(&format!("{project}\n{LOCAL}")).load();
        let own = place.home(home).project("").load().budget;
        place.project(&format!("{project}\n{LOCAL}"));
        let own = (own.daily_usd, own.run_usd);
        let want = Budget { own_daily_usd: own.0, own_run_usd: own.1, ..budget(daily, run, hold) };
        assert_eq!(config.budget, want, "{home} {project}");
        assert_eq!(place.trust().load().budget, want);
    };
    check("[budget]\ndaily_usd = 2", "[budget]\ndaily_usd = 9\nrun_usd = 0.1", Some(2.0), 0.1, 1.0);
    check("[budget]\ndaily_usd = 5", "[budget]\nrun_usd = 3", Some(5.0), 1.0, 3.0);
    check("[budget]\ndaily_usd = 2", "[budget]\ndaily_usd = 1\nrun_usd = 3", Some(1.0), 1.0, 1.0);
    check("[budget]\ndaily_usd = 0.5\nrun_usd = 0.5", "[budget]\nrun_usd = 100", Some(0.5), 0.5, 0.5);
    check("", "[budget]\ndaily_usd = 1", Some(1.0), 1.0, 1.0);
}

#[test]
fn what_does_not_go_with_the_cap_of_the_day_is_told_with_whose_it_is() {
    let check = |home: &str, project: &str| {
        let budget = place().home(home).project(project).load().budget;
        budget.check().err().map(|error| error.to_string())
    };
    let half = "[budget]\ndaily_usd = 0.5\nrun_usd = 0.5\n";
    assert_eq!(check(half, "[budget]\nrun_usd = 100\n"), None, "the home's value holds");
    assert_eq!(check("", "[budget]\ndaily_usd = 0.5\n"), None, "the run is refused, and told which cap");
    let said = check("[budget]\ndaily_usd = 0.5\n", "[budget]\ndaily_usd = 0.1\n").unwrap();
    assert!(said.starts_with("`[budget] run_usd` of the home's config.toml is $1.00"), "{said}");
    assert!(said.contains("`daily_usd` is $0.50"), "{said}");
    let said = check(half, "[budget]\nrun_usd = 0.001\n").unwrap();
    assert!(said.starts_with("`[budget] run_usd` of the project's cyberine.toml is $0.001"), "{said}");
}

#[test]
fn providers_and_callers_have_caps_of_their_own_which_a_project_may_lower_and_add_to() {
    let place = place();
    let home = "[budget.providers]\na = 2\nb = 3\n[budget.callers]\n\"host@1\" = 4\n";
    let project = "[budget.providers]\na = 9\nb = 1\nc = 5\n[budget.callers]\nhost = 6\n";
    let budget = place.home(home).project(project).load().budget;
    let caps = |caps: &BTreeMap<String, Usd>| -> Vec<(String, f64)> {
        caps.iter().map(|(name, cap)| (name.clone(), cap.dollars())).collect()
    };
    let named = |all: &[(&str, f64)]| -> Vec<(String, f64)> {
        all.iter().map(|(name, cap)| ((*name).to_owned(), *cap)).collect()
    };
    assert_eq!(caps(&budget.providers), named(&[("a", 2.0), ("b", 1.0), ("c", 5.0)]));
    assert_eq!(caps(&budget.callers), named(&[("host", 6.0), ("host@1", 4.0)]));
    assert_eq!(caps(&budget.own.providers), named(&[("a", 2.0), ("b", 3.0)]));
    assert_eq!(caps(&budget.own.callers), named(&[("host@1", 4.0)]));
    assert_eq!(place.load().untrusted, None, "a budget alone needs no trust");
}

#[test]
fn every_section_of_a_project_but_its_budget_waits_for_trust_and_then_replaces_the_one_of_the_home() {
    let home = "[orchestrate]\nquorum = 1\njudge_always = true\n[run]\non_host_exit = \"cancel\"\n";
    let sections = |text: &str| {
        let place = place();
        let before = place.load();
        assert_eq!(before.untrusted, None);
        let config = place.home(home).project(text).load();
        assert_eq!((config.orchestrate.quorum, config.run.on_host_exit), (1, HostExit::Cancel), "{text}");
        assert_eq!(config.files, [place.home.config_file()], "{text}");
        config.untrusted.map(|untrusted| untrusted.sections)
    };
    assert_eq!(sections("[orchestrate]\nquorum = 3\n").unwrap(), ["orchestrate"]);
    assert_eq!(sections("[orchestrate]\n").unwrap(), ["orchestrate"]);
    assert_eq!(sections("[run]\non_host_exit = \"continue\"\n[budget]\n").unwrap(), ["run"]);
    assert_eq!(sections("[providers]\n").unwrap(), ["providers"]);

    let place = place();
    place.home(home).project("[orchestrate]\nquorum = 3\n").trust();
    let config = place.load();
    assert_eq!((config.orchestrate.quorum, config.orchestrate.judge_always), (3, false));
    assert_eq!(config.untrusted, None);
}

#[test]
fn a_project_with_nothing_but_a_budget_needs_no_trust() {
    for text in ["", "# nothing\n", "[budget]\ndaily_usd = 1\n"] {
        let place = place();
        let config = place.project(text).load();
        assert_eq!((config.untrusted, config.files.len()), (None, 1), "{text}");
        let source = ConfigSource::read(&place.project.config_file()).unwrap().unwrap();
        assert!(!offer_of(&source).unwrap().needs_trust, "{text}");
    }
}

#[test]
fn an_offer_tells_every_key_of_a_file_as_it_is_spelled() {
    let text = format!("[orchestrate]\njudges = [\n\"consensus\"]\nquorum = 0x3\n[run]\n{LOCAL}");
    let offer = offer_of(&ConfigSource::of("c.toml", text)).unwrap();
    let said: Vec<String> = offer
        .settings
        .iter()
        .map(|setting| format!("[{}] {} = {}", setting.section, setting.key, setting.value))
        .collect();
    assert_eq!(said, ["[orchestrate] judges = [\n\"consensus\"]", "[orchestrate] quorum = 0x3"]);
    assert_eq!(offer.providers.keys().collect::<Vec<_>>(), ["local"]);
    assert!(offer.needs_trust);

    let base = "kind = \"openai\"\nbase_url = \"https://h/v1\"\nmodel = \"m\"\nmax_tokens = 7\n";
    for prices in [
        "[providers.a.prices]\ninput_usd_per_mtok = 0\noutput_usd_per_mtok = 1e-3\n",
        "prices = { input_usd_per_mtok = 0, output_usd_per_mtok = 1e-3 }\n",
        "prices.input_usd_per_mtok = 0\nprices.output_usd_per_mtok = 1e-3\n",
    ] {
        let source = ConfigSource::of("c.toml", format!("[providers.a]\n{base}{prices}"));
        let said: Vec<String> = offer_of(&source)
            .unwrap()
            .settings
            .iter()
            .map(|setting| format!("[{}] {} = {}", setting.section, setting.key, setting.value))
            .collect();
        let want = [
            "[providers.a] max_tokens = 7",
            "[providers.a] prices.input_usd_per_mtok = 0",
            "[providers.a] prices.output_usd_per_mtok = 1e-3",
        ];
        assert_eq!(said, want, "{prices}");
    }
}

#[test]
fn the_token_of_this_server_is_handed_to_nobody() {
    let check = |text: &str, want: &str| {
        let place = place();
        let fault = place.home(text).fault();
        assert!(fault.contains(want) && fault.contains("`CYBERINE_MCP_AUTH_TOKEN`"), "{fault}");
    };
    let named = "[\"PAGER\", \"CYBERINE_MCP_AUTH_TOKEN\"]";
    check(&format!("{LOCAL}env = {named}\n"), ":4:1: `env` of provider `local`");
    check(&format!("[providers.a]\nkind = \"claude-cli\"\nenv = {named}\n"), ":3:1: `env` of provider `a`");
    check(
        "[providers.a]\nkind = \"openai\"\nbase_url = \"https://h/v1\"\nmodel = \"m\"\napi_key_env = \"CYBERINE_MCP_AUTH_TOKEN\"\n",
        ":5:1: `api_key_env` of provider `a`",
    );
}

#[test]
fn amounts_that_nobody_means_are_refused() {
    let check = |text: &str, want: &str| {
        let place = place();
        let fault = place.home(text).fault();
        assert!(fault.contains(want), "{text}: {fault}");
    };
    check("[budget]\ndaily_usd = 1e300\n", ":2:1: [budget]: `daily_usd` is more than $1000000.00");
    check("[budget]\nrun_usd = 1000001\n", ":2:1: [budget]: `run_usd` is more than $1000000.00");
    check("[budget.providers]\na = 1e7\n", ":1:9: [budget.providers]: `a` is more than $1000000.00");
    check("[budget.callers]\n\" \" = 1\n", "[budget.callers]: a cap needs the name of whom it is on");
    check(
        "[budget.callers]\nx = -1\n",
        ":2:5: [budget.callers]: an amount in dollars must be a number that is zero or more",
    );
    let priced = "[providers.a]\nkind = \"openai\"\nbase_url = \"https://h/v1\"\nmodel = \"m\"\n";
    for key in ["input", "output", "cached_read", "cache_write"] {
        let prices = ["input", "output", "cached_read", "cache_write"]
            .map(|name| format!("{name}_usd_per_mtok = {}", if name == key { "1e300" } else { "1" }))
            .join(", ");
        check(
            &format!("{priced}prices = {{ {prices} }}\n"),
            &format!(":5:1: `prices.{key}_usd_per_mtok` is more"),
        );
    }
    place().home("[budget]\ndaily_usd = 1e6\nrun_usd = 1e6\n").load();
}

#[test]
fn under_a_cap_a_run_holds_a_cent_at_least_and_the_cap_at_most() {
    let check = |daily: Option<f64>, run: f64, fits: bool| {
        let checked = budget(daily, run, run).check();
        assert_eq!(checked.is_ok(), fits, "{daily:?} {run}");
        if let Err(error) = checked {
            let text = error.to_string();
            assert!(text.contains("run_usd") && text.contains("daily_usd"), "{text}");
        }
    };
    for run in [0.0, 1e-7, 0.009_999] {
        check(Some(5.0), run, false);
        check(Some(0.0), run, false);
        check(None, run, true);
    }
    check(Some(5.0), 0.01, true);
    check(Some(5.0), 5.0, true);
    check(Some(5.0), 5.01, false);
    // A cap of nothing refuses what can cost money by itself, and the rest is not held.
    check(Some(0.0), 1.0, true);
}

#[test]
fn a_project_file_that_others_can_write_is_refused_even_where_it_is_trusted() {
    let place = place();
    place.project(LOCAL).trust();
    std::fs::set_permissions(place.project.config_file(), PermissionsExt::from_mode(0o660)).unwrap();
    let fault = place.fault();
    assert!(fault.contains("can be written by others (mode 0660); run `chmod go-w"), "{fault}");
    assert!(place.root.path().exists());
}

#[test]
fn a_project_says_who_its_server_is_key_by_key_and_only_once_trusted() {
    let place = place();
    place.home("[presence]\nteam = \"red\"\nname = \"me\"\n[bus]\nbackend = \"none\"\nretention_days = 7\n");
    place.project("[presence]\nteam = \"blue\"\nrole = \"reviewer\"\n[bus]\nbackend = \"file\"\n");
    let said = |config: &Config| {
        let PresenceConfig { team, role, name } = config.presence.clone();
        [team, role, name].map(|label| label.map(String::from))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(said(&place.load()), [some("red"), None, some("me")]);
    assert_eq!(place.load().bus.backend, Some(BusBackend::None));
    let config = place.trust().load();
    assert_eq!(said(&config), [some("blue"), some("reviewer"), some("me")]);
    assert_eq!(config.bus.backend, Some(BusBackend::File));
    assert_eq!(config.bus.retention_days.map(std::num::NonZeroU32::get), Some(7));
}
