//! `cyberine install`.

mod claude;

use std::path::{Path, PathBuf};

use cyberine_app::{
    Environment, Exit, HOME_VARIABLE, Home, PROJECT_VARIABLE, Problem, Project, ProjectSource, TOKEN_VARIABLE,
};
use cyberine_install::{
    ConfigFile, Entry, FileError, Line, Overwrite, Places, Plan, PlanError, Platform, SERVER, Scope,
    Withdrawal, difference, plan, snippet, withdraw,
};
use cyberine_types::{Clock as _, SystemClock};
use serde::Serialize;

use crate::args::Install;
use crate::out::{Out, Style};
use crate::plain::{escaped, escaped_line};

/// What became of the host's file.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    host: &'static str,
    file: PathBuf,
    done: Done,
    /// Whether it was shown only.
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
    /// The command of the host that was run instead of writing its file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ran: Vec<String>,
    /// How to see in the host that it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    see: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Done {
    Registered,
    AlreadyRegistered,
    TakenOut,
    NotRegistered,
}

/// The file of a host, and what it is to say.
struct Task<'a> {
    args: &'a Install,
    entry: Entry,
    path: PathBuf,
    environment: &'a Environment,
    out: &'a Out,
}

/// Registers the server with a host, or takes it out again.
pub(crate) async fn run(
    args: &Install,
    project: Option<&Path>,
    environment: &Environment,
    out: &Out,
) -> Result<Exit, Problem> {
    let entry = entry(args, project, environment)?;
    let path = path(args, project, environment)?;
    let task = Task { args, entry, path, environment, out };
    if args.print {
        return task.print();
    }
    let file = ConfigFile::read(&task.path).map_err(|error| file_problem(&error))?;
    let report = match claude::program(args, environment) {
        // Claude Code keeps its own state in that file, and writes it whole while it runs.
        Some(claude) => task.through_claude(&claude, &file).await?,
        None if args.uninstall => task.uninstall(&file)?,
        None => task.install(&file)?,
    };
    task.tell(&report);
    Ok(Exit::Done)
}

/// What is registered: the server beside this program, and what was asked for.
fn entry(args: &Install, project: Option<&Path>, environment: &Environment) -> Result<Entry, Problem> {
    let usage = |error: cyberine_install::EntryError| Problem::of(Exit::Usage, &error);
    let server = environment.sibling(SERVER).filter(|server| server.is_file()).ok_or_else(|| {
        let words = format!("`{SERVER}` is not installed beside this program; install it first: `cargo install --locked --path bins/{SERVER}`");
        Problem::new(Exit::Unavailable, words)
    })?;
    let token = environment.secret(TOKEN_VARIABLE);
    if token.is_some_and(|token| args.server_args.iter().any(|arg| arg.contains(token.expose()))) {
        return Err(Problem::new(
            Exit::Usage,
            format!(
                "an argument holds the token of {TOKEN_VARIABLE}, which never goes into a file: set that variable where the host starts"
            ),
        ));
    }
    let mut entry = Entry::new(text(&server)?)
        .and_then(|entry| entry.with_args(args.server_args.iter().cloned()))
        .map_err(usage)?;
    if args.pin_home {
        let home = Home::resolve(environment)?;
        entry = entry.with_variable(HOME_VARIABLE, text(home.directory())?).map_err(usage)?;
    }
    if args.pin_project {
        let project = named_project(project, environment)?;
        entry = entry.with_variable(PROJECT_VARIABLE, text(project.directory())?).map_err(usage)?;
    }
    Ok(entry)
}

/// The file of the host.
fn path(args: &Install, project: Option<&Path>, environment: &Environment) -> Result<PathBuf, Problem> {
    let home = environment.user_home().ok_or_else(|| {
        Problem::new(
            Exit::Configuration,
            "there is no HOME in the environment, so the host's file cannot be found",
        )
    })?;
    let platform = Platform::of_this_build();
    let config = if platform == Platform::Windows { "APPDATA" } else { "XDG_CONFIG_HOME" };
    let places = Places {
        platform,
        home,
        config: environment.path(config).filter(|path| path.is_absolute()),
        claude: environment.path("CLAUDE_CONFIG_DIR"),
        codex: environment.path("CODEX_HOME"),
    };
    match args.scope {
        Scope::User => Ok(args.host.user_file(&places)),
        Scope::Project => {
            let project = named_project(project, environment)?;
            args.host.project_file(project.directory()).ok_or_else(|| {
                let name = args.host.name();
                Problem::new(Exit::Usage, format!("{name} has no file for one project; leave --scope out, and name the project with --pin-project"))
            })
        }
    }
}

/// The project, where one was meant: the one that stands in for none is none.
fn named_project(flag: Option<&Path>, environment: &Environment) -> Result<Project, Problem> {
    let project = Project::resolve(flag, environment, &Home::resolve(environment)?)?;
    if project.source() == ProjectSource::Default {
        return Err(Problem::new(
            Exit::Usage,
            "the working directory is no project: go to one, or name it with --project",
        ));
    }
    Ok(project)
}

fn text(path: &Path) -> Result<&str, Problem> {
    path.to_str().ok_or_else(|| {
        let path = path.display();
        Problem::new(Exit::Usage, format!("`{path}` is not UTF-8, and the files of hosts are"))
    })
}

