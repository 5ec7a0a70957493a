use super::*;
use crate::bounded::MAX_RESULT;
use cyberine_run_store::{CriterionScore, RunState, VerdictOutcome};
use cyberine_types::{Billing, RunId, Timestamp, Usage};

fn candidate(id: &str, output: &str) -> Candidate {
    Candidate {
        id: id.into(),
        provider: id.into(),
        kind: "command".into(),
        model: Some("m".into()),
        fell_back: None,
        kept_from: None,
        billing: Billing::Free,
        state: RunState::Done,
        output: output.into(),
        usage: Usage::default(),
        duration_ms: Some(5),
        error: None,
    }
}

fn run(task: &str, candidates: Vec<Candidate>) -> Run {
    let winner = candidates.first().map(|candidate| candidate.id.clone());
    let verdict = Verdict {
        kind: "consensus".into(),
        outcome: VerdictOutcome::Majority,
        winner,
        rationale: "r".repeat(4_000),
        attacks: Vec::new(),
        votes: candidates
            .iter()
            .map(|one| Vote {
                voter: "v".into(),
                candidate: Some(one.id.clone()),
                score: None,
                criteria: Vec::new(),
                reason: Some("x".repeat(300)),
            })
            .collect(),
        usage: Usage::default(),
    };
    let step = Step {
        id: "dispatch".into(),
        name: "Dispatch".into(),
        state: RunState::Done,
        candidates,
        judge_calls: Vec::new(),
        verdicts: vec![verdict.clone()],
        verdict: Some(verdict),
    };
    Run {
        run_id: RunId::random(),
        workflow_name: "mcp-orchestrate".into(),
        state: RunState::Done,
        detail: "d".into(),
        reason: None,
        task: task.into(),
        cwd: "/p".into(),
        requested_by: "cli".into(),
        engine_pid: None,
        started_at: Timestamp::from_unix_ms(0),
        updated_at: Timestamp::from_unix_ms(0),
        steps: vec![step],
        usage: Usage::default(),
        reserved: cyberine_types::Usd::ZERO,
        shares: Vec::new(),
        processes: None,
        cancel_requested_by: None,
        awaiting: None,
        gate: None,
        decisions: Vec::new(),
        steers: Vec::new(),
        spec: Value::Null,
        next_seq: 9,
    }
}

#[test]
fn the_bounded_view_is_bounded_whatever_a_run_holds() {
    let cases = [
        ("t".repeat(1 << 20), 3, "a".repeat(4 << 20)),
        ("\u{1}".repeat(1 << 16), 200, "\u{1}".repeat(9_000)),
        ("ß".repeat(9_000), 64, "\"\\\n".repeat(5_000)),
    ];
    for (task, count, output) in cases {
        let candidates =
            (0..count).map(|at| candidate(&format!("{at}{}", "n".repeat(60)), &output)).collect();
        let view = bounded(&run(&task, candidates));
        assert!(size(&view) <= MAX_RESULT, "{}", size(&view));
        assert_eq!(view["truncated"], true);
        assert!(view["resource"].as_str().unwrap().starts_with("cyberine://runs/"));
    }
}

#[test]
fn of_many_long_rounds_the_last_is_shown_with_its_winner() {
    for output in ["a".repeat(9_000), "\u{1}".repeat(9_000)] {
        let candidates = (0..16).map(|at| candidate(&format!("{at}{}", "n".repeat(60)), &output)).collect();
        let mut run = run("task", candidates);
        run.steps = vec![run.steps[0].clone(); 5];
        run.steps[4].id = "round-5".into();
        run.steps[..4].iter_mut().for_each(|step| step.verdict = None);
        let view = bounded(&run);
        assert!(size(&view) <= MAX_RESULT && view["truncated"] == true, "{}", size(&view));
        let last = view["steps"].as_array().unwrap().last().unwrap();
        assert!(last["id"] == "round-5" && last["winnerOutput"].is_string(), "{last}");
    }
}

#[test]
fn a_small_run_is_shown_whole_and_without_a_mark() {
    let mut small = run("task", vec![candidate("a", "answer"), candidate("b", "other")]);
    small.steps[0].verdict.as_mut().unwrap().rationale = "short".into();
    let view = bounded(&small);
    assert_eq!(view.get("truncated"), None);
    assert_eq!(view["steps"][0]["winnerOutput"], "answer");
    assert_eq!(view["steps"][0]["candidates"][1]["outputPreview"], "other");
    assert_eq!(view["steps"][0]["verdict"]["winner"], "a");
}

#[test]
fn the_whole_view_names_files_beyond_four_mebibytes() {
    let big = run(
        "task",
        vec![candidate("a", &"x".repeat(3 << 20)), candidate("b", &"y".repeat(2 << 20)), candidate("c", "z")],
    );
    let view = run_view(&big);
    assert!(size(&view) <= MAX_WHOLE);
    let candidates = &view["steps"][0]["candidates"];
    assert!(candidates[0]["outputIn"].as_str().unwrap().starts_with(".local/runs/"));
    assert_eq!(candidates[2]["output"], "z");
    assert_eq!(candidates[2].get("outputIn"), None);

    let small = run("task", vec![candidate("a", &"x".repeat(1 << 20))]);
    let view = run_view(&small);
    assert_eq!(view["steps"][0]["candidates"][0]["output"].as_str().unwrap().len(), 1 << 20);
    assert_eq!(view.get("truncated"), None);
}

#[test]
fn scripted_answers_are_labelled() {
    let mut scripted = run("task", vec![candidate("a", "x")]);
    scripted.steps[0].candidates[0].billing = Billing::Scripted;
    let view = bounded(&scripted);
    assert_eq!(view["label"], SCRIPTED_LABEL);
    assert_eq!(view["detail"], "d; scripted answers, no model was called");
}

#[test]
fn the_scores_by_criterion_are_shown_and_cut_where_they_are_too_many() {
    let scored = |count: usize| {
        let mut run = run("t", (0..count).map(|at| candidate(&format!("c{at}"), "x")).collect());
        let name = |at: usize| format!("{at:x<40}");
        let criteria = (0..12).map(|at| CriterionScore { name: name(at), weight: 100, score: 7.25 });
        let criteria: Vec<_> = criteria.collect();
        let verdict = run.steps[0].verdict.as_mut().unwrap();
        verdict.votes.iter_mut().for_each(|vote| vote.criteria.clone_from(&criteria));
        bounded(&run)
    };
    let few = scored(2);
    let shown = few["steps"][0]["verdict"]["votes"][1]["criteria"].as_array().unwrap();
    assert_eq!((shown.len(), &shown[0]["weight"], &shown[0]["score"]), (12, &json!(100), &json!(7.25)));
    let many = scored(60);
    assert!(size(&many) <= MAX_RESULT && many["truncated"] == true, "{}", size(&many));
    assert!(
        many["steps"][0]["verdict"]["votes"][0]["criteria"].as_array().is_some_and(|all| !all.is_empty())
    );
}
