//! The one place that asks again: a provider around a provider, behind its account's gate.

mod rule;

use std::sync::Arc;
use std::time::Duration;

use cyberine_types::{Clock as _, SystemClock, Timestamp};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::ProviderConfig;
use crate::error::TurnError;
use crate::gate::{AccountGate, Entry, GateError, LONGEST_CLOSED, Place};
use crate::port::{Capabilities, Provider, ProviderInfo, StopReason, Turn, TurnEvent};
use crate::probe::Probe;
use crate::stream::{Emitter, turn_stream};
use rule::{Answerer, Next, next};

/// How often a gate is asked again while another turn tries, and for a place.
const LOOK: Duration = Duration::from_millis(200);

/// A number from 0 to 1, drawn.
type Dice = Arc<dyn Fn() -> f64 + Send + Sync>;

/// `provider`, which `config` describes, behind the gate of its account: a turn that fails without
/// having been let in is taken again, at most `retries` times. Whatever has said a word, called a
/// tool or used a token is not.
#[must_use]
pub fn retrying(
    provider: Arc<dyn Provider>,
    config: &ProviderConfig,
    retries: u32,
    gate: Arc<dyn AccountGate>,
) -> Arc<dyn Provider> {
    Arc::new(Retrying::new(provider, config, retries, gate, Arc::new(draw)))
}

struct Retrying {
    config: ProviderConfig,
    course: Course,
}

/// What it takes to take a turn.
#[derive(Clone)]
struct Course {
    provider: Arc<dyn Provider>,
    gate: Arc<dyn AccountGate>,
    answerer: Answerer,
    dice: Dice,
}

impl Retrying {
    fn new(
        provider: Arc<dyn Provider>,
        config: &ProviderConfig,
        retries: u32,
        gate: Arc<dyn AccountGate>,
        dice: Dice,
    ) -> Self {
        let answerer = Answerer::of(&config.profile(), retries);
        Self { config: config.clone(), course: Course { provider, gate, answerer, dice } }
    }
}

impl Provider for Retrying {
    fn info(&self) -> &ProviderInfo {
        self.course.provider.info()
    }

    fn capabilities(&self) -> Capabilities {
        self.course.provider.capabilities()
    }

    fn probe(&self) -> BoxFuture<'_, Probe> {
        self.course.provider.probe()
    }

    fn turn(
        &self,
        turn: Turn,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<TurnEvent, TurnError>> {
        let wall = self.config.limits(turn.limits).wall;
        let course = self.course.clone();
        turn_stream(move |out| {
            let number = random();
            Taking { course, turn, number, wall, begun: Instant::now(), cancel, out }.take()
        })
    }
}

/// One turn on its way.
struct Taking {
    course: Course,
    turn: Turn,
    number: u64,
    /// The longest it may take, with all that is waited and asked again.
    wall: Duration,
    begun: Instant,
    cancel: CancellationToken,
    out: Emitter,
}

/// How one attempt went.
struct Attempt {
    outcome: Result<StopReason, TurnError>,
    /// Something came that was paid for or said.
    delivered: bool,
}

impl Taking {
    async fn take(self) -> Result<StopReason, TurnError> {
        let mut failed = 0;
        loop {
            let place = self.admitted().await?;
            let Attempt { outcome, delivered } = self.attempt(failed > 0).await;
            drop(place);
            let error = match outcome {
                Ok(stop) => {
                    self.tell_gate(true).await;
                    return Ok(stop);
                }
                Err(error) => error,
            };
            let Next { wait, closes, again } =
                next(&error, delivered, failed, &self.course.answerer, &*self.course.dice);
            let told = closes && self.close(wait, &error).await;
            if !closes {
                self.tell_gate(rule::let_in(&error)).await;
            }
            if !again {
                return Err(error);
            }
            if wait > self.left() {
                return Err(rule::too_long(error, asked_at(wait), self.left()));
            }
            failed += 1;
            if !told {
                self.wait(wait, error.to_string()).await?;
            }
        }
    }