impl Task<'_> {
    fn print(&self) -> Result<Exit, Problem> {
        let text = snippet(self.args.host, &self.entry).map_err(|error| self.problem(&error))?;
        if self.out.is_json() {
            self.out.json(&serde_json::json!({
                "host": self.args.host.word(), "file": self.path, "snippet": text,
            }));
        } else {
            self.out.note(format_args!("cyberine: this belongs into {}", self.path.display()));
            self.out.raw(&text);
        }
        Ok(Exit::Done)
    }

    fn install(&self, file: &ConfigFile) -> Result<Report, Problem> {
        let plan = plan(self.args.host, file.text(), &self.entry, self.overwrite());
        let Plan::Write(after) = plan.map_err(|error| self.problem(&error))? else {
            return Ok(self.report(Done::AlreadyRegistered, None));
        };
        self.show(file, &after);
        let backup = if self.args.dry_run {
            None
        } else {
            file.write(&after, self.args.scope, SystemClock.now()).map_err(|error| file_problem(&error))?
        };
        Ok(self.report(Done::Registered, backup))
    }

    fn uninstall(&self, file: &ConfigFile) -> Result<Report, Problem> {
        let Some(text) = file.text() else { return Ok(self.report(Done::NotRegistered, None)) };
        let earlier = file.earlier().map_err(|error| file_problem(&error))?;
        let withdrawal = withdraw(self.args.host, text, &earlier, self.overwrite());
        let withdrawal = withdrawal.map_err(|error| self.problem(&error))?;
        let after = match &withdrawal {
            Withdrawal::Nothing => return Ok(self.report(Done::NotRegistered, None)),
            Withdrawal::Write(after) | Withdrawal::GiveBack(after) => Some(after.as_str()),
            Withdrawal::Remove => None,
        };
        self.show(file, after.unwrap_or_default());
        let written = match (&withdrawal, after) {
            _ if self.args.dry_run => Ok(None),
            (Withdrawal::Write(_), Some(after)) => file.write(after, self.args.scope, SystemClock.now()),
            _ => file.give_back(after, self.args.scope).map(|()| None),
        };
        Ok(self.report(Done::TakenOut, written.map_err(|error| file_problem(&error))?))
    }

    const fn overwrite(&self) -> Overwrite {
        if self.args.force { Overwrite::Allow } else { Overwrite::Refuse }
    }

    /// Shows a change of the file to a person.
    fn show(&self, file: &ConfigFile, after: &str) {
        if self.out.is_json() {
            return;
        }
        let out = self.out;
        out.line(out.paint(Style::Strong, escaped(&file.path().display().to_string())));
        if file.real_path() != file.path() && file.text().is_some() {
            out.line(format_args!("  which lies at {}", escaped(&file.real_path().display().to_string())));
        }
        for line in difference(file.text().unwrap_or_default(), after) {
            match line {
                Line::Same(text) => out.line(format_args!("    {}", escaped_line(&text))),
                Line::Gone(text) => {
                    out.line(out.paint(Style::Bad, format_args!("  - {}", escaped_line(&text))))
                }
                Line::New(text) => {
                    out.line(out.paint(Style::Good, format_args!("  + {}", escaped_line(&text))))
                }
            }
        }
    }

    fn report(&self, done: Done, backup: Option<PathBuf>) -> Report {
        let registered = matches!(done, Done::Registered | Done::AlreadyRegistered);
        Report {
            host: self.args.host.word(),
            file: self.path.clone(),
            done,
            dry_run: self.args.dry_run,
            backup,
            ran: Vec::new(),
            see: registered.then(|| self.args.host.how_to_see(self.args.scope)),
        }
    }

    fn tell(&self, report: &Report) {
        let (out, name) = (self.out, self.args.host.name());
        if out.is_json() {
            return out.json(report);
        }
        let file = escaped(&report.file.display().to_string());
        out.line(match report.done {
            Done::AlreadyRegistered => format!("{name} starts this server already ({file})."),
            Done::NotRegistered => format!("{name} does not start this server ({file})."),
            Done::Registered | Done::TakenOut if report.dry_run => "Nothing was changed.".to_owned(),
            Done::Registered => format!("{name} starts this server from now on."),
            Done::TakenOut => format!("{name} starts this server no longer."),
        });
        if let Some(backup) = &report.backup {
            out.line(format_args!("The file as it was: {}", escaped(&backup.display().to_string())));
        }
        if let Some(see) = report.see.filter(|_| !report.dry_run) {
            out.line(format_args!("To see it work: {see}."));
        }
    }

    /// Why the file was not edited; an entry that is in the way is shown to a person.
    fn problem(&self, error: &PlanError) -> Problem {
        if let PlanError::Taken { existing } | PlanError::Foreign { existing } = error
            && !self.out.is_json()
        {
            self.out.line(out_title(&self.path));
            self.out.foreign(existing, "    ");
        }
        let path = self.path.display();
        let words = match error {
            // A place in the file is written so that editors can follow it.
            PlanError::Syntax { .. } | PlanError::WrongShape { .. } => format!("{path}:{error}"),
            _ => format!("{path}: {error}"),
        };
        Problem::new(Exit::Configuration, words)
    }
}

fn out_title(path: &Path) -> String {
    format!("{} has this entry:", escaped(&path.display().to_string()))
}

fn file_problem(error: &FileError) -> Problem {
    let exit = if matches!(error, FileError::Changed { .. }) { Exit::TryAgain } else { Exit::Unavailable };
    Problem::of(exit, error)
}
