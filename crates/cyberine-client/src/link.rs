//! The session with one server and the wire under it: what the server says, one thing at a time.

use std::collections::VecDeque;

use cyberine_process::KillReport;
use cyberine_protocol::{
    Answers, Ask, CallKey, ClientEffect, ClientFault, ClientProfile, ClientSession, Opening,
};

use crate::child::Child;
use crate::error::{ClientError, StderrTail};
use crate::http::{Arrived, Http};

pub(crate) enum Wire {
    Child(Box<Child>),
    Http(Box<Http>),
}

pub(crate) struct Link {
    wire: Wire,
    pub(crate) session: ClientSession,
    /// What is to be done, before anything else is read.
    effects: VecDeque<ClientEffect>,
    /// What follows those effects.
    fault: Option<ClientFault>,
    /// Whether the server has said anything.
    pub(crate) heard: bool,
}

/// What comes next.
pub(crate) enum Next {
    Effect(ClientEffect),
    /// A request has lost its connection.
    Lost(CallKey, ClientError),
}

impl Link {
    /// Says the first word.
    pub(crate) fn open(wire: Wire, profile: ClientProfile, opening: Opening) -> Self {
        let session = ClientSession::new(profile);
        let mut link = Self { wire, session, effects: VecDeque::new(), fault: None, heard: false };
        let first = link.session.open(opening);
        link.say(first);
        link
    }

    pub(crate) fn http(&mut self) -> Option<&mut Http> {
        match &mut self.wire {
            Wire::Http(http) => Some(http),
            Wire::Child(_) => None,
        }
    }

    /// Sends a line that no answer is waited for, or the next one of a beginning.
    pub(crate) fn say(&mut self, line: Vec<u8>) {
        match &mut self.wire {
            Wire::Child(child) => child.say(line),
            Wire::Http(http) => http.say(line),
        }
    }

    /// Asks something. `mirrored` are the headers of its marked arguments, over HTTP.
    pub(crate) fn ask(
        &mut self,
        ask: &Ask,
        answers: Option<&Answers>,
        mirrored: Vec<(String, String)>,
    ) -> Result<CallKey, ClientError> {
        let Some(revision) = self.session.revision() else { return Err(ClientError::NotOpen) };
        let asked = match answers {
            Some(answers) => self.session.ask_again(ask, answers),
            None => self.session.ask(ask),
        };
        let (key, line) = asked.ok_or(ClientError::NoSuchMethod { method: ask.method(), revision })?;
        match &mut self.wire {
            Wire::Child(child) => child.say(line),
            Wire::Http(http) => http.ask(key, line, mirrored),
        }
        Ok(key)
    }

    /// Gives a request up, and tells the server.
    pub(crate) fn cancel(&mut self, key: CallKey) {
        let Some(line) = self.session.cancel(key, "nobody waits for it any more") else { return };
        match &mut self.wire {
            Wire::Child(child) => child.say(line),
            Wire::Http(http) => http.cancel(key, line),
        }
    }

    /// What the server says next, other than what is answered or ignored here.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing the server said.
    pub(crate) async fn next(&mut self) -> Result<Next, ClientError> {
        loop {
            match self.effects.pop_front() {
                Some(ClientEffect::Send(line)) => self.say(line),
                Some(ClientEffect::Ignored(ignored)) => tracing::debug!("an MCP server said: {ignored}"),
                Some(ClientEffect::Opened(facts)) => {
                    if let Wire::Http(http) = &mut self.wire {
                        http.listen();
                    }
                    return Ok(Next::Effect(ClientEffect::Opened(facts)));
                }
                Some(effect) => return Ok(Next::Effect(effect)),
                None => {
                    if let Some(lost) = self.read().await? {
                        return Ok(lost);
                    }
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Option<Next>, ClientError> {
        match &mut self.wire {
            Wire::Child(_) => self.read_child().await.map(|()| None),
            Wire::Http(http) => {
                let arrived = http.next().await;
                self.arrived(arrived)
            }
        }
    }

    async fn read_child(&mut self) -> Result<(), ClientError> {
        let Wire::Child(child) = &mut self.wire else { return Ok(()) };
        if let Some(fault) = self.fault.clone() {
            return Err(ClientError::Fault { fault, stderr: child.last_words().await });
        }
        let mut effects = Vec::new();
        let outcome = match child.read().await? {
            Some(bytes) => {
                self.heard = true;
                self.session.receive(&bytes, &mut effects)
            }
            None => {
                let rest = self.session.finish(&mut effects);
                if rest.is_ok() && effects.is_empty() {
                    return Err(child.ended().await);
                }
                rest
            }
        };
        self.effects.extend(effects);
        self.fault = outcome.err();
        Ok(())
    }

    fn arrived(&mut self, arrived: Arrived) -> Result<Option<Next>, ClientError> {
        match arrived {
            Arrived::Message { of, message } => {
                self.heard = true;
                let mut effects = Vec::new();
                let outcome = self.session.receive_message(&message, &mut effects);
                self.effects.extend(effects);
                if let (Wire::Http(http), Some(revision)) = (&mut self.wire, self.session.revision()) {
                    http.agreed(revision);
                }
                let Err(fault) = outcome else { return Ok(None) };
                match of {
                    Some(key) if self.session.lose(key) => {
                        self.http().into_iter().for_each(|http| http.forget(key));
                        Ok(Some(Next::Lost(key, ClientError::Answer { fault })))
                    }
                    Some(_) => Ok(None),
                    None => Err(ClientError::Answer { fault }),
                }
            }
            Arrived::Over { of: Some(key), why } => {
                let why = why.unwrap_or(ClientError::Cut);
                Ok(self.session.lose(key).then_some(Next::Lost(key, why)))
            }
            // The beginning: whatever a server of another era says to the first question, it is asked
            // the other.
            Arrived::Over { of: None, why: Some(why) } if self.session.revision().is_none() => {
                if !why.may_be_of_another_era() {
                    return Err(why);
                }
                match self.session.discover_is_late() {
                    Some(line) => self.say(line),
                    None => return Err(why),
                }
                Ok(None)
            }
            Arrived::Over { of: None, why } => {
                if let Some(why) = why {
                    tracing::debug!("an MCP server did not take a message: {why}");
                }
                Ok(None)
            }
        }
    }

    /// Ends a child and gives its last words; a server elsewhere says none.
    pub(crate) async fn last_words(&mut self) -> StderrTail {
        match &mut self.wire {
            Wire::Child(child) => child.last_words().await,
            Wire::Http(_) => StderrTail::default(),
        }
    }

    /// Ends the session, and a child with everything it started.
    pub(crate) async fn close(&mut self) -> KillReport {
        match &mut self.wire {
            Wire::Child(child) => child.close().await,
            Wire::Http(http) => {
                http.close().await;
                KillReport::default()
            }
        }
    }
}
