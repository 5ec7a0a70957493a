//! The rubric of a file, taken into the configuration at dispatch.

use cyberine_orchestrator::OrchestrateConfig;

use crate::config::ConfigSource;
use crate::exit::Exit;
use crate::problem::{Problem, chain};

/// Reads the rubric where a file is named, so that the plan holds it as it is now. The file must be
/// as safe as a configuration: who can write it can tell the judges what to prefer.
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

    const JUDGING: &str = "[orchestrate]\nrubric = \"judging/rubric.md\"\njudges = [\"command\"]\n\
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
