//! The ports: what the engines and the surfaces ask of a store, whatever it is made of.

use cyberine_types::{RunId, Timestamp};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::claim::Claim;
use crate::error::StoreError;
use crate::event::{Choice, DeciderKind, Event, OperatorDecision, RunEvent, RunState};
use crate::money::Reserve;
use crate::run::Run;

/// A run that somebody wants.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// Its id, drawn by the caller.
    pub id: RunId,
    /// `mcp-orchestrate`, `research`.
    pub workflow: String,
    /// The prompt, whole.
    pub prompt: String,
    /// The project's directory, absolute and canonical.
    pub cwd: String,
    /// Who asks: `name@version`, or `cli`.
    pub requested_by: String,
    /// What the engine is to do, frozen. Holds no secret.
    pub spec: Value,
}

/// The events of runs, and who may write them.
///
/// Every method that changes something returns after the change is durable. Implementations may
/// be used by many processes at once.
///
/// # Cancel safety
/// Dropping a future does not take back what it has begun: the change is made whole, or not at
/// all, and nobody is told which. A claim that was being taken is given up.
pub trait RunStore: Send + Sync {
    /// Records the run's first event and its reservation in one transaction, and returns the
    /// claim on it: from here on the run is this caller's to carry out or to hand over.
    ///
    /// # Errors
    /// [`StoreError::CapReached`] where held and spent money leave no room under one of the caps:
    /// nothing is recorded then.
    fn admit(&self, run: NewRun, reserve: Reserve) -> BoxFuture<'_, Result<Claim, StoreError>>;

    /// Appends `events` in one transaction and returns the last sequence number. `Settled`
    /// settles the reservation with what the run really used.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] where another claim has been taken since, or the run has settled.
    fn append<'a>(
        &'a self,
        claim: &'a Claim,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// The same, where `seen` is the last event of the run's log: what the holder does rests on
    /// what it has read, and nothing comes in between.
    ///
    /// # Errors
    /// [`StoreError::Moved`] where the log has gone on, by whoever's hand; nothing is recorded
    /// then. Otherwise as [`append`](Self::append).
    fn append_after<'a>(
        &'a self,
        claim: &'a Claim,
        seen: u64,
        events: Vec<RunEvent>,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Which directory the run was admitted for, whatever lies at its path now; `None` where there
    /// is no such run, or there was no such directory.
    fn project(&self, id: RunId) -> BoxFuture<'_, Result<Option<ProjectId>, StoreError>>;

    /// The run, folded; `None` where there is none of that id.
    fn load(&self, id: RunId) -> BoxFuture<'_, Result<Option<Run>, StoreError>>;

    /// The run's events after `after`, oldest first.
    fn events(&self, id: RunId, after: u64) -> BoxFuture<'_, Result<Vec<Event>, StoreError>>;

    /// Takes the claim on a run that is not over and whose holder is gone; `None` where the
    /// holder lives or the run is over. Of several who try, one succeeds.
    fn adopt(&self, id: RunId) -> BoxFuture<'_, Result<Option<Claim>, StoreError>>;

    /// The runs that are not over, oldest first.
    fn unsettled(&self) -> BoxFuture<'_, Result<Vec<RunId>, StoreError>>;

    /// Records that somebody wants the run stopped; its runner sees it at once. Idempotent.
    fn request_cancel(
        &self,
        id: RunId,
        by: String,
        reason: Option<String>,
    ) -> BoxFuture<'_, Result<CancelOutcome, StoreError>>;

    /// Records what somebody decided on the run or one of its steps, whether or not the run is
    /// over. Of several decisions on one target the first stands. A decision is a change like any
    /// other: it moves the run to the front of the list by last change, also after its end.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] where the comment has more than [`COMMENT_CHARS`] characters.
    fn decide(&self, id: RunId, wish: Wish) -> BoxFuture<'_, Result<DecideOutcome, StoreError>>;

    /// Returns once the run may have changed since its event `after` was its last, or after
    /// `timeout`. A hint: the caller looks again in either case.
    fn changed(&self, id: RunId, after: u64, timeout: std::time::Duration) -> BoxFuture<'_, ()>;
}

/// A project's directory by what it is: it keeps this wherever it is moved or mounted, and
/// another directory in its place has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProjectId {
    /// The device it is on.
    pub device: u64,
    /// Its inode.
    pub inode: u64,
}

/// What became of a request to stop a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The request is recorded (perhaps by an earlier one), and the run is not over yet.
    Requested,
    /// The run was over already, in this state.
    AlreadyFinished(RunState),
    /// There is no such run.
    NotFound,
}

/// The most characters that the comment of a decision may have.
pub const COMMENT_CHARS: usize = 4_000;