    /// Waits until the gate lets the turn begin, and for a place.
    async fn admitted(&self) -> Result<Option<Place>, TurnError> {
        let mut spread = None;
        let mut told = None;
        loop {
            match self.course.gate.enter(self.number).await {
                Ok(Entry::Trial) => break,
                Ok(Entry::Open) => match spread.take() {
                    // All who waited find it open at once, and must not come at once.
                    Some(spread) => self.sleep(Duration::mul_f64(spread, (self.course.dice)())).await?,
                    None => break,
                },
                Ok(Entry::Closed { left, reason, spread: within }) => {
                    if left > self.left() {
                        return Err(rule::closed(&reason, asked_at(left), self.left()));
                    }
                    spread = Some(within);
                    if told.replace(reason.clone()) != Some(reason.clone()) {
                        self.tell(left, reason).await;
                    }
                    self.sleep(left).await?;
                }
                Ok(Entry::Tried { left, spread: within }) => {
                    spread = Some(within);
                    self.sleep(left.min(LOOK)).await?;
                }
                Err(error) => {
                    complain(&error);
                    break;
                }
            }
        }
        self.place().await
    }

    async fn place(&self) -> Result<Option<Place>, TurnError> {
        let mut told = false;
        loop {
            match self.course.gate.place().await {
                Ok(Some(place)) => return Ok(Some(place)),
                Ok(None) => {}
                Err(error) => {
                    complain(&error);
                    return Ok(None);
                }
            }
            if !std::mem::replace(&mut told, true) {
                self.tell(Duration::ZERO, "as many turns of this account run as may at once".to_owned())
                    .await;
            }
            self.sleep(LOOK.mul_f64(0.5 + (self.course.dice)())).await?;
        }
    }

    /// Takes the turn once. A repeated one ends with the time that there is for all of it; the first
    /// has its own end.
    async fn attempt(&self, repeated: bool) -> Attempt {
        let cancel = self.cancel.child_token();
        let mut stream = self.course.provider.turn(self.turn.clone(), cancel.clone());
        let (mut delivered, mut late) = (false, false);
        loop {
            let next = tokio::select! {
                biased;
                next = stream.next() => next,
                () = tokio::time::sleep(self.left()), if repeated && !late => {
                    late = true;
                    cancel.cancel();
                    continue;
                }
            };
            match next {
                Some(Ok(TurnEvent::Stop(stop))) => return Attempt { outcome: Ok(stop), delivered },
                Some(Ok(event)) => {
                    if !delivered && rule::delivers(&event) {
                        delivered = true;
                        self.tell_gate(true).await;
                    }
                    self.out.send(&mut vec![event]).await;
                }
                Some(Err(TurnError::Cancelled)) if late => {
                    return Attempt { outcome: Err(TurnError::WallTimeout { limit: self.wall }), delivered };
                }
                Some(Err(error)) => return Attempt { outcome: Err(error), delivered },
                None => {
                    let detail = "the adapter's stream ended without a stop".to_owned();
                    return Attempt { outcome: Err(TurnError::Cut { detail }), delivered };
                }
            }
        }
    }

    /// Closes the account for all; `false` where the gate does not work.
    async fn close(&self, wait: Duration, error: &TurnError) -> bool {
        match self.course.gate.close(self.number, wait, error.to_string()).await {
            Ok(()) => true,
            Err(error) => {
                complain(&error);
                false
            }
        }
    }

    async fn tell_gate(&self, let_in: bool) {
        if let Err(error) = self.course.gate.leave(self.number, let_in).await {
            complain(&error);
        }
    }

    async fn wait(&self, wait: Duration, reason: String) -> Result<(), TurnError> {
        self.tell(wait, reason).await;
        self.sleep(wait).await
    }

    async fn tell(&self, wait: Duration, reason: String) {
        self.out.send(&mut vec![TurnEvent::Waiting { wait, reason }]).await;
    }

    async fn sleep(&self, wait: Duration) -> Result<(), TurnError> {
        let left = self.left();
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(TurnError::Cancelled),
            () = tokio::time::sleep(left), if left < wait => Err(TurnError::WallTimeout { limit: self.wall }),
            () = tokio::time::sleep(wait) => Ok(()),
        }
    }

    fn left(&self) -> Duration {
        self.wall.saturating_sub(self.begun.elapsed())
    }
}

/// When an account that is closed for `wait` from now on is asked again.
fn asked_at(wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.min(LONGEST_CLOSED).as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_unix_ms(SystemClock.now().unix_ms().saturating_add(wait))
}

fn complain(error: &GateError) {
    tracing::warn!("{error}; the turn goes on without it");
}

fn random() -> u64 {
    // Without randomness turns may be taken for each other at the gate, which costs a wait at most.
    getrandom::u64().unwrap_or_default()
}

fn draw() -> f64 {
    f64::from(u32::try_from(random() >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests;
