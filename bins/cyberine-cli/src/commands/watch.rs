//! `cyberine watch`.

mod boxes;
mod lines;
mod runs;

use std::time::Duration;

use cyberine_app::{Exit, Interrupts, Problem, Workplace};
use cyberine_bus::Address;
use cyberine_run_store::RunStore as _;
use cyberine_types::RunId;
use futures_util::future::{BoxFuture, select_all};

use self::boxes::Boxes;
use self::runs::{Runs, Scope};
use crate::args::Watch;
use crate::commands::{find, load, verdict_on};
use crate::follow::left;
use crate::out::Out;

/// How long to wait for a hint before looking anyway.
const PATIENCE: Duration = Duration::from_millis(500);
/// How many hints are waited for at once; what has none is looked at all the same.
const HINTS: usize = 64;

/// Shows every change of runs, and every message that comes for them, until interrupted or, of one
/// run, until it is over.
pub(crate) async fn run(args: Watch, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let mut interrupts = Interrupts::new();
    let only = match &args.run {
        Some(wanted) => Some(load(workplace, find(workplace, wanted).await?).await?.run_id),
        None => None,
    };
    let scope = match only {
        Some(run) => Scope::One(run),
        None if args.all => Scope::All,
        None => Scope::Project(workplace.cwd()?),
    };
    let watching = watch(args, scope, workplace, out);
    tokio::select! {
        ended = watching => ended,
        () = out.reader_gone() => Ok(Exit::Done),
        () = interrupts.next() => match only {
            Some(run) => Err(left(run)),
            None => Ok(Exit::Interrupted),
        },
    }
}

async fn watch(args: Watch, scope: Scope, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let mut boxes = Boxes::begin(&args, workplace, out).await?;
    let mut runs = Runs::begin(scope, workplace, out).await?;
    // Said once nothing that happens from here on can be missed.
    out.note(match runs.scope() {
        Scope::One(run) => format!("watching run {run} until it is over"),
        Scope::Project(cwd) => {
            format!("watching the runs of {cwd}, until interrupted; --all watches every project")
        }
        Scope::All => "watching the runs of every project, until interrupted".to_owned(),
    });
    loop {
        let live = runs.live();
        boxes.look(&live, workplace, out).await?;
        if let Some(over) = runs.over() {
            let run = load(workplace, over).await?;
            return Ok(verdict_on(&run));
        }
        if out.is_lost() {
            return Ok(Exit::Done);
        }
        hint(workplace, &live, boxes.ends()).await;
        runs.look(workplace, out).await?;
    }
}

/// Returns as soon as one of them may have changed, and after a while in any case.
async fn hint(workplace: &Workplace, live: &[(RunId, u64)], ends: Vec<(Address, u64)>) {
    let runs = live.iter().map(|(run, after)| workplace.store.changed(*run, *after, PATIENCE));
    let boxes = ends.into_iter().map(|(mailbox, after)| workplace.bus.changed(mailbox, after, PATIENCE));
    let hints: Vec<BoxFuture<'_, ()>> = runs.chain(boxes).take(HINTS).collect();
    if hints.is_empty() {
        return tokio::time::sleep(PATIENCE).await;
    }
    select_all(hints).await;
}
