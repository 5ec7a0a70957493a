//! `cyberine inspect`.

use cyberine_app::{Exit, Problem, Workplace};

use crate::args::Inspect;
use crate::commands::{find, load, verdict_on};
use crate::follow::{self, OnInterrupt};
use crate::out::Out;
use crate::report;

/// Shows one run, once it is over where that is asked for.
pub(crate) async fn run(args: &Inspect, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let id = find(workplace, &args.run).await?;
    let run = if args.wait {
        follow::to_the_end(workplace, id, OnInterrupt::Leave, out).await?
    } else {
        load(workplace, id).await?
    };
    if out.is_json() {
        out.json(&cyberine_operator::run_view(&run));
    } else {
        report::print(out, &run);
    }
    Ok(if args.wait { verdict_on(&run) } else { Exit::Done })
}
