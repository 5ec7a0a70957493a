//! The command line of `cyberine-mcp`: a few flags, read by hand, because a host waits for it.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::PathBuf;

use cyberine_types::RunId;

use crate::config::{Label, LabelError, PresenceConfig};

/// What the process was started for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// To serve a host on stdin and stdout.
    Serve(ServeOptions),
    /// To serve clients over HTTP at this address.
    ServeHttp(SocketAddr, ServeOptions),
    /// To carry out one run that was handed over. Internal.
    Run(RunId),
    /// To settle one run should its runner die. Internal.
    Guard(RunId),
    /// To say something on stdout and end.
    Say(String),
}

/// How to serve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServeOptions {
    /// The project's directory, where the command line names one.
    pub project: Option<PathBuf>,
    /// As whom the server is found by others, where the command line says so.
    pub presence: PresenceConfig,
}

/// The command line is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// A flag nobody knows.
    #[error("unknown argument `{0}`; `cyberine-mcp --help` lists all there are")]
    Unknown(String),
    /// A flag without its value.
    #[error("`{0}` needs a value")]
    MissingValue(&'static str),
    /// An address that cannot be listened at.
    #[error(
        "`--http {0}` is no address: give one with its port, such as `127.0.0.1:8080` or `[::1]:8080`; port 0 takes a free one"
    )]
    Address(String),
    /// Two transports.
    #[error("a server speaks either on stdin and stdout or over HTTP: give `--stdio` or `--http`, not both")]
    Transports,
    /// A surface that does not exist, or not yet.
    #[error("the surface `{0}` is not part of this version; `operator` is")]
    Surface(String),
    /// A name that cannot be one.
    #[error("the value of `{flag}` cannot be used: {source}")]
    Label {
        /// The flag.
        flag: &'static str,
        /// Why.
        source: LabelError,
    },
    /// `--runner` or `--guard` with something that is no run id.
    #[error("`--runner` and `--guard` need a run's id; they are started by the server, not by hand")]
    Runner,
}

/// The flag of the guardian of a run.
pub(crate) const GUARD: &str = "--guard";

/// The one surface this version has.
const OPERATOR: &str = "operator";

impl Invocation {
    /// What this process was started for.
    ///
    /// # Errors
    /// As [`Invocation::parse`].
    pub fn of_process() -> Result<Self, UsageError> {
        Self::parse(std::env::args_os().skip(1))
    }

    /// What this process was started for, where that is a run: to carry it out or to guard it, with
    /// nothing else on its command line. For programs with a command line of their own.
    #[must_use]
    pub fn internal_of_process() -> Option<Self> {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        match Self::parse(arguments.iter().cloned()) {
            Ok(internal @ (Self::Run(_) | Self::Guard(_))) if arguments.len() == 2 => Some(internal),
            _ => None,
        }
    }

    /// Reads the arguments that follow the program's name.
    ///
    /// # Errors
    /// Where an argument is not understood.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, UsageError> {
        let mut rest = arguments.into_iter();
        let mut options = ServeOptions::default();
        let (mut http, mut stdio) = (None, false);
        while let Some(argument) = rest.next() {
            let text = argument.to_string_lossy().into_owned();
            let (flag, inline) = match text.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag, Some(OsString::from(value))),
                _ => (text.as_str(), None),
            };
            let mut value =
                |flag| inline.clone().or_else(|| rest.next()).ok_or(UsageError::MissingValue(flag));
            match flag {
                "--help" | "-h" => return Ok(Self::Say(help())),
                "--version" | "-V" => return Ok(Self::Say(format!("cyberine-mcp {}\n", version()))),
                "--project" => options.project = Some(PathBuf::from(value("--project")?)),
                "--team" => options.presence.team = Some(label("--team", &value("--team")?)?),
                "--role" => options.presence.role = Some(label("--role", &value("--role")?)?),
                "--name" => options.presence.name = Some(label("--name", &value("--name")?)?),
                "--http" => http = Some(address(&value("--http")?)?),
                "--stdio" => stdio = true,
                "--surface" => only_operator(&value("--surface")?.to_string_lossy())?,
                "--runner" => {
                    let id = value("--runner")?.to_string_lossy().parse();
                    return id.map(Self::Run).map_err(|_| UsageError::Runner);
                }
                GUARD => {
                    let id = value(GUARD)?.to_string_lossy().parse();
                    return id.map(Self::Guard).map_err(|_| UsageError::Runner);
                }
                _ => return Err(UsageError::Unknown(text)),
            }
        }
        match http {
            Some(_) if stdio => Err(UsageError::Transports),
            Some(address) => Ok(Self::ServeHttp(address, options)),
            None => Ok(Self::Serve(options)),
        }
    }
}

fn address(value: &OsStr) -> Result<SocketAddr, UsageError> {
    let text = value.to_string_lossy();
    text.parse().map_err(|_| UsageError::Address(text.chars().take(64).collect()))
}

fn label(flag: &'static str, value: &OsStr) -> Result<Label, UsageError> {
    value.to_string_lossy().parse().map_err(|source| UsageError::Label { flag, source })
}

