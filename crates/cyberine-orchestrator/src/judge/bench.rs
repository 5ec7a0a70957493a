//! Jurors one after the other, each with one repair.

use cyberine_types::Usage;

use super::Juror;
use crate::text::preview;

/// The jurors of one judging: the one that is asked, those that failed, and what they used.
#[derive(Debug)]
pub(crate) struct Bench {
    jurors: Vec<Juror>,
    at: usize,
    repair: Option<(String, String)>,
    failures: Vec<String>,
    usage: Usage,
}

/// What has become of a question.
#[derive(Debug, PartialEq)]
pub(crate) enum Heard<T> {
    /// A reply that holds.
    Reply(T),
    /// It did not hold: the same question, once more, with what is wrong.
    Again,
    /// The juror is out; the next one starts afresh.
    Out,
}

impl Bench {
    pub(crate) fn new(jurors: Vec<Juror>) -> Self {
        Self { jurors, at: 0, repair: None, failures: Vec::new(), usage: Usage::default() }
    }

    /// Who is asked; `None` where nobody is left.
    pub(crate) fn juror(&self) -> Option<&Juror> {
        self.jurors.get(self.at)
    }

    /// The reply that was not accepted and why, where the question is asked once more.
    pub(crate) const fn repair(&self) -> Option<&(String, String)> {
        self.repair.as_ref()
    }

    pub(crate) const fn usage(&self) -> Usage {
        self.usage
    }

    /// Who failed, and how.
    pub(crate) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// What has to be said of those that failed; empty where nobody did.
    pub(crate) fn failed_before(&self) -> String {
        if self.failures.is_empty() {
            return String::new();
        }
        format!("Judges that failed before: {}. ", self.failures.join("; "))
    }

    /// Takes the reply to the last question.
    pub(crate) fn hear<T, E: std::fmt::Display>(
        &mut self,
        reply: Result<String, String>,
        usage: &Usage,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Heard<T> {
        self.usage = self.usage.plus(usage);
        let text = match reply {
            Ok(text) => text,
            Err(message) => return self.out(&message),
        };
        match parse(&text) {
            Ok(reply) => {
                self.repair = None;
                Heard::Reply(reply)
            }
            Err(problem) if self.repair.is_none() => {
                self.repair = Some((text, problem.to_string()));
                Heard::Again
            }
            Err(problem) => self.out(&format!("its reply did not hold twice: {problem}")),
        }
    }

    fn out<T>(&mut self, why: &str) -> Heard<T> {
        if let Some(juror) = self.jurors.get(self.at) {
            self.failures.push(format!("`{}`: {}", juror.provider, preview(why, 400)));
        }
        self.at += 1;
        self.repair = None;
        Heard::Out
    }
}
