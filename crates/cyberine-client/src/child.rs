//! A server that is a child of ours: bytes from its output, lines to its input.

use std::time::Duration;

use bytes::Bytes;
use cyberine_process::{Exit, KillReport, OutputError, Running, Spawn, SpawnError, spawn};
use tokio::time::timeout;

use crate::error::{ClientError, StderrTail};

/// How long a server has to end once its input is closed, before it is told to.
const LEAVE: Duration = Duration::from_secs(1);

pub(crate) struct Child(Running);

impl Child {
    pub(crate) fn start(server: Spawn) -> Result<Self, SpawnError> {
        spawn(Spawn { hold_input: true, ..server }).map(Self)
    }

    /// Sends a line. A server that reads nothing more has ended, or will be: its output tells the
    /// story.
    pub(crate) fn say(&mut self, mut line: Vec<u8>) {
        line.push(b'\n');
        if self.0.send(line.into()).is_err() {
            tracing::debug!("an MCP server does not read what it is sent");
        }
    }

    /// The next bytes of its output; `None` at its end.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing the server said.
    pub(crate) async fn read(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.0.next_chunk().await.map_err(|error| match error {
            OutputError::TooMuch { limit } => ClientError::TooMuch { limit },
            source => ClientError::Output { source },
        })
    }

    /// Ends the server and says how it ended, or that it did not by itself.
    pub(crate) async fn ended(&mut self) -> ClientError {
        let left = self.left().await;
        let by_itself = left.is_some();
        let exit = match left {
            Some(exit) => Some(exit),
            None => self.killed().await,
        };
        let (status, stderr) = exit.map(|exit| (exit.status, exit.stderr)).unzip();
        let stderr = StderrTail(stderr.unwrap_or_default());
        match status {
            Some(status) if by_itself => {
                ClientError::Ended { success: status.success(), status: status.to_string(), stderr }
            }
            _ => {
                let status = "its output closed, and was killed".to_owned();
                ClientError::Ended { success: true, status, stderr }
            }
        }
    }

    /// Ends the server, and gives the last it said on its standard error.
    pub(crate) async fn last_words(&mut self) -> StderrTail {
        let exit = match self.left().await {
            Some(exit) => Some(exit),
            None => self.killed().await,
        };
        StderrTail(exit.map(|exit| exit.stderr).unwrap_or_default())
    }

    /// Closes the server's input and lets it end. `None` where it stays.
    async fn left(&mut self) -> Option<Exit> {
        self.0.close_input();
        timeout(LEAVE, self.0.finish()).await.ok()?.ok()
    }

    async fn killed(&mut self) -> Option<Exit> {
        self.0.kill_tree().await;
        timeout(LEAVE, self.0.finish()).await.ok()?.ok()
    }

    /// Ends it, for whoever asks what is left.
    pub(crate) async fn close(&mut self) -> KillReport {
        match self.left().await {
            Some(exit) => exit.left_behind,
            None => self.0.kill_tree().await,
        }
    }
}
