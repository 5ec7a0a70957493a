//! The asynchronous runtime: one worker, whatever the machine has.

use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::problem::Problem;

/// How many files are looked at or written at once. More would wait for the same disk.
const BLOCKING_THREADS: usize = 64;

/// Runs `work` to its end on the calling thread. From then on a file that may not grow (`ulimit -f`)
/// is a write that fails, and not the end of the process.
///
/// # Errors
/// Where the system gives no runtime.
pub fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build();
    let runtime = runtime.map_err(|error| Problem::of(Exit::Internal, &error))?;
    let ended = runtime.block_on(async {
        // A handler, and not that the signal is ignored: programs that are started inherit what is
        // ignored, and start with the system's own way of what is handled.
        let _handled = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
        work.await
    });
    // Blocking work that is still under way (a name being looked up) must not hold the process.
    runtime.shutdown_background();
    Ok(ended)
}

/// Resolves when the process is asked to end (SIGTERM, SIGINT, SIGHUP).
pub(crate) async fn asked_to_end() {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    Interrupts::by(&kinds).next().await;
}

/// Interrupts from the terminal (SIGINT), one after the other. Once one of these has been made the
/// process does not die of them.
pub struct Interrupts(Vec<tokio::signal::unix::Signal>);

impl Interrupts {
    /// Takes interrupts from here on. Call it inside the runtime.
    #[must_use]
    pub fn new() -> Self {
        Self::by(&[SignalKind::interrupt()])
    }

    /// As [`Interrupts::new`]; SIGTERM is an interrupt, too.
    #[must_use]
    pub fn or_terminations() -> Self {
        Self::by(&[SignalKind::interrupt(), SignalKind::terminate()])
    }

    fn by(kinds: &[SignalKind]) -> Self {
        Self(kinds.iter().filter_map(|kind| signal(*kind).ok()).collect())
    }

    /// Resolves at the next interrupt.
    ///
    /// # Cancel safety
    /// Dropping the future loses no interrupt.
    pub async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let asked = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if asked { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Default for Interrupts {
    fn default() -> Self {
        Self::new()
    }
}
