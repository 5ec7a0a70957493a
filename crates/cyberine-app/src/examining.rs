//! Examining judges: a run of its own, carried out in this process, with money held for it.

use std::sync::Arc;
use std::time::Duration;

use cyberine_orchestrator::{
    Allowance, Case, Estimate, Examination, Inquiry, JudgeReport, Plan, Planned, Reaper as _, cases,
    estimate, inquire,
};
use cyberine_provider::Provider;
use cyberine_run_store::{CandidateError, Claim, NewRun, Reserve, RunEvent, RunState, RunStore};
use cyberine_types::RunId;
use tokio_util::sync::CancellationToken;

use crate::gates::Gates;
use crate::problem::Problem;
use crate::reaper::MarkReaper;
use crate::team;
use crate::workplace::Workplace;

/// The workflow's name in records and views.
const WORKFLOW: &str = "judge-selftest";

/// How often a question under way looks whether somebody has cancelled the run.
const LOOK: Duration = Duration::from_millis(500);

/// An examination that could begin.
#[derive(Debug, Clone)]
pub struct Examining {
    plan: Plan,
    cases: Vec<Case>,
    reserve: Reserve,
    /// What it may cost, by judge.
    pub estimate: Estimate,
}

/// What became of an examination.
#[derive(Debug, Clone)]
pub struct Examined {
    /// The run it is on record as.
    pub run: RunId,
    /// What the judges have made of the cases they were put, in the order they were asked.
    pub reports: Vec<JudgeReport>,
    /// Why it ended before its end, where it did. The last of the reports is then of some cases only,
    /// and says nothing about its judge.
    pub stopped: Option<String>,
}

impl Examined {
    /// Whether the judge of the report at `place` is fit; `None` where it was not put all cases.
    #[must_use]
    pub fn is_fit(&self, place: usize) -> Option<bool> {
        let is_whole = self.stopped.is_none() || place + 1 < self.reports.len();
        self.reports.get(place).filter(|_| is_whole).map(JudgeReport::is_fit)
    }
}

impl Examining {
    /// The judges, in the order they are asked.
    #[must_use]
    pub fn judges(&self) -> &[Planned] {
        &self.plan.judge_providers
    }

    /// How many cases each of them is put.
    #[must_use]
    pub fn cases(&self) -> usize {
        Examination::count(&self.cases)
    }

    /// The least and the most questions for each of them.
    #[must_use]
    pub fn calls(&self) -> (usize, usize) {
        Examination::calls(&self.cases)
    }

    /// What is held for all of it.
    #[must_use]
    pub const fn reserve(&self) -> &Reserve {
        &self.reserve
    }
}

impl Workplace {
    /// What examining the judges of these names, or all that are configured, would do: with at most
    /// `most` cases of each group. Nobody is asked, and nothing is recorded.
    ///
    /// # Errors
    /// Where the configuration is wrong, or a name is nobody's.
    pub async fn examining(&self, judges: &[String], most: usize, by: &str) -> Result<Examining, Problem> {
        let planning = self
            .planned(|config| {
                if !judges.is_empty() {
                    config.judge_providers = judges.to_vec();
                }
            })
            .await?;
        let plan = Plan { candidates: Vec::new(), ..planning.plan };
        let cases = cases(most);
        let estimate = estimate(&plan.judge_providers, &cases, plan.limits);
        let reserve = estimate.reserve(&planning.config.budget.caps(), by);
        Ok(Examining { plan, cases, reserve, estimate })
    }

    /// Examines the judges one after the other; `told` hears of every case that is done. Ends early
    /// where `cancel` says so, somebody cancels the run, or what it holds is used up.
    ///
    /// # Errors
    /// Where the day's money leaves no room for it, or the store fails.
    pub async fn examine(
        &self,
        examining: &Examining,
        by: &str,
        cancel: CancellationToken,
        told: impl FnMut(&str, usize, usize),
    ) -> Result<Examined, Problem> {
        let names: Vec<&str> = examining.judges().iter().map(|judge| judge.name.as_str()).collect();
        let run = RunId::random();
        let new = NewRun {
            id: run,
            workflow: WORKFLOW.to_owned(),
            prompt: format!("judge selftest: {}", names.join(", ")),
            cwd: self.cwd()?,
            requested_by: by.to_owned(),
            spec: examining.plan.to_spec().map_err(|error| Problem::of(crate::Exit::Internal, &error))?,
        };
        let claim = self.store.admit(new, examining.reserve.clone()).await?;
        let team = team::team(&examining.plan, &self.environment, &Gates::of(&self.home));
        let mut course = Course {
            workplace: self,
            examining,
            claim,
            allowance: Allowance::new(&examining.plan, &examining.reserve),
            cancel,
            told,
        };
        course.append(RunEvent::Started { pid: std::process::id() }).await?;
        let (mut reports, mut stopped) = (Vec::new(), None);
        for judge in examining.judges() {
            let Some(provider) = team.judges.get(&judge.name) else { continue };
            let (report, ended) = course.one(judge, provider).await?;
            reports.push(report);
            if ended.is_some() {
                stopped = ended;
                break;
            }
        }
        course.settle(&reports, stopped.as_deref()).await?;
        Ok(Examined { run, reports, stopped })
    }
}

