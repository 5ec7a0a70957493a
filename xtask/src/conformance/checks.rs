//! What the suite wrote of one scenario, judged. Its exit code is not asked: it forgives warnings, and
//! scenarios that checked nothing.

use std::path::Path;

use serde_json::Value;

/// Holds of every message and says nothing of the scenario.
const ALWAYS: &str = "wire-schema-valid";

/// One scenario, judged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scenario {
    pub(super) name: String,
    /// Checks that succeeded, the one of every scenario included.
    pub(super) passed: usize,
    /// Why it is not good, if it is not.
    pub(super) faults: Vec<String>,
}

/// What a scenario is judged by beside its own checks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Terms {
    /// Whether checks may be skipped.
    pub(super) may_skip: bool,
    /// A check that has to succeed.
    pub(super) needed: Option<&'static str>,
}

/// The scenario a directory of results belongs to: `[server-]NAME-2026-12-01T03-37-19-054Z`.
pub(super) fn name_of(directory: &str) -> Option<&str> {
    const STAMP: usize = "-2026-12-01T03-37-19-054Z".len();
    let (name, stamp) = directory.split_at_checked(directory.len().checked_sub(STAMP)?)?;
    let stamped = stamp.starts_with("-20") && stamp.ends_with('Z') && stamp.as_bytes().get(11) == Some(&b'T');
    stamped.then_some(name)
}

/// Reads and judges the results in `directory`.
pub(super) fn judge(name: &str, directory: &Path, terms: Terms) -> Scenario {
    match std::fs::read_to_string(directory.join("checks.json")) {
        Ok(text) => judge_text(name, &text, terms),
        Err(_) => fault(name, "the suite gave up on it: there is no checks.json".to_owned()),
    }
}

/// A scenario that has no result.
pub(super) fn fault(name: &str, why: String) -> Scenario {
    Scenario { name: name.to_owned(), passed: 0, faults: vec![why] }
}

fn judge_text(name: &str, text: &str, terms: Terms) -> Scenario {
    let checks: Vec<Value> = match serde_json::from_str(text) {
        Ok(checks) => checks,
        Err(error) => return fault(name, format!("checks.json: {error}")),
    };
    let (mut passed, mut meant, mut faults) = (0, 0, Vec::new());
    for check in &checks {
        let id = check["id"].as_str().unwrap_or("?");
        match check["status"].as_str() {
            Some("SUCCESS") => {
                passed += 1;
                meant += usize::from(id != ALWAYS);
            }
            Some("INFO") => {}
            Some("SKIPPED") if terms.may_skip => {}
            status => {
                let why = check["errorMessage"].as_str().or(check["description"].as_str());
                faults.push(format!("{} {id}: {}", status.unwrap_or("?"), why.unwrap_or("no reason given")));
            }
        }
    }
    let succeeded = |id| checks.iter().any(|check| check["id"] == id && check["status"] == "SUCCESS");
    if let Some(needed) = terms.needed.filter(|id| !succeeded(*id)) {
        faults.push(format!("{needed} did not succeed, if it was tried at all"));
    }
    if meant == 0 && faults.is_empty() {
        faults.push(format!("it checked nothing: none of {} checks succeeded but {ALWAYS}", checks.len()));
    }
    Scenario { name: name.to_owned(), passed, faults }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Terms = Terms { may_skip: false, needed: None };
    const MILD: Terms = Terms { may_skip: true, needed: None };

    /// The verdict on hand-written results: `(id, status)`.
    fn verdict(checks: &[(&str, &str)], terms: Terms) -> Scenario {
        let checks: Vec<Value> = checks
            .iter()
            .map(|(id, status)| serde_json::json!({"id": id, "status": status, "description": "it is so"}))
            .collect();
        judge_text("s", &Value::from(checks).to_string(), terms)
    }

    #[test]
    fn a_success_of_its_own_is_what_a_scenario_needs() {
        let good = verdict(&[("a", "SUCCESS"), ("b", "INFO"), (ALWAYS, "SUCCESS")], STRICT);
        assert_eq!((good.passed, good.faults.len()), (2, 0));
        for nothing in [&[][..], &[(ALWAYS, "SUCCESS")], &[("a", "INFO"), (ALWAYS, "SUCCESS")]] {
            assert_eq!(verdict(nothing, STRICT).faults.len(), 1, "{nothing:?} checks nothing");
        }
        let skipped = verdict(&[("a", "SKIPPED"), (ALWAYS, "SUCCESS")], MILD);
        assert!(skipped.faults[0].starts_with("it checked nothing"), "{skipped:?}");
    }

    #[test]
    fn a_failure_a_warning_a_skip_and_what_nobody_knows_are_faults() {
        for status in ["FAILURE", "WARNING", "SKIPPED", "success", "PERHAPS"] {
            let bad = verdict(&[("a", "SUCCESS"), ("b", status)], STRICT);
            assert_eq!(bad.faults, [format!("{status} b: it is so")]);
        }
        assert!(verdict(&[("a", "SUCCESS"), ("b", "SKIPPED")], MILD).faults.is_empty());
        assert_eq!(verdict(&[("a", "SUCCESS"), ("b", "WARNING")], MILD).faults.len(), 1);
        let nameless =
            judge_text("s", r#"[{"id":"a","status":"SUCCESS"},{"errorMessage":"no status"}]"#, MILD);
        assert_eq!(nameless.faults, ["? ?: no status"]);
    }

    #[test]
    fn a_check_that_is_needed_has_to_succeed() {
        let terms = Terms { may_skip: false, needed: Some("b") };
        assert!(verdict(&[("a", "SUCCESS"), ("b", "SUCCESS")], terms).faults.is_empty());
        assert_eq!(verdict(&[("a", "SUCCESS"), ("b", "INFO")], terms).faults.len(), 1);
        assert_eq!(verdict(&[("a", "SUCCESS")], terms).faults.len(), 1);
    }

    #[test]
    fn results_that_cannot_be_read_are_a_fault() {
        for text in ["", "{}", "[", "null"] {
            assert_eq!(judge_text("s", text, MILD).faults.len(), 1, "{text:?}");
        }
        assert_eq!(judge("s", Path::new("/nowhere"), MILD).faults.len(), 1);
    }

    #[test]
    fn a_directory_says_whose_results_it_holds() {
        assert_eq!(name_of("server-ping-2026-12-01T03-37-19-054Z"), Some("server-ping"));
        assert_eq!(name_of("json-schema-2020-12-2026-12-01T03-37-19-054Z"), Some("json-schema-2020-12"));
        assert_eq!(name_of("node_modules"), None);
        assert_eq!(name_of("json-schema-2020-12-and-much-that-is-no-time"), None);
    }
}