fn only_operator(surfaces: &str) -> Result<(), UsageError> {
    match surfaces.split(',').map(str::trim).find(|surface| *surface != OPERATOR) {
        None => Ok(()),
        Some(other) => Err(UsageError::Surface(other.to_owned())),
    }
}

/// The version of this build.
#[must_use]
pub const fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn help() -> String {
    format!(
        "\
cyberine-mcp {}: serves Cyberine to an MCP host on stdin and stdout, or to
clients over HTTP.

Usage: cyberine-mcp [--stdio | --http ADDRESS:PORT] [--project DIR]
                    [--surface operator] [--team NAME] [--role NAME] [--name NAME]

  --stdio             serve the host that started it, on stdin and stdout (default)
  --http ADDRESS:PORT serve clients at http://ADDRESS:PORT/mcp, as [identity] and
                      [http] of the home's configuration say; port 0 takes a free
                      one and tells it on stderr
  --project DIR       the project's directory (else CYBERINE_PROJECT, else the
                      working directory, else the home's default project)
  --surface operator  which tools to serve; this version has the operator's
  --team, --role, --name NAME
                      as whom others find this server (else CYBERINE_TEAM,
                      CYBERINE_ROLE, CYBERINE_NAME, else [presence])
  --help, --version

Environment:
  CYBERINE_HOME            where runs and configuration live (default ~/.cyberine)
  CYBERINE_PROJECT         the project's directory
  CYBERINE_MCP_AUTH_TOKEN  on stdio, every call must carry this token; unset: no
                           token is asked for; empty: the server refuses to start.
                           Over HTTP callers have tokens of their own, and the
                           server refuses to start with this one
  CYBERINE_BUS_BACKEND     file (default), or none: no messages, no roster
  CYBERINE_LOG             error, warn (default), info, debug
  CYBERINE_DISCOVERY       off, or loopback addresses of model servers

`cyberine guide` shows what a person can do.

{}
",
        version(),
        crate::Exit::TABLE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Invocation, UsageError> {
        Invocation::parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn the_flags_are_read_in_both_spellings() {
        let serve = |project: Option<&str>| {
            Ok(Invocation::Serve(ServeOptions {
                project: project.map(PathBuf::from),
                ..ServeOptions::default()
            }))
        };
        assert_eq!(parse(&[]), serve(None));
        assert_eq!(parse(&["--project", "/p", "--surface", "operator"]), serve(Some("/p")));
        assert_eq!(parse(&["--project=/p=q", "--surface=operator"]), serve(Some("/p=q")));
        let Ok(Invocation::Serve(named)) = parse(&["--team", "red", "--role=reviewer", "--name", "a b"])
        else {
            unreachable!()
        };
        let presence = [named.presence.team, named.presence.role, named.presence.name];
        assert_eq!(presence.map(|label| label.unwrap().to_string()), ["red", "reviewer", "a b"]);
        assert_eq!(parse(&["--stdio"]), serve(None));
        for (flag, at) in [("--http=127.0.0.1:0", "127.0.0.1:0"), ("--http=[::1]:8080", "[::1]:8080")] {
            let want = Invocation::ServeHttp(at.parse().unwrap(), ServeOptions::default());
            assert_eq!(parse(&[flag]), Ok(want));
        }
        let id = RunId::random();
        assert_eq!(parse(&["--runner", &id.to_string()]), Ok(Invocation::Run(id)));
        assert_eq!(parse(&["--guard", &id.to_string()]), Ok(Invocation::Guard(id)));
        assert!(
            matches!(parse(&["--help"]), Ok(Invocation::Say(text)) if text.contains("CYBERINE_MCP_AUTH_TOKEN"))
        );
        assert!(
            matches!(parse(&["--version"]), Ok(Invocation::Say(text)) if text.starts_with("cyberine-mcp 0."))
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        assert_eq!(parse(&["--projekt", "x"]), Err(UsageError::Unknown("--projekt".to_owned())));
        assert_eq!(parse(&["serve"]), Err(UsageError::Unknown("serve".to_owned())));
        assert_eq!(parse(&["--project"]), Err(UsageError::MissingValue("--project")));
        assert_eq!(parse(&["--surface", "operator,ask"]), Err(UsageError::Surface("ask".to_owned())));
        for bad in ["8080", "localhost:8080", "127.0.0.1", "::1:80", "http://127.0.0.1:80", ""] {
            assert_eq!(parse(&["--http", bad]), Err(UsageError::Address(bad.to_owned())), "{bad}");
        }
        assert_eq!(parse(&["--http", "127.0.0.1:0", "--stdio"]), Err(UsageError::Transports));
        assert_eq!(parse(&["--runner", "../x"]), Err(UsageError::Runner));
        assert_eq!(parse(&["--guard", "../x"]), Err(UsageError::Runner));
        let blank = UsageError::Label { flag: "--team", source: LabelError::Blank };
        assert_eq!(parse(&["--team", " "]), Err(blank));
    }
}
