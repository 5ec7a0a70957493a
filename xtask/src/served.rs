//! A server over HTTP: started, found by the URL it says, ended with its handle.

use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::proc;

const START: Duration = Duration::from_secs(20);

/// A home whose callers are all the same person.
pub(crate) const FIXED: &str = "[identity]\ntenant = \"local\"\nuser = \"tester\"\nmode = \"fixed\"\n";

pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
}

impl Served {
    /// Starts `command` and waits until it says where it listens, on stdout or stderr.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let shown = format!("{command:?}");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {shown}"))?;
        let (say, heard) = sync_channel(1000);
        pump(child.stdout.take().context("stdout is piped")?, say.clone());
        pump(child.stderr.take().context("stderr is piped")?, say);
        let mut served = Self { child, url: String::new() };
        let end = Instant::now() + START;
        let mut said = Vec::new();
        while let Ok(line) = heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if let Some(url) = url_in(&line) {
                served.url = url;
                return Ok(served);
            }
            said.push(line);
        }
        bail!("{shown} did not say where it listens; it said: {said:?}")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Where to connect to: `host:port`.
    pub(crate) fn address(&self) -> &str {
        let rest = self.url.strip_prefix("http://").unwrap_or(&self.url);
        rest.split('/').next().unwrap_or(rest)
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) -> Result<()> {
        proc::run(Command::new("kill").args(["-TERM", &self.pid().to_string()]), Duration::from_secs(5))
    }

    /// Waits for its end and returns the exit code; `None` where it had to be killed after `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<Option<i32>> {
        proc::wait(&mut self.child, limit)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines until the end, so that the writer never waits; those that nobody wants are dropped.
fn pump(output: impl Read + Send + 'static, say: SyncSender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
            let _ = say.try_send(line);
        }
    });
}

fn url_in(line: &str) -> Option<String> {
    let from = line.find("http://")?;
    let url = line.get(from..)?.split(|c: char| c.is_whitespace() || "\"',;".contains(c)).next()?;
    Some(url.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_found_wherever_it_stands_in_a_line() {
        let url = Some("http://127.0.0.1:80/mcp".to_owned());
        assert_eq!(url_in("http://127.0.0.1:80/mcp"), url);
        assert_eq!(url_in("INFO listening url=\"http://127.0.0.1:80/mcp\" x=1"), url);
        assert_eq!(url_in("Listening on http://127.0.0.1:80/mcp."), url);
        assert_eq!(url_in("nothing"), None);
    }
}
