//! The legs: what is run against what, and what is left out of it and why.

use super::checks::Terms;

/// One run of the suite, or of some scenarios of it, against one subject.
pub(super) struct Leg {
    pub(super) name: &'static str,
    pub(super) subject: Subject,
    pub(super) what: What,
    /// How many scenarios are judged. The suite is pinned, so another number means that some did not run.
    pub(super) scenarios: usize,
    /// What other implementations reach, of the scenarios that are scored.
    pub(super) reference: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The fixture server over HTTP.
    Http,
    /// The fixture server over stdio, behind the bridge.
    Stdio,
    /// `cyberine-mcp --http`.
    Real,
    /// The fixture client.
    Client,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// Everything a revision's frozen list names, scored or not.
    Requirements(&'static str),
    /// Every scenario of the suite that exists at a revision.
    All(&'static str),
    /// What the suite's own fixture cannot pass, and the extensions.
    Pending,
    /// Scenarios by name, at a revision where one has to be said.
    Named(Option<&'static str>, &'static [&'static str]),
}

/// Scenarios that nothing is judged by: `(name, why)`.
const UNTESTABLE: &[(&str, &str)] = &[
    ("tasks-status-notifications", "the suite itself always skips it"),
    ("sep-2640-skills-directory", "an extension that is not declared"),
    ("sep-2640-skills-enumeration", "an extension that is not declared"),
    ("sep-2640-skills-manifest", "an extension that is not declared"),
];

/// Scenarios about what stdio has not: over the bridge they would judge the bridge.
const HTTP_ONLY: &[(&str, &str)] = &[
    ("dns-rebinding-protection", "Host and Origin"),
    ("http-header-validation", "headers"),
    ("http-custom-header-server-validation", "headers"),
    ("server-session-lifecycle", "session ids"),
    ("server-sse-polling", "resumed event streams"),
    ("tasks-request-headers", "headers"),
];

/// Scenarios parts of which the suite skips by itself: `(name, why)`.
const PARTLY_SKIPPED: &[(&str, &str)] =
    &[("http-standard-headers", "a client of 2026 sends no `initialize`, whose headers it would look at")];

/// Checks that have to succeed, where the suite is content with a remark: `(scenario, check)`.
const NEEDED: &[(&str, &str)] = &[("server-sse-polling", "server-sse-disconnect-resume")];

/// Scenarios that a frozen list reports and does not score.
const UNSCORED: &[&str] = &[
    "server-session-lifecycle",
    "json-schema-2020-12",
    "server-sse-polling",
    "http-header-validation",
    "http-custom-header-server-validation",
    "json-schema-2020-12-preservation",
];

const TASKS: &[&str] = &[
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
];

/// Without `auth/*`: the client has no OAuth.
const CLIENT_2025: &[&str] = &[
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "json-schema-2020-12-preservation",
];
const CLIENT_2026: &[&str] = &[
    "tools_call",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
];

/// Those that need no tool of a fixture.
const REAL_2025: &[&str] = &[
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "logging-set-level",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
    "server-sse-multiple-streams",
];
const REAL_2026: &[&str] = &[
    "tools-list",
    "resources-list",
    "prompts-list",
    "sep-2164-resource-not-found",
    "caching",
    "dns-rebinding-protection",
    "http-header-validation",
    "input-required-result-unsupported-methods",
    "server-sse-multiple-streams",
];

const fn leg(
    name: &'static str,
    subject: Subject,
    what: What,
    scenarios: usize,
    reference: &'static str,
) -> Leg {
    Leg { name, subject, what, scenarios, reference }
}

const OLD: Option<&str> = Some("2025-11-25");
const NEW: Option<&str> = Some("2026-07-28");
const R25: &str = "Rust SDK 30/30, 83 checks; TypeScript SDK 30/30, 84";
const R26: &str = "Rust SDK 37/37, 197 checks with tasks and headers; TypeScript SDK 37/37";
const STDIO_R25: &str = "TypeScript SDK 29/30";
const STDIO_R26: &str = "TypeScript SDK 36/37";

pub(super) const LEGS: &[Leg] = &[
    leg("http-2025", Subject::Http, What::Requirements("2025-11-25"), 33, R25),
    leg("http-2026", Subject::Http, What::Requirements("2026-07-28"), 49, R26),
    leg("http-pending", Subject::Http, What::Pending, 13, "Rust SDK 13/13"),
    leg("http-tasks", Subject::Http, What::Named(None, TASKS), 9, "Rust SDK 9/9; TypeScript SDK 0/9"),
    leg("http-all-2025-03-26", Subject::Http, What::All("2025-03-26"), 1, "-"),
    leg("http-all-2025-06-18", Subject::Http, What::All("2025-06-18"), 27, "-"),
    leg("http-all-2025-11-25", Subject::Http, What::All("2025-11-25"), 33, "-"),
    leg("http-all-2026-07-28", Subject::Http, What::All("2026-07-28"), 40, "-"),
    leg("stdio-2025", Subject::Stdio, What::Requirements("2025-11-25"), 30, STDIO_R25),
    leg("stdio-2026", Subject::Stdio, What::Requirements("2026-07-28"), 45, STDIO_R26),
    leg("stdio-pending", Subject::Stdio, What::Pending, 9, "-"),
    leg("stdio-all-2025-06-18", Subject::Stdio, What::All("2025-06-18"), 26, "-"),
    leg("client-2025", Subject::Client, What::Named(OLD, CLIENT_2025), 5, "Rust and TypeScript SDK 4/4"),
    leg("client-2026", Subject::Client, What::Named(NEW, CLIENT_2026), 8, "Rust and TypeScript SDK 7/7"),
    leg("real-2025", Subject::Real, What::Named(OLD, REAL_2025), 9, "-"),
    leg("real-2026", Subject::Real, What::Named(NEW, REAL_2026), 9, "-"),
];

/// Why a scenario is not judged in this leg, if it is not.
pub(super) fn left_out(subject: Subject, scenario: &str) -> Option<&'static str> {
    let reasons = UNTESTABLE.iter().chain(HTTP_ONLY.iter().filter(|_| subject == Subject::Stdio));
    reasons.into_iter().find(|(name, _)| *name == scenario).map(|(_, why)| *why)
}

/// What is forgiven and what is asked of this scenario.
pub(super) fn terms(scenario: &str) -> Terms {
    Terms {
        may_skip: PARTLY_SKIPPED.iter().any(|(name, _)| *name == scenario),
        needed: NEEDED.iter().find(|(name, _)| *name == scenario).map(|(_, check)| *check),
    }
}

/// Whether the frozen lists score this scenario; they score no extension.
pub(super) fn scored(scenario: &str) -> bool {
    !scenario.starts_with("tasks-") && !UNSCORED.contains(&scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leg_of_names_judges_every_one_of_them() {
        for leg in LEGS {
            if let What::Named(_, names) = leg.what {
                assert_eq!(names.len(), leg.scenarios, "{}", leg.name);
                assert!(names.iter().all(|name| left_out(leg.subject, name).is_none()), "{}", leg.name);
            }
        }
    }

    #[test]
    fn what_is_about_http_is_left_out_over_stdio_only() {
        assert!(left_out(Subject::Stdio, "dns-rebinding-protection").is_some());
        assert!(left_out(Subject::Http, "dns-rebinding-protection").is_none());
        assert!(left_out(Subject::Http, "tasks-status-notifications").is_some());
    }
}
