use super::*;

fn providers(names: &[&str]) -> BTreeMap<String, ProviderConfig> {
    let config = |name: &str| {
        let text = format!(r#"{{"kind":"command","command":["{name}"]}}"#);
        serde_json::from_str(&text).unwrap()
    };
    names.iter().map(|name| ((*name).to_owned(), config(name))).collect()
}

fn names(planned: &[Planned]) -> Vec<&str> {
    planned.iter().map(|one| one.name.as_str()).collect()
}

#[test]
fn by_default_every_provider_is_asked_and_may_judge() {
    let plan = plan(&OrchestrateConfig::default(), &providers(&["b", "a"]), 7).unwrap();
    assert_eq!((names(&plan.candidates), names(&plan.judge_providers)), (vec!["a", "b"], vec!["a", "b"]));
    assert_eq!((plan.quorum, plan.seed), (2, 7));
    assert_eq!(Plan::from_spec(&plan.to_spec().unwrap()).unwrap(), plan);
}

#[test]
fn an_approval_is_frozen_and_a_plan_from_before_there_were_any_has_none() {
    use crate::config::Approval;

    let config = OrchestrateConfig { approval: Approval::Required, ..OrchestrateConfig::default() };
    let plan = plan(&config, &providers(&["a"]), 7).unwrap();
    assert_eq!(plan.approval, Some(Gate { seconds: 3_600, on_expiry: Choice::Reject }));
    let mut spec = plan.to_spec().unwrap();
    assert_eq!(Plan::from_spec(&spec).unwrap(), plan);
    assert_eq!(spec["approval"], serde_json::json!({ "seconds": 3600, "onExpiry": "reject" }));
    spec.as_object_mut().unwrap().remove("approval");
    assert_eq!(Plan::from_spec(&spec).unwrap(), Plan { approval: None, ..plan });
}

fn role(samples: usize) -> RoleConfig {
    RoleConfig { persona: Some("You doubt.".into()), samples, fallback_model: None }
}

/// Providers that can be asked for another model.
fn services(names: &[&str]) -> BTreeMap<String, ProviderConfig> {
    let text = r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"scripted/m"}"#;
    names.iter().map(|name| ((*name).to_owned(), serde_json::from_str(text).unwrap())).collect()
}

#[test]
fn a_provider_is_a_candidate_for_each_of_its_samples_and_judges_once_without_its_persona() {
    let config = OrchestrateConfig {
        roles: BTreeMap::from([(
            "b".to_owned(),
            RoleConfig { fallback_model: Some("small".into()), ..role(3) },
        )]),
        ..OrchestrateConfig::default()
    };
    let plan = plan(&config, &services(&["a", "b"]), 7).unwrap();
    assert_eq!(names(&plan.candidates), ["a", "b", "b#2", "b#3"]);
    assert_eq!(names(&plan.judge_providers), ["a", "b"]);
    let of: Vec<_> = plan.candidates.iter().map(Planned::provider_name).collect();
    assert_eq!(of, ["a", "b", "b", "b"]);
    let persona = |one: &Planned| one.persona.is_some() && one.fallback_model.is_some();
    assert_eq!(plan.candidates.iter().map(persona).collect::<Vec<_>>(), [false, true, true, true]);
    assert!(!plan.judge_providers.iter().any(persona));
    assert_eq!(Plan::from_spec(&plan.to_spec().unwrap()).unwrap(), plan);
    let fallback = plan.candidates[1].fallback().unwrap();
    assert_eq!(fallback.info("b").model.as_deref(), Some("small"));
    assert_eq!(plan.candidates[0].fallback(), None);
}

#[test]
fn a_fallback_model_that_costs_makes_the_plan_cost() {
    let config = |model: &str| OrchestrateConfig {
        roles: BTreeMap::from([(
            "a".to_owned(),
            RoleConfig { fallback_model: Some(model.to_owned()), ..RoleConfig::default() },
        )]),
        ..OrchestrateConfig::default()
    };
    let mut metered = services(&["a"]);
    if let Some(ProviderConfig::Openai(config)) = metered.get_mut("a") {
        config.base_url = Some("https://h/v1".into());
    }
    assert!(plan(&config("m"), &services(&["a"]), 0).unwrap().costs_nothing());
    assert!(!plan(&config("m"), &metered, 0).unwrap().costs_nothing());
}

#[test]
fn a_plan_from_before_there_were_roles_is_read() {
    let plan = plan(&OrchestrateConfig::default(), &providers(&["a"]), 7).unwrap();
    let spec = plan.to_spec().unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&spec["candidates"][0]), ["name", "provider"]);
    assert!(!keys(&spec).contains(&"first".to_owned()));
    assert_eq!(Plan::from_spec(&spec).unwrap(), plan);
    let mut old = spec;
    old.as_object_mut().unwrap().remove("retries");
    assert_eq!(Plan::from_spec(&old).unwrap(), plan);
}

