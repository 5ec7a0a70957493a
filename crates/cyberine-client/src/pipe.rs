//! One child and the session with it: bytes to the machine, lines to the child.

use std::collections::VecDeque;
use std::time::Duration;

use cyberine_process::{Exit, KillReport, OutputError, Running, Spawn, SpawnError, spawn};
use cyberine_protocol::{ClientEffect, ClientFault, ClientProfile, ClientSession, Opening};
use tokio::time::timeout;

use crate::error::{ClientError, StderrTail};

/// How long a server has to end once its input is closed, before it is told to.
const LEAVE: Duration = Duration::from_secs(1);

pub(crate) struct Pipe {
    child: Running,
    pub(crate) session: ClientSession,
    /// What is to be done, before anything else is read.
    effects: VecDeque<ClientEffect>,
    /// What follows those effects.
    fault: Option<ClientFault>,
    /// Whether the server has written anything.
    pub(crate) heard: bool,
}

impl Pipe {
    /// Starts a server and says the first word.
    pub(crate) fn start(server: Spawn, profile: ClientProfile, opening: Opening) -> Result<Self, SpawnError> {
        let child = spawn(Spawn { hold_input: true, ..server })?;
        let session = ClientSession::new(profile);
        let mut pipe = Self { child, session, effects: VecDeque::new(), fault: None, heard: false };
        let first = pipe.session.open(opening);
        pipe.say(first);
        Ok(pipe)
    }

    /// Sends a line. A server that reads nothing more has ended, or will be: its output tells the
    /// story.
    pub(crate) fn say(&mut self, mut line: Vec<u8>) {
        line.push(b'\n');
        if self.child.send(line.into()).is_err() {
            tracing::debug!("an MCP server does not read what it is sent");
        }
    }

    /// What the server says next, other than what is answered or ignored here.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing the server said.
    pub(crate) async fn next(&mut self) -> Result<ClientEffect, ClientError> {
        loop {
            match self.effects.pop_front() {
                Some(ClientEffect::Send(line)) => self.say(line),
                Some(ClientEffect::Ignored(ignored)) => tracing::debug!("an MCP server said: {ignored}"),
                Some(effect) => return Ok(effect),
                None => self.read().await?,
            }
        }
    }

    async fn read(&mut self) -> Result<(), ClientError> {
        if let Some(fault) = self.fault.clone() {
            let stderr = self.end().await.map(|exit| exit.stderr).unwrap_or_default();
            return Err(ClientError::Fault { fault, stderr: StderrTail(stderr) });
        }
        let mut effects = Vec::new();
        let outcome = match self.child.next_chunk().await {
            Ok(Some(bytes)) => {
                self.heard = true;
                self.session.receive(&bytes, &mut effects)
            }
            Ok(None) => {
                let rest = self.session.finish(&mut effects);
                if rest.is_ok() && effects.is_empty() {
                    return Err(self.ended().await);
                }
                rest
            }
            Err(OutputError::TooMuch { limit }) => return Err(ClientError::TooMuch { limit }),
            Err(source) => return Err(ClientError::Output { source }),
        };
        self.effects.extend(effects);
        self.fault = outcome.err();
        Ok(())
    }

    /// Ends the server and says how it ended, or that it did not by itself.
    async fn ended(&mut self) -> ClientError {
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

    /// Ends the server. `None` where the system does not report its end.
    pub(crate) async fn end(&mut self) -> Option<Exit> {
        match self.left().await {
            Some(exit) => Some(exit),
            None => self.killed().await,
        }
    }

    /// Closes the server's input and lets it end. `None` where it stays.
    async fn left(&mut self) -> Option<Exit> {
        self.child.close_input();
        timeout(LEAVE, self.child.finish()).await.ok()?.ok()
    }

    async fn killed(&mut self) -> Option<Exit> {
        self.child.kill_tree().await;
        timeout(LEAVE, self.child.finish()).await.ok()?.ok()
    }

    /// The same, for whoever asks what is left.
    pub(crate) async fn close(&mut self) -> KillReport {
        match self.left().await {
            Some(exit) => exit.left_behind,
            None => self.child.kill_tree().await,
        }
    }
}