/// A decision somebody wants recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// What is decided.
    pub choice: Choice,
    /// The step; `None` for the whole run.
    pub step: Option<String>,
    /// Why; at most [`COMMENT_CHARS`] characters, kept as they are.
    pub comment: Option<String>,
    /// Who decides, as they call themselves.
    pub by: String,
    /// What they are, as this process knows itself.
    pub kind: DeciderKind,
}

impl Wish {
    /// Refuses a comment that is too long to be kept.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let found = self.comment.as_deref().map_or(0, |comment| comment.chars().count());
        if found > COMMENT_CHARS {
            let (what, unit) = ("comment", "characters");
            return Err(StoreError::TooLarge { what, found, limit: COMMENT_CHARS, unit });
        }
        Ok(())
    }
}

/// What became of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecideOutcome {
    /// It is recorded.
    Recorded(OperatorDecision),
    /// This decision on the same target was recorded before, and stands.
    Standing(OperatorDecision),
    /// The run has no such step.
    UnknownStep {
        /// The steps it has.
        known: Vec<String>,
    },
    /// There is no such run.
    NotFound,
}

/// What became of calls that carried a key: the second call with a key gets the first one's
/// result. Durable, and shared by all processes of a home. A key is known for 30 days after it
/// was opened, and is new again then. Whoever opens one drops some that are older.
pub trait Idempotency: Send + Sync {
    /// Opens the key, or finds what became of it. `draft` is what the caller would name its work
    /// by (a run's id, a message's id), should the key be new. Of several who open one key at
    /// once, one finds it new, and the others find that one's draft.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] where the key, its scope, its fingerprint or the draft takes more
    /// than 8 KiB.
    fn begin(&self, key: IdempotencyKey, draft: String) -> BoxFuture<'_, Result<Begun, StoreError>>;

    /// Records the result of the work the key was opened for. The first result stands: a second
    /// one is let go.
    ///
    /// # Errors
    /// [`StoreError::KeyNotOpen`] where the key was not opened with this fingerprint, or longer
    /// ago than it is kept; [`StoreError::TooLarge`] where the result takes more than 64 KiB as
    /// JSON. The work is done all the same, and its key stays unfinished.
    fn finish(&self, key: IdempotencyKey, result: Value) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Names the work anew, where `old` names work that came to nothing and has no result. Of
    /// several who find it so, one gives the name ([`Begun::Fresh`]); every other one is told how the
    /// key stands then.
    ///
    /// # Errors
    /// [`StoreError::KeyNotOpen`] where the key is not known; otherwise as [`begin`](Self::begin).
    fn redraft(
        &self,
        key: IdempotencyKey,
        old: String,
        new: String,
    ) -> BoxFuture<'_, Result<Begun, StoreError>>;
}

/// A key of a caller's choice, and what it was given for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey {
    /// Within what the key is unique: the principal and the project.
    pub scope: String,
    /// The key, as given.
    pub key: String,
    /// A digest of the operation's name and all its other arguments.
    pub fingerprint: String,
}

/// How a key stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// It is new: do the work, under `draft`.
    Fresh,
    /// It was opened before, and its work has no result yet: another call is at it, or was cut off.
    /// Do the work under this earlier draft, after a look whether it is done.
    Unfinished {
        /// What the work is named by.
        draft: String,
    },
    /// Its work has this result.
    Finished(Value),
    /// It was given for something else.
    Conflict,
}

/// All runs of a home, across its projects.
pub trait Registry: Send + Sync {
    /// Runs whose prompt, workflow, directory, state, id or winner preview contains `text`
    /// (literally, letter case aside; the empty text is in all of them), newest first. What no
    /// index can find is looked for in so many of the newest runs: a text of one or two
    /// characters in 2,000 of them, one of more than 200 in 200 of those that begin to match.
    fn query(&self, text: String, limit: u32) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>>;

    /// Runs by their last change, newest first, those after `after`; of equal times the run that
    /// was admitted later comes first. A run that changes between two calls moves to the front,
    /// and moves no other.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where there is no run of the cursor's id.
    fn recent(&self, after: Option<Cursor>, limit: u32)
    -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>>;
}

/// A place in the list of runs by their last change: that of a run as it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// When the run had last changed.
    pub updated_at: Timestamp,
    /// The run.
    pub run: RunId,
}

impl From<&RunSummary> for Cursor {
    fn from(shown: &RunSummary) -> Self {
        Self { updated_at: shown.updated_at, run: shown.run_id }
    }
}

/// One line about a run.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// The run's id.
    pub run_id: RunId,
    /// Its workflow.
    pub workflow_name: String,
    /// How it stands.
    pub state: RunState,
    /// One line for people.
    pub detail: String,
    /// The prompt's first 200 characters.
    pub task_preview: String,
    /// The project's directory.
    pub cwd: String,
    /// The winner's first 200 characters, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner_preview: Option<String>,
    /// When it was admitted.
    pub started_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}