#[test]
fn rounds_are_frozen_and_a_plan_from_before_there_were_any_has_one() {
    let made = |rounds: usize, names: &[&str], judges: Vec<JudgeKind>| {
        let config = OrchestrateConfig { rounds, judges, ..OrchestrateConfig::default() };
        plan(&config, &providers(names), 7).unwrap()
    };
    let judges = vec![JudgeKind::Consensus];
    let one = made(1, &["a", "b"], judges.clone());
    let spec = one.to_spec().unwrap();
    assert!(spec.get("rounds").is_none(), "an older version reads it");
    assert_eq!((Plan::from_spec(&spec).unwrap().rounds, &one.most_rounds()), (1, &1));
    let three = made(3, &["a", "b"], judges.clone());
    assert_eq!(three.to_spec().unwrap()["rounds"], 3);
    assert_eq!(Plan::from_spec(&three.to_spec().unwrap()).unwrap(), three);
    assert_eq!(three.most_rounds(), 3);
    assert_eq!(made(3, &["a"], judges).most_rounds(), 1, "there is nobody to agree with");
    assert_eq!(made(3, &["a", "b"], vec![]).most_rounds(), 1, "there is nobody to say so");
}

#[test]
fn a_role_of_nobody_and_fewer_answers_than_are_judged_are_refused() {
    let refused =
        |config: OrchestrateConfig| plan(&config, &providers(&["a", "b", "c"]), 0).unwrap_err().to_string();
    let roles = BTreeMap::from([("d".to_owned(), role(2))]);
    assert_eq!(
        refused(OrchestrateConfig { roles, ..OrchestrateConfig::default() }),
        "`[orchestrate] roles` names the provider `d`, which is not configured; known are: a, b, c"
    );
    assert_eq!(
        refused(OrchestrateConfig { first: Some(1), ..OrchestrateConfig::default() }),
        "`[orchestrate] first` is 1 and `quorum` is 2: so few answers are never judged; lower `quorum`, or raise `first`"
    );
    let other = RoleConfig { fallback_model: Some("m".into()), ..RoleConfig::default() };
    let roles = BTreeMap::from([("a".to_owned(), other)]);
    assert_eq!(
        refused(OrchestrateConfig { roles, ..OrchestrateConfig::default() }),
        "`[orchestrate.roles.a] fallback_model` cannot be asked for: what kind `command` starts chooses its model itself; leave it out, or configure a second provider"
    );
    let one = OrchestrateConfig { first: Some(1), quorum: 1, ..OrchestrateConfig::default() };
    assert_eq!(plan(&one, &providers(&["a", "b"]), 0).unwrap().first, Some(1));
}

#[test]
fn the_quorum_is_never_more_than_the_candidates_nor_less_than_one() {
    for (quorum, count, expected) in [(2, 1, 1), (5, 3, 3), (0, 3, 1), (2, 0, 1)] {
        let config = OrchestrateConfig { quorum, ..OrchestrateConfig::default() };
        let plan = plan(&config, &providers(&["a", "b", "c"][..count]), 0).unwrap();
        assert_eq!(plan.quorum, expected, "{quorum} of {count}");
    }
}

#[test]
fn a_plan_costs_nothing_only_where_nobody_it_may_ask_can_cost() {
    let all: BTreeMap<String, ProviderConfig> = [
        ("free", r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"m"}"#),
        ("scripted", r#"{"kind":"openai","base_url":"http://127.0.0.1:1/v1","model":"scripted/a"}"#),
        ("metered", r#"{"kind":"command","command":["x"],"billing":"metered"}"#),
        ("subscription", r#"{"kind":"claude-cli"}"#),
    ]
    .map(|(name, text)| (name.to_owned(), serde_json::from_str(text).unwrap()))
    .into();
    let check = |candidates: &[&str], judges: &[&str], want: bool| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let config = OrchestrateConfig {
            candidates: owned(candidates),
            judge_providers: owned(judges),
            ..OrchestrateConfig::default()
        };
        assert_eq!(plan(&config, &all, 0).unwrap().costs_nothing(), want, "{candidates:?} {judges:?}");
    };
    check(&["free", "scripted"], &[], true);
    check(&["free", "metered"], &[], false);
    check(&["free"], &["metered"], false);
    check(&["free", "subscription"], &["free"], false);
}

#[test]
fn names_are_taken_once_in_their_order_and_unknown_ones_refused() {
    let mut config = OrchestrateConfig {
        candidates: vec!["b".into(), "a".into(), "b".into()],
        ..OrchestrateConfig::default()
    };
    config.judge_providers = vec!["c".into()];
    let known = providers(&["a", "b", "c"]);
    let made = plan(&config, &known, 0).unwrap();
    assert_eq!((names(&made.candidates), names(&made.judge_providers)), (vec!["b", "a"], vec!["c"]));
    config.judge_providers = vec!["d".into()];
    let error = plan(&config, &known, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`[orchestrate] judge_providers` names the provider `d`, which is not configured; known are: a, b, c"
    );
}
