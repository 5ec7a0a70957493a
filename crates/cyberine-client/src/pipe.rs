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
        if !self.child.send(line.into()) {
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

    /// Ends the server and says how it ended.
    pub(crate) async fn ended(&mut self) -> ClientError {
        match self.end().await {
            Some(exit) => ClientError::Ended {
                success: exit.status.success(),
                status: exit.status.to_string(),
                stderr: StderrTail(exit.stderr),
            },
            None => ClientError::Ended {
                success: true,
                status: "its output closed".to_owned(),
                stderr: StderrTail::default(),
            },
        }
    }

    /// Closes the server's input, lets it end, and kills what does not. `None` where the system does
    /// not report its end.
    pub(crate) async fn end(&mut self) -> Option<Exit> {
        self.child.close_input();
        if let Ok(exit) = timeout(LEAVE, self.child.finish()).await {
            return exit.ok();
        }
        self.child.kill_tree().await;
        timeout(LEAVE, self.child.finish()).await.ok()?.ok()
    }

    /// The same, for whoever asks what is left.
    pub(crate) async fn close(&mut self) -> KillReport {
        self.child.close_input();
        match timeout(LEAVE, self.child.finish()).await {
            Ok(Ok(exit)) => exit.left_behind,
            _ => self.child.kill_tree().await,
        }
    }
}
