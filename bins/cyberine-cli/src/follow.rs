//! Waiting for a run to be over, and showing it meanwhile.

use std::time::Duration;

use cyberine_app::{Exit, Interrupts, Problem, Workplace};
use cyberine_run_store::{Run, RunStore, TickReader};
use cyberine_types::RunId;

use crate::commands::{SELF, load};
use crate::decision::waits;
use crate::live::Live;
use crate::out::Out;

/// How long to wait for a change of the run before looking at its fast news and its runner.
const PATIENCE: Duration = Duration::from_millis(250);

/// What an interrupt means to whoever waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    /// The first one asks the run to stop, the second one leaves it.
    Stop,
    /// The run is left: it is somebody else's.
    Leave,
}

/// Shows the run until it is over. `interrupts` are taken from before the run began, so that none
/// ends this process with the run left to itself.
///
/// # Errors
/// Where the run cannot be read, or was left while it goes on.
pub(crate) async fn to_the_end(
    workplace: &Workplace,
    id: RunId,
    on_interrupt: OnInterrupt,
    interrupts: &mut Interrupts,
    out: &Out,
) -> Result<Run, Problem> {
    let mut follower = Follower::begin(workplace, id, out).await?;
    let mut leaves = on_interrupt == OnInterrupt::Leave;
    loop {
        let run = load(workplace, id).await?;
        follower.show(&run);
        if run.state.is_terminal() {
            return Ok(run);
        }
        let next = run.next_seq.saturating_sub(1);
        tokio::select! {
            () = workplace.store.changed(id, next, PATIENCE) => {}
            () = interrupts.next() => {
                if leaves {
                    return Err(left(id));
                }
                ask_to_stop(workplace, id, out).await?;
                leaves = true;
            }
        }
    }
}

/// The end of a command that was to wait for a run and was interrupted.
pub(crate) fn left(id: RunId) -> Problem {
    Problem::new(
        Exit::Interrupted,
        format!("left run {id}, which goes on; `cyberine inspect {id} --wait` shows how it ends"),
    )
}

async fn ask_to_stop(workplace: &Workplace, id: RunId, out: &Out) -> Result<(), Problem> {
    workplace.supervisor.cancel(id, SELF.to_owned(), Some("interrupted at the terminal".to_owned())).await?;
    out.note("asked the run to stop; interrupt again to leave it");
    Ok(())
}

/// What is shown of a run, and where its fast news comes from.
struct Follower<'a> {
    live: Option<Live<'a>>,
    ticks: Option<TickReader>,
    out: &'a Out,
    /// Whether it was said that the run waits.
    told: bool,
}

impl<'a> Follower<'a> {
    async fn begin(workplace: &Workplace, id: RunId, out: &'a Out) -> Result<Self, Problem> {
        let live = (!out.is_json()).then(|| Live::new(out));
        // A run whose files are gone is still in the database; it has no fast news then.
        let ticks = workplace.store.run_dir(id).await.ok().map(|dir| TickReader::new(dir, 0));
        Ok(Self { live, ticks, out, told: false })
    }

    fn show(&mut self, run: &Run) {
        let Some(live) = &mut self.live else {
            // A program reads the one document at the end; who started it must hear before that.
            if let Some(awaiting) = run.awaiting.as_ref().filter(|_| !self.told) {
                self.told = true;
                self.out.note(waits(run.run_id, awaiting.expires_at, awaiting.on_expiry));
            }
            return;
        };
        let news = self.ticks.as_mut().and_then(|ticks| ticks.read().ok()).unwrap_or_default();
        news.into_iter().for_each(|tick| live.tick(tick));
        live.show(run);
    }
}
