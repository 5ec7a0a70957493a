//! The asynchronous runtime: one worker, whatever the machine has.

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;
use crate::problem::Problem;

/// Runs `work` to its end on the calling thread.
///
/// # Errors
/// Where the system gives no runtime.
pub fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Problem> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Problem::of(Exit::Internal, &error))?;
    let ended = runtime.block_on(work);
    // Blocking work that is still under way (a name being looked up) must not hold the process.
    runtime.shutdown_background();
    Ok(ended)
}

/// Resolves when the process is asked to end (SIGTERM, SIGINT, SIGHUP).
pub(crate) async fn asked_to_end() {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut signals: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    std::future::poll_fn(|context| {
        let asked = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if asked { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Interrupts from the terminal (SIGINT), one after the other. While one of these lives the
/// process does not die of them.
pub struct Interrupts(Option<tokio::signal::unix::Signal>);

impl Interrupts {
    /// Takes interrupts from here on. Call it inside the runtime.
    #[must_use]
    pub fn new() -> Self {
        Self(signal(SignalKind::interrupt()).ok())
    }

    /// Resolves at the next interrupt.
    ///
    /// # Cancel safety
    /// Dropping the future loses no interrupt.
    pub async fn next(&mut self) {
        match &mut self.0 {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
}

impl Default for Interrupts {
    fn default() -> Self {
        Self::new()
    }
}