/// An examination under way.
struct Course<'a, T> {
    workplace: &'a Workplace,
    examining: &'a Examining,
    claim: Claim,
    allowance: Allowance,
    cancel: CancellationToken,
    told: T,
}

impl<T: FnMut(&str, usize, usize)> Course<'_, T> {
    async fn append(&self, event: RunEvent) -> Result<(), Problem> {
        self.workplace.store.append(&self.claim, vec![event]).await?;
        Ok(())
    }

    /// Examines one judge; with why it ended before its end, where it did.
    async fn one(
        &mut self,
        judge: &Planned,
        provider: &Arc<dyn Provider>,
    ) -> Result<(JudgeReport, Option<String>), Problem> {
        let (step, name) = (judge.name.clone(), format!("Selftest of {}", judge.name));
        self.append(RunEvent::StepStarted { step, name }).await?;
        let mut examination = Examination::new(&judge.name, self.examining.cases.clone());
        while let Some(inquiry) = examination.next(|| RunId::random().to_string()) {
            if let Some(why) = self.stops(&judge.name, &inquiry).await? {
                return Ok((examination.report(), Some(why)));
            }
            let (reply, usage) = self.ask(judge, provider, inquiry).await?;
            // A question that was stopped says nothing about the judge.
            if let Some(why) = self.told_to_stop().await?.filter(|_| reply.is_err()) {
                return Ok((examination.report(), Some(why)));
            }
            examination.replied(reply, &usage);
            (self.told)(&judge.name, examination.done(), self.examining.cases());
        }
        Ok((examination.report(), None))
    }

    /// Why the question is not to be asked, where it is not.
    async fn stops(&mut self, judge: &str, inquiry: &Inquiry) -> Result<Option<String>, Problem> {
        match self.told_to_stop().await? {
            Some(why) => Ok(Some(why)),
            None => Ok(self.allowance.take(judge, inquiry).err()),
        }
    }

    /// Who has told it to stop, in words.
    async fn told_to_stop(&self) -> Result<Option<String>, Problem> {
        if self.cancel.is_cancelled() {
            return Ok(Some("it was interrupted".to_owned()));
        }
        let run = self.workplace.store.load(self.claim.run()).await?;
        Ok(run.and_then(|run| run.cancel_requested_by).map(|by| format!("{by} cancelled it")))
    }

    /// Resolves once somebody has told it to stop.
    async fn stopping(&self) -> Result<(), Problem> {
        while self.told_to_stop().await?.is_none() {
            tokio::select! {
                () = self.cancel.cancelled() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
        Ok(())
    }

    async fn ask(
        &mut self,
        judge: &Planned,
        provider: &Arc<dyn Provider>,
        inquiry: Inquiry,
    ) -> Result<(Result<String, String>, cyberine_types::Usage), Problem> {
        let info = provider.info();
        self.append(RunEvent::JudgeAsked {
            step: judge.name.clone(),
            judge: judge.name.clone(),
            kind: info.kind.clone(),
            model: info.model.clone(),
            billing: info.billing,
        })
        .await?;
        let limits = self.examining.plan.limits;
        let cwd = self.workplace.project.directory().to_owned();
        let mark = self.claim.run().to_string();
        let stop = CancellationToken::new();
        let mut asking = Box::pin(inquire(Arc::clone(provider), inquiry, limits, cwd, mark, stop.clone()));
        let replied = tokio::select! {
            replied = &mut asking => replied,
            told = self.stopping() => {
                told?;
                stop.cancel();
                asking.await
            }
        };
        let failure = replied.answer.as_ref().err();
        self.allowance.settle(&replied.usage, failure.map(|error| error.code()));
        let error =
            failure.map(|error| CandidateError { code: error.code().to_owned(), message: error.to_string() });
        self.append(RunEvent::JudgeReplied {
            step: judge.name.clone(),
            judge: judge.name.clone(),
            error,
            usage: replied.usage,
            duration_ms: replied.duration_ms,
        })
        .await?;
        Ok((replied.answer.map_err(|error| error.to_string()), replied.usage))
    }

    async fn settle(self, reports: &[JudgeReport], stopped: Option<&str>) -> Result<(), Problem> {
        let fit = reports.iter().filter(|report| report.is_fit()).count();
        let (state, detail) = match stopped {
            Some(why) => (RunState::Cancelled, format!("stopped: {why}")),
            None => (RunState::Done, format!("{fit} of {} judges are fit", reports.len())),
        };
        let processes = MarkReaper::Leftovers.reap(self.claim.run()).await;
        self.append(RunEvent::Settled { state, detail, reason: None, processes }).await
    }
}
