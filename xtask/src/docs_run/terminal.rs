//! The terminals of a page: shells that keep what was set in them, in a place of their own.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::expect;
use crate::proc::{self, Scratch};

/// How long the system may take to start a shell or a file to appear.
const LOOK: Duration = Duration::from_millis(10);

/// A home, a project and a search path that a page has for itself.
pub(super) struct Place {
    scratch: Scratch,
    home: PathBuf,
    project: PathBuf,
    path: std::ffi::OsString,
}

impl Place {
    pub(super) fn new(bins: &Path) -> Result<Self> {
        let scratch = Scratch::new("docs")?;
        let (home, project) = (scratch.dir("home")?, scratch.dir("home/project")?);
        let mut path = vec![fs::canonicalize(bins)?];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = std::env::join_paths(path)?;
        Ok(Self { scratch, home, project, path })
    }

    fn shell(&self) -> Command {
        let mut command = Command::new("bash");
        command.args(["--noprofile", "--norc"]).env_clear().current_dir(&self.project).process_group(0);
        command
            .env("HOME", &self.home)
            .env("CYBERINE_HOME", self.home.join(".cyberine"))
            // Nothing found on this machine may change what a page shows, and nothing leaves it.
            .env("CYBERINE_DISCOVERY", "off")
            .envs(["http_proxy", "https_proxy", "all_proxy"].map(|name| (name, "http://127.0.0.1:9")))
            .env("no_proxy", "127.0.0.1,localhost,::1")
            .env("CARGO_NET_OFFLINE", "true")
            .env("PATH", &self.path)
            .envs([("LANG", "C.UTF-8"), ("TERM", "dumb"), ("NO_COLOR", "1"), ("USER", "reader")]);
        command
    }
}

impl Drop for Place {
    /// Kills what outlived its terminal: runners have sessions of their own.
    fn drop(&mut self) {
        let mark = format!("HOME={}", self.home.display());
        for pid in proc::carrying(mark.as_bytes()) {
            kill(&pid.to_string());
        }
    }
}

/// One terminal.
pub(super) struct Terminal {
    shell: Child,
    input: ChildStdin,
    output: PathBuf,
    status: PathBuf,
    script: PathBuf,
    /// How much of the output has been compared or belongs to blocks before.
    seen: usize,
    /// Whether a block is still running that is not waited for.
    busy: bool,
}

impl Terminal {
    pub(super) fn open(place: &Place) -> Result<Self> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let dir = place.scratch.dir(&format!("terminal-{number}"))?;
        let output = dir.join("output");
        let file = File::create(&output)?;
        let mut shell = place
            .shell()
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .context("starting bash")?;
        let input = shell.stdin.take().context("stdin is piped")?;
        let (status, script) = (dir.join("status"), dir.join("block"));
        Ok(Self { shell, input, output, status, script, seen: 0, busy: false })
    }

    /// Runs commands to their end.
    pub(super) fn run(&mut self, commands: &str, exit: Option<i32>, limit: Duration) -> Result<()> {
        self.begin(commands, exit.is_none())?;
        let end = Instant::now() + limit;
        let code = loop {
            if let Ok(code) = fs::read_to_string(&self.status) {
                break code.trim().parse::<i32>().context("the shell's status")?;
            }
            if let Some(ended) = self.shell.try_wait()? {
                bail!("the commands ended the shell ({ended}); it said:\n{}", self.indented()?);
            }
            if Instant::now() > end {
                let said = self.indented()?;
                bail!("not done after {} s; so far it said:\n{said}", limit.as_secs());
            }
            std::thread::sleep(LOOK);
        };
        let wanted = exit.unwrap_or(0);
        ensure!(code == wanted, "ended with {code}, not with {wanted}; it said:\n{}", self.indented()?);
        Ok(())
    }

    /// Starts commands that go on while the page does.
    pub(super) fn start(&mut self, commands: &str) -> Result<()> {
        self.begin(commands, true)?;
        self.busy = true;
        Ok(())
    }

    /// Waits until what was said since the last block or comparison is `expected`. What ended says
    /// nothing more, so it is not waited for.
    pub(super) fn expect(&mut self, expected: &str, limit: Duration) -> Result<()> {
        let limit = if self.busy { limit } else { Duration::ZERO };
        let end = Instant::now() + limit;
        loop {
            let said = self.said()?;
            if expect::fits(expected, &said) {
                self.seen += said.len();
                return Ok(());
            }
            if Instant::now() >= end {
                let expected = indent(expected);
                bail!("the page says it prints\n{expected}\n  and it prints\n{}", self.indented()?);
            }
            std::thread::sleep(LOOK);
        }
    }

    fn begin(&mut self, commands: &str, strict: bool) -> Result<()> {
        ensure!(!self.busy, "this terminal still runs a block that stays; use another one");
        self.seen = fs::read(&self.output)?.len();
        match fs::remove_file(&self.status) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        fs::write(&self.script, commands)?;
        let (script, status) = (self.script.display(), self.status.display());
        // The block has no stdin: what a reader would type is not there to be read.
        let line = if strict {
            format!(
                "trap 'echo $? > {status}.new; mv {status}.new {status}' EXIT; set -e; . {script} < /dev/null; \
                 set +e; trap - EXIT; echo 0 > {status}.new; mv {status}.new {status}\n"
            )
        } else {
            format!(". {script} < /dev/null; echo $? > {status}.new; mv {status}.new {status}\n")
        };
        self.input.write_all(line.as_bytes()).context("the shell is gone")?;
        Ok(())
    }

    fn said(&self) -> Result<String> {
        let bytes = fs::read(&self.output)?;
        Ok(String::from_utf8_lossy(bytes.get(self.seen..).unwrap_or_default()).into_owned())
    }

    fn indented(&self) -> Result<String> {
        self.said().map(|said| indent(&said))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        kill(&format!("-{}", self.shell.id()));
        let _ = self.shell.wait();
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  | {line}")).collect::<Vec<_>>().join("\n")
}

/// Kills a process, or with a minus before its number its group.
fn kill(which: &str) {
    let _ = Command::new("kill").args(["-KILL", "--", which]).stderr(Stdio::null()).status();
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn a_terminal_keeps_its_directory_and_compares_what_it_says() {
        let place = Place::new(Path::new("/")).unwrap();
        let mut terminal = Terminal::open(&place).unwrap();
        terminal.run("mkdir here\ncd here\nname=value\n", None, LIMIT).unwrap();
        terminal.run("basename \"$PWD\"; echo $name >&2; cat", None, LIMIT).unwrap();
        terminal.expect("here\nva…", LIMIT).unwrap();
        terminal.run("(exit 3)", Some(3), LIMIT).unwrap();
        let error = terminal.run("echo told; false; echo never", None, LIMIT).unwrap_err().to_string();
        assert!(
            error.contains("ended with 1") && error.contains("told") && !error.contains("never"),
            "{error}"
        );
    }

    #[test]
    fn a_block_that_stays_is_read_while_another_terminal_works() {
        let place = Place::new(Path::new("/")).unwrap();
        let (mut one, mut two) = (Terminal::open(&place).unwrap(), Terminal::open(&place).unwrap());
        one.run("mkfifo pipe", None, LIMIT).unwrap();
        one.start("while read -r line; do echo \"got $line\"; done < pipe\nsleep 100").unwrap();
        two.run("echo mail > pipe", None, LIMIT).unwrap();
        one.expect("got mail", LIMIT).unwrap();
        assert!(one.run("true", None, LIMIT).is_err());
        assert!(two.run("sleep 100", None, Duration::from_millis(50)).is_err());
    }
}
