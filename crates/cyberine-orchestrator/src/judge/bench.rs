//! Jurors, each with one repair.

use cyberine_types::Usage;

use super::Juror;
use crate::text::preview;

/// The jurors of one judging: who is still in, how those failed that are not, what all have used.
#[derive(Debug)]
pub(crate) struct Bench {
    jurors: Vec<Juror>,
    out: Vec<bool>,
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
        let out = vec![false; jurors.len()];
        Self { jurors, out, repair: None, failures: Vec::new(), usage: Usage::default() }
    }

    /// The first that is in; `None` where nobody is left.
    pub(crate) fn juror(&self) -> Option<&Juror> {
        self.sitting().next().map(|(_, juror)| juror)
    }

    /// Those that are in, with their places.
    pub(crate) fn sitting(&self) -> impl Iterator<Item = (usize, &Juror)> {
        let all = self.jurors.iter().enumerate().zip(&self.out);
        all.filter(|(_, out)| !**out).map(|(juror, _)| juror)
    }

    /// The juror at a place, whether or not it is in.
    pub(crate) fn at(&self, place: usize) -> Option<&Juror> {
        self.jurors.get(place)
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

    /// Takes the reply of the first that is in.
    pub(crate) fn hear<T, E: std::fmt::Display>(
        &mut self,
        reply: Result<String, String>,
        usage: &Usage,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Heard<T> {
        let place = self.sitting().next().map(|(place, _)| place);
        place.map_or(Heard::Out, |place| self.hear_from(place, reply, usage, parse))
    }

    /// Takes the reply of the juror at `place`.
    pub(crate) fn hear_from<T, E: std::fmt::Display>(
        &mut self,
        place: usize,
        reply: Result<String, String>,
        usage: &Usage,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Heard<T> {
        self.usage = self.usage.plus(usage);
        let text = match reply {
            Ok(text) => text,
            Err(message) => return self.out(place, &message),
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
            Err(problem) => self.out(place, &format!("its reply did not hold twice: {problem}")),
        }
    }

    /// Puts the first that is in out, whose replies are not to be trusted.
    pub(crate) fn dismiss(&mut self, why: &str) {
        let place = self.sitting().next().map(|(place, _)| place);
        if let Some(place) = place {
            let _: Heard<()> = self.out(place, why);
        }
    }

    fn out<T>(&mut self, place: usize, why: &str) -> Heard<T> {
        if let (Some(juror), Some(out)) = (self.jurors.get(place), self.out.get_mut(place)) {
            self.failures.push(format!("`{}`: {}", juror.provider, preview(why, 400)));
            *out = true;
        }
        self.repair = None;
        Heard::Out
    }
}
