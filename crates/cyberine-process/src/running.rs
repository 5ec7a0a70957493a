use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::environment::SPAWN_MARK;
use crate::start::{self, Group, Start, Streams};
use crate::tree::{self, KillReport, Scope};
use crate::{ChildEnvironment, OutputError, SendError, SpawnError};

mod pump;
mod queue;

pub use pump::TAIL_BYTES;

/// Chunks on their way from the child to the caller; beyond that the child waits.
const CHUNKS_IN_FLIGHT: usize = 16;

/// How long what a child that has ended left behind may still write, and how long the pipe may stay
/// silent before the output counts as complete, where a process nobody finds keeps it open.
const DRAIN: Duration = Duration::from_millis(250);

/// How much is read once a child has ended and what it left behind has been killed. No pipe holds
/// more: what comes beyond is not the child's.
const LEFT_IN_PIPE: usize = 2 * 1024 * 1024;

/// How long to wait for the system to report the end of a child that was killed.
const REAP: Duration = Duration::from_secs(1);

/// A program to start.
///
/// Whatever is long or secret goes on the input: arguments are visible to every user of the
/// machine, and the system bounds their size (128 KiB each on Linux).
#[derive(Debug, Clone)]
pub struct Spawn {
    /// The program: a name to look up in the `PATH` of `environment`, or a path.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub environment: ChildEnvironment,
    /// The directory it works in.
    pub cwd: PathBuf,
    /// What it reads on its standard input, which is closed afterwards.
    pub input: Bytes,
    /// Whether its standard input stays open for [`Running::send`].
    pub hold_input: bool,
    /// How many bytes it may write to its standard output in all. Beyond that it is killed.
    pub output_limit: usize,
    /// How long it has, after a polite signal, before it is killed.
    pub grace: Duration,
}

impl Spawn {
    /// A program with no arguments and no input, at most 16 MiB of output and two seconds of grace.
    #[must_use]
    pub fn new(program: impl Into<OsString>, environment: ChildEnvironment, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            environment,
            cwd: cwd.into(),
            input: Bytes::new(),
            hold_input: false,
            output_limit: 16 * 1024 * 1024,
            grace: Duration::from_secs(2),
        }
    }
}

/// Starts a program in a process group of its own. Call it inside a tokio runtime.
///
/// Its input is a pipe that is written and closed, never ours; its output comes in chunks through
/// [`Running::next_chunk`]; its error stream is read all the time and its last 8 KiB are kept.
///
/// # Errors
///
/// Says what is missing when the program or its directory is not there.
pub fn spawn(spawn: Spawn) -> Result<Running, SpawnError> {
    let token = spawn_token();
    let environment = spawn.environment.set(SPAWN_MARK, token.as_str());
    let start =
        Start { program: &spawn.program, args: &spawn.args, environment: &environment, cwd: &spawn.cwd };
    let streams = Streams { input: Stdio::piped(), output: Stdio::piped(), errors: Stdio::piped() };
    let mut child = start::start(&start, streams, Group::Own)?;

    let (sender, output) = mpsc::channel(CHUNKS_IN_FLIGHT);
    let tail = Arc::default();
    let mut pumps = JoinSet::new();
    let (input, more) = queue::queue();
    if let Some(pipe) = child.stdin.take() {
        pumps.spawn(pump::feed(pipe, spawn.input, more));
    }
    let input = spawn.hold_input.then_some(input);
    if let Some(pipe) = child.stdout.take() {
        pumps.spawn(pump::forward(pipe, spawn.output_limit, sender));
    }
    if let Some(pipe) = child.stderr.take() {
        pumps.spawn(pump::keep_tail(pipe, Arc::clone(&tail)));
    }
    let pid = child.id();
    let (grace, after) = (spawn.grace, After::default());
    Ok(Running { pid, child, token, input, output, tail, pumps, grace, status: None, after })
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code or the signal that ended it.
    pub status: ExitStatus,
    /// The last 8 KiB of its error stream, bytes that are not UTF-8 replaced.
    pub stderr: String,
    /// How many bytes its error stream had in all.
    pub stderr_bytes: u64,
    /// What it left behind, which has been killed.
    pub left_behind: KillReport,
}

/// A child, its pumps, and everything it started.
///
/// Dropping it kills what can be found of the tree in one pass; [`Running::kill_tree`] repeats
/// that until nothing is left, and says so.
#[derive(Debug)]
pub struct Running {
    pid: Option<u32>,
    child: Child,
    token: String,
    /// Open as long as more may be said to the child.
    input: Option<queue::Sender>,
    output: mpsc::Receiver<Result<Bytes, OutputError>>,
    tail: Arc<Mutex<pump::Tail>>,
    pumps: JoinSet<()>,
    grace: Duration,
    /// Set once the child has been reaped: its pid means nothing from then on.
    status: Option<ExitStatus>,
    after: After,
}

/// What is known once the child has ended.
#[derive(Debug, Default)]
struct After {
    /// Until when what it left behind may go on.
    patience: Option<Instant>,
    /// What came of killing that.
    left_behind: Option<KillReport>,
    /// How much has been read since.
    read: usize,
}

