//! What a provider can reach, for the eyes of whoever is asked to trust it.

use cyberine_provider::ProviderConfig;
use cyberine_types::Billing;
use serde::Serialize;

/// What one provider runs, whom it asks, and what it is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reach {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// How it is paid for.
    pub billing: Billing,
    /// The program it runs, with its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<Vec<String>>,
    /// The address prompts are sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether its key may travel unencrypted to that address.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub plain_http: bool,
    /// The directory it works in, in place of the project's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The model it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools it may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The variables whose values it is given, by name.
    pub variables: Vec<String>,
}

/// What `provider` can reach.
#[must_use]
pub fn reach(name: &str, provider: &ProviderConfig) -> Reach {
    let profile = provider.profile();
    let program = profile.program.map(|program| {
        let shown = std::iter::once(program.display().to_string());
        shown.chain(profile.args.iter().cloned()).collect()
    });
    Reach {
        name: name.to_owned(),
        kind: profile.kind,
        billing: provider.billing(),
        program,
        url: (!profile.url.is_empty()).then(|| profile.url.to_owned()),
        plain_http: profile.plain_http,
        cwd: profile.cwd.map(|path| path.display().to_string()),
        model: profile.model.map(str::to_owned),
        tools: profile.tools.to_vec(),
        variables: provider.required_env().into_iter().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_addresses_and_variables_are_shown() {
        let check = |text: &str, program: Option<&[&str]>, url: Option<&str>, variables: &[&str]| {
            let provider: ProviderConfig = serde_json::from_str(text).unwrap();
            let seen = reach("a", &provider);
            let want = program.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
            assert_eq!(
                (seen.program, seen.url.as_deref(), seen.variables),
                (want, url, variables.iter().map(|v| (*v).to_owned()).collect())
            );
        };
        check(
            r#"{"kind":"command","command":["sh","-c","x"],"env":["K"]}"#,
            Some(&["sh", "-c", "x"]),
            None,
            &["K"],
        );
        check(r#"{"kind":"claude-cli","args":["--x"]}"#, Some(&["claude", "--x"]), None, &[]);
        check(
            r#"{"kind":"anthropic","model":"m"}"#,
            None,
            Some("https://api.anthropic.com"),
            &["ANTHROPIC_API_KEY"],
        );
        check(r#"{"kind":"openai","base_url":"http://h/v1","model":"m"}"#, None, Some("http://h/v1"), &[]);
    }

    #[test]
    fn what_changes_where_and_how_it_runs_is_shown() {
        let seen = |text: &str| reach("a", &serde_json::from_str(text).unwrap());
        let command = seen(r#"{"kind":"command","command":["x"],"cwd":"/etc"}"#);
        assert_eq!(command.cwd.as_deref(), Some("/etc"));
        let claude = seen(r#"{"kind":"claude-cli","model":"m","tools":["Bash"]}"#);
        assert_eq!((claude.model.as_deref(), claude.tools.as_slice()), (Some("m"), &["Bash".to_owned()][..]));
        let open = r#"{"kind":"openai","base_url":"http://h/v1","model":"m","api_key_env":"K","allow_plain_http":true}"#;
        assert!(seen(open).plain_http);
    }
}
