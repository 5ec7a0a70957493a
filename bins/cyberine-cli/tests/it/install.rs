//! `cyberine install`, with files of hosts in a home of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{Place, Said};

const CURSOR: &str =
    "// mine\n{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"other\", }, // keep\n  },\n}\n";

/// The command with the server installed beside it, wherever the tests were built.
struct Installed {
    place: Place,
    bin: PathBuf,
}

impl Installed {
    fn new() -> Self {
        let place = Place::new();
        let bin = place.path("bin");
        std::fs::create_dir(&bin).unwrap();
        let (built, here) = (env!("CARGO_BIN_EXE_cyberine"), bin.join("cyberine"));
        if std::fs::hard_link(built, &here).is_err() {
            std::fs::copy(built, &here).unwrap();
        }
        program(&bin.join("cyberine-mcp"), "exit 0");
        Self { place, bin }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.program(self.bin.join("cyberine").to_str().unwrap());
        command.args(["install"]).args(arguments).env("PATH", &self.bin);
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    /// The file of a host, below the user's home.
    fn file(&self, path: &str) -> PathBuf {
        let file = self.place.path(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        file
    }

    fn server(&self) -> String {
        self.bin.join("cyberine-mcp").to_str().unwrap().to_owned()
    }
}

fn program(path: &Path, script: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn names_beside(path: &Path) -> usize {
    std::fs::read_dir(path.parent().unwrap()).unwrap().count()
}

#[test]
fn a_host_is_shown_the_change_gets_it_once_and_gets_its_bytes_back() {
    let installed = Installed::new();
    let file = installed.file(".cursor/mcp.json");
    std::fs::write(&file, CURSOR).unwrap();
    let dry = installed.run(&["cursor", "--dry-run"]);
    assert!(dry.out.contains("+     \"cyberine\": {") && dry.out.contains("Nothing was changed."), "{dry:?}");
    assert_eq!((read(&file).as_str(), names_beside(&file)), (CURSOR, 1));
    let added = installed.run(&["cursor"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(added.out.contains("To see it work: ") && added.out.contains(".bak"), "{added:?}");
    let after = read(&file);
    assert!(after.contains(&installed.server()) && after.contains("// keep"), "{after}");
    let again = installed.run(&["cursor", "--json"]);
    assert_eq!(again.json()["done"], "already-registered", "{again:?}");
    assert_eq!((read(&file), names_beside(&file)), (after, 2));
    let gone = installed.run(&["cursor", "--uninstall", "--json"]);
    assert_eq!(gone.json()["done"], "taken-out", "{gone:?}");
    assert_eq!((read(&file).as_str(), names_beside(&file)), (CURSOR, 1));
    assert_eq!(installed.run(&["cursor", "--uninstall", "--json"]).json()["done"], "not-registered");
}

#[test]
fn every_host_gets_a_file_that_goes_again_in_both_scopes() {
    let installed = Installed::new();
    for host in ["claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini", "zed"] {
        for scope in ["user", "project"] {
            let added = installed.run(&[host, "--scope", scope, "--json"]);
            if (host, scope) == ("claude-desktop", "project") {
                added.refused(2, &["no file for one project"]);
                continue;
            }
            let file = PathBuf::from(added.json()["file"].as_str().unwrap());
            assert!(read(&file).contains(&installed.server()), "{host} {scope}");
            assert!(!file.starts_with(installed.place.home()), "{host} {scope}: {}", file.display());
            let gone = installed.run(&[host, "--scope", scope, "--uninstall", "--json"]);
            assert_eq!(gone.json()["done"], "taken-out", "{host} {scope}: {gone:?}");
            assert!(!file.exists(), "{host} {scope}");
        }
    }
}

#[test]
fn what_is_printed_is_pasted_and_nothing_is_written() {
    let installed = Installed::new();
    let said = installed.run(&["codex", "--print", "--pin-home", "--pin-project", "--", "--team", "red"]);
    let expected = format!(
        "[mcp_servers.cyberine]\ncommand = \"{}\"\nargs = [\"--team\", \"red\"]\nenv = {{ CYBERINE_HOME = \"{}\", CYBERINE_PROJECT = \"{}\" }}\n",
        installed.server(),
        installed.place.home().display(),
        installed.place.project().display(),
    );
    assert_eq!(said.out, expected);
    assert!(!installed.place.path(".codex").exists());
}

#[test]
fn what_cannot_be_edited_is_refused_with_its_place_and_left_alone() {
    let installed = Installed::new();
    let file = installed.file(".config/Claude/claude_desktop_config.json");
    for (text, words) in [
        ("{\n  \"mcpServers\": {},\n}\n", ":2:"),
        ("{\"mcpServers\": {\"cyberine\": {\"command\": \"other\"}}}", "--force replaces it"),
    ] {
        std::fs::write(&file, text).unwrap();
        installed.run(&["claude-desktop"]).refused(78, &[words, file.to_str().unwrap()]);
        assert_eq!((read(&file).as_str(), names_beside(&file)), (text, 1));
    }
    let shown = installed.run(&["claude-desktop"]);
    assert!(shown.out.contains("\"command\": \"other\""), "{shown:?}");
    assert_eq!(installed.run(&["claude-desktop", "--force"]).code, Some(0));
    assert!(read(&file).contains(&installed.server()));
    installed.run(&["emacs"]).refused(2, &["the hosts are claude-code"]);
}

#[test]
fn a_token_never_goes_into_a_file() {
    let installed = Installed::new();
    let mut command = installed.command(&["cursor", "--", "--name", "t0ken-t0ken"]);
    let said: Said = command.env("CYBERINE_MCP_AUTH_TOKEN", "t0ken-t0ken").output().unwrap().into();
    said.refused(2, &["never goes into a file"]);
    assert!(!said.err.contains("t0ken-t0ken"), "{said:?}");
    assert!(!installed.place.path(".cursor").exists());
}

#[test]
fn claude_codes_own_command_makes_the_change_where_it_is_there() {
    let installed = Installed::new();
    let file = installed.file(".claude.json");
    let (log, state) = (installed.place.path("log"), file.display());
    // It rewrites its file whole, as the real one does.
    program(
        &installed.bin.join("claude"),
        &format!(
            "printf '%s\\n' \"$*\" >> '{}'\ncase $2 in\nadd-json) printf '{{\"mcpServers\":{{\"%s\":%s}}}}' \"$5\" \"$6\" > '{state}' ;;\n\
             remove) printf '{{}}' > '{state}' ;;\nesac",
            log.display()
        ),
    );
    let dry = installed.run(&["claude-code", "--dry-run"]);
    assert!(dry.out.contains("claude mcp add-json --scope user cyberine '{"), "{dry:?}");
    assert!(!log.exists() && !file.exists());
    let added = installed.run(&["claude-code", "--json"]);
    assert_eq!(added.json()["done"], "registered", "{added:?}");
    assert!(read(&file).contains(&installed.server()));
    assert_eq!(installed.run(&["claude-code", "--json"]).json()["done"], "already-registered");
    assert_eq!(installed.run(&["claude-code", "--uninstall", "--json"]).json()["done"], "taken-out");
    assert_eq!(read(&log).lines().count(), 2, "{}", read(&log));
    program(&installed.bin.join("claude"), "echo no login >&2; exit 3");
    installed.run(&["claude-code"]).refused(69, &["`claude mcp add-json` failed", "no login"]);
    program(&installed.bin.join("claude"), "exit 0");
    installed.run(&["claude-code"]).refused(69, &["does not show it"]);
    // A project's file is the project's, whoever has the command.
    let project = installed.run(&["claude-code", "--scope", "project", "--json"]);
    assert!(project.json()["file"].as_str().unwrap().ends_with("project/.mcp.json"), "{project:?}");
}

#[test]
fn a_server_that_is_not_installed_is_told() {
    let installed = Installed::new();
    std::fs::remove_file(installed.server()).unwrap();
    installed.run(&["cursor"]).refused(69, &["install it first"]);
}