impl Running {
    /// The child's process id.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Says more to a child whose input is held open ([`Spawn::hold_input`]), after what was said
    /// before.
    ///
    /// # Errors
    ///
    /// The child does not hear this message: [`SendError::Closed`] where its input is, and
    /// [`SendError::Full`] where it has left 8 MiB unread.
    pub fn send(&mut self, message: Bytes) -> Result<(), SendError> {
        self.input.as_ref().ok_or(SendError::Closed)?.send(message)
    }

    /// Closes the child's input, once everything that was said has been written.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// The next bytes the child wrote, cut wherever the system cut them: a chunk can end in the
    /// middle of a character or a line. `None` at the end of the output: the pipe is closed, or
    /// the child has ended and what was written by then is read. What a child that has ended left
    /// behind has a quarter of a second to end, too, and is killed then.
    ///
    /// # Errors
    ///
    /// [`OutputError::TooMuch`] beyond the limit; the child's group has then been killed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no chunk.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, OutputError> {
        if self.status.is_none() {
            tokio::select! {
                biased;
                chunk = self.output.recv() => return self.chunk(chunk),
                status = self.child.wait() => self.status = status.ok(),
            }
        }
        // A wait that failed leaves the status unknown; the pipe then ends the output.
        if self.after.left_behind.is_none() {
            let until = *self.after.patience.get_or_insert_with(|| Instant::now() + DRAIN);
            if Instant::now() < until
                && let Ok(chunk) = timeout_at(until, self.output.recv()).await
            {
                return self.chunk(chunk);
            }
            self.after.left_behind = Some(self.kill(Duration::ZERO).await);
        }
        let Ok(chunk) = timeout(DRAIN, self.output.recv()).await else { return Ok(None) };
        let chunk = self.chunk(chunk)?;
        self.after.read += chunk.as_ref().map_or(0, Bytes::len);
        Ok(chunk.filter(|_| self.after.read <= LEFT_IN_PIPE))
    }

    /// The last 8 KiB of its error stream so far, bytes that are not UTF-8 replaced.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text().0
    }

    /// How many bytes its error stream had so far.
    #[must_use]
    pub fn stderr_bytes(&self) -> u64 {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text().1
    }

    /// Waits for the child's end and kills what it left behind. Output that was not fetched is
    /// read and dropped; the limit holds for it, too.
    ///
    /// # Errors
    ///
    /// Fails when the system cannot report the child's end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the waiting only; call again.
    pub async fn finish(&mut self) -> std::io::Result<Exit> {
        let status = match self.status {
            Some(status) => status,
            None => loop {
                tokio::select! {
                    status = self.child.wait() => break status?,
                    Some(chunk) = self.output.recv() => { let _ = self.chunk(Some(chunk)); }
                }
            },
        };
        self.status = Some(status);
        // What is still on its way has no reader any more; nobody must wait for one.
        self.output.close();
        let last = self.kill(Duration::ZERO).await;
        let earlier = self.after.left_behind.unwrap_or_default().killed;
        let left_behind = KillReport { killed: earlier + last.killed, left: last.left };
        // With the tree gone the pumps come to their end; a pipe someone else holds must not hold us.
        let _ = timeout(DRAIN, async { while self.pumps.join_next().await.is_some() {} }).await;
        let (stderr, stderr_bytes) = self.tail.lock().unwrap_or_else(PoisonError::into_inner).text();
        Ok(Exit { status, stderr, stderr_bytes, left_behind })
    }

    /// Ends the child and everything it started: a polite signal, the grace, then SIGKILL to the
    /// group and to whatever `/proc` shows to stem from it, repeated until nothing is left or
    /// five seconds have passed. Also finds what left the group and the session, where this
    /// process is a subreaper ([`crate::enter_session`]) or the environment was kept.
    ///
    /// # Cancel safety
    ///
    /// The killing goes on when the future is dropped; only the report is lost.
    pub async fn kill_tree(&mut self) -> KillReport {
        let report = self.kill(self.grace).await;
        if self.status.is_none()
            && let Ok(Ok(status)) = timeout(REAP, self.child.wait()).await
        {
            self.status = Some(status);
        }
        report
    }

    async fn kill(&self, grace: Duration) -> KillReport {
        let scope = self.scope();
        let task = tokio::task::spawn_blocking(move || tree::kill(&scope, grace, tree::KILL_DEADLINE));
        match task.await {
            Ok(report) => report,
            // The runtime is shutting down and takes no more work: do it here.
            Err(_) => tree::kill(&self.scope(), Duration::ZERO, tree::KILL_DEADLINE),
        }
    }

    /// What belongs to this child. Once it is reaped, its pid and its group's number may be
    /// another's, and only the mark counts.
    fn scope(&self) -> Scope {
        let scope = Scope::marked(SPAWN_MARK, &self.token);
        match (self.pid, self.status) {
            (Some(pid), None) => scope.with_root(pid),
            _ => scope,
        }
    }

    fn chunk(&self, chunk: Option<Result<Bytes, OutputError>>) -> Result<Option<Bytes>, OutputError> {
        let chunk = chunk.transpose();
        if matches!(chunk, Err(OutputError::TooMuch { .. })) && self.status.is_none() {
            tree::kill_once(&self.scope());
        }
        chunk
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.status.is_none() {
            tree::kill_once(&self.scope());
        }
    }
}

/// Tells the children of all processes of this machine apart: pid and count, and a random number,
/// since pids come round again.
fn spawn_token() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // The standard library seeds this hasher from the system's random source.
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{}-{random:016x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
