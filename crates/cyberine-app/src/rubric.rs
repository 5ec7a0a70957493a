//! The rubric of a file, taken into the configuration at dispatch.

use cyberine_orchestrator::OrchestrateConfig;

use crate::config::{ConfigSource, rubric_of};
use crate::exit::Exit;
use crate::problem::{Problem, chain};

/// Reads the rubric where a file is named, so that the plan holds it as it is now: text, or criteria
/// where it is TOML by its name. The file must be as safe as a configuration: who can write it can tell
/// the judges what to prefer.
///
/// # Errors
/// Where the file is not there or cannot be used, or there is a rubric as text beside it.
pub(crate) async fn take_in(config: &mut OrchestrateConfig) -> Result<(), Problem> {
    let Some(path) = config.rubric.clone() else { return Ok(()) };
    let wrong = |what: String| Problem::new(Exit::Configuration, what);
    if config.rubric_text.is_some() {
        let what = "`[orchestrate]` has both `rubric` and `rubric_text`; keep one of them";
        return Err(wrong(what.to_owned()));
    }
    let file = path.clone();
    let read = tokio::task::spawn_blocking(move || ConfigSource::read(&file)).await;
    let read = read.map_err(|error| Problem::of(Exit::Internal, &error))?;
    match read {
        Ok(Some(source)) if config.rubric_has_criteria() => {
            let rubric = rubric_of(&source).map_err(|error| wrong(chain(&error)))?;
            config.rubric_text = Some(rubric.text);
            config.criteria = rubric.criteria;
            Ok(())
        }
        Ok(Some(source)) => {
            config.rubric_text = Some(source.text().to_owned());
            Ok(())
        }
        Ok(None) => Err(wrong(format!(
            "`[orchestrate] rubric` names `{}`, and there is no such file",
            path.display()
        ))),
        Err(error) => Err(wrong(format!("the rubric cannot be used: {}", chain(&error)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, offer_of};
    use crate::environment::Environment;
    use crate::home::Home;
    use crate::project::Project;
    use crate::trust::Trust;
    use cyberine_types::SystemClock;
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn a_rubric_is_read_and_what_cannot_be_one_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rubric.md");
        let config = |text: Option<&str>| OrchestrateConfig {
            rubric: Some(path.clone()),
            rubric_text: text.map(str::to_owned),
            ..OrchestrateConfig::default()
        };
        let error = take_in(&mut config(None)).await.unwrap_err().to_string();
        assert!(error.contains("no such file"), "{error}");
        std::fs::write(&path, "Only truth counts.\n").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let mut read = config(None);
        take_in(&mut read).await.unwrap();
        assert_eq!(read.rubric_text.as_deref(), Some("Only truth counts.\n"));
        let error = take_in(&mut config(Some("x"))).await.unwrap_err().to_string();
        assert!(error.contains("keep one of them"), "{error}");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        let error = take_in(&mut config(None)).await.unwrap_err().to_string();
        assert!(error.contains("chmod go-w"), "{error}");
    }

    #[tokio::test]
    async fn a_rubric_in_toml_has_criteria_and_what_is_wrong_with_one_is_told_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        // In whatever case its name ends.
        let path = directory.path().join("rubric.Toml");
        let read = |text: &'static str| {
            let path = path.clone();
            async move {
                std::fs::write(&path, text).unwrap();
                std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
                let mut config = OrchestrateConfig { rubric: Some(path), ..OrchestrateConfig::default() };
                take_in(&mut config).await.map(|()| config)
            }
        };
        let good = "about = \"For a release.\"\n[[criteria]]\nname = \"truth\"\nweight = 3\n\
            [[criteria]]\nname = \"style\"\ndescription = \"plain words\"\n";
        let config = read(good).await.unwrap();
        let text = "For a release.\n\n- truth (weight 3)\n- style (weight 1): plain words\n";
        assert_eq!(config.rubric_text.as_deref(), Some(text));
        let criteria: Vec<_> = config.criteria.iter().map(|one| (one.name.as_str(), one.weight)).collect();
        assert_eq!(criteria, [("truth", 3), ("style", 1)]);
        for (wrong, said) in [
            ("", "rubric.Toml:1:1: the rubric cannot be scored: it has 0 criteria"),
            (
                "[[criteria]]\nname = \"a\"\nwieght = 2\n",
                "rubric.Toml:3:1: unknown key `wieght` in [criteria]; did you mean `weight`?",
            ),
            ("[[criteria]]\nname = \"a\"\nweight = 0\n", "`weight` is 0, and not from 1 to 100"),
            ("[[criteria]]\nname = \"a b\"\n", "put other words into `description`"),
            ("[[criteria]]\nname = \"a\"\n[[criteria]]\nname = \"a\"\n", "two of its criteria are named `a`"),
            (
                "[[criterion]]\nname = \"a\"\n",
                "unknown key `criterion` in the file; did you mean `criteria`?",
            ),
        ] {
            let error = read(wrong).await.unwrap_err();
            assert_eq!(error.exit, Exit::Configuration, "{wrong}");
            assert!(error.to_string().contains(said), "{wrong}: {error}");
        }
    }

    const JUDGING: &str = "[orchestrate]\nrubric = \"judging/rubric.md\"\njudges = [\"command\", \"llm-judge\"]\n\
        [orchestrate.judge_command]\ncommand = [\"./check\"]\n";

    #[test]
    fn a_project_nobody_trusts_runs_no_command_and_names_no_rubric() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path().join("home"));
        home.open().unwrap();
        std::fs::create_dir(root.path().join("project")).unwrap();
        let project = Project::at(&root.path().join("project"), &Environment::of([], "/")).unwrap();
        let path = project.config_file();
        std::fs::write(&path, JUDGING).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let config = Config::load(&home, &project).unwrap();
        assert_eq!(config.orchestrate, OrchestrateConfig::default());
        assert_eq!(config.untrusted.unwrap().sections, ["orchestrate"]);
        let source = ConfigSource::read(&path).unwrap().unwrap();
        let told = offer_of(&source).unwrap().settings;
        assert!(
            told.iter().any(|one| one.key == "judge_command.command" && one.value == "[\"./check\"]"),
            "{told:?}"
        );
        Trust::of(home.clone()).grant(&source, &SystemClock).unwrap();
        let config = Config::load(&home, &project).unwrap();
        assert_eq!(config.orchestrate.judge_command.unwrap().command, ["./check"]);
        assert_eq!(config.orchestrate.rubric, Some(project.directory().join("judging/rubric.md")));

        let rubric = project.directory().join("judging/rubric.md");
        std::fs::create_dir(rubric.parent().unwrap()).unwrap();
        for text in ["Only truth counts.", "Prefer the longest."] {
            std::fs::write(&rubric, text).unwrap();
            std::fs::set_permissions(&rubric, PermissionsExt::from_mode(0o600)).unwrap();
            let config = Config::load(&home, &project).unwrap();
            assert_eq!(config.orchestrate.rubric, None, "another rubric is not what was trusted");
            Trust::of(home.clone()).grant(&source, &SystemClock).unwrap();
            assert_eq!(Config::load(&home, &project).unwrap().orchestrate.rubric, Some(rubric.clone()));
        }
    }
}
