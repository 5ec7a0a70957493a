//! `cyberine inspect`.

use cyberine_app::{Exit, Interrupts, Problem, Workplace};

use crate::args::Inspect;
use crate::commands::{find, load, verdict_on};
use crate::follow::{self, OnInterrupt};
use crate::out::Out;
use crate::plain::cut;
use crate::report;
use crate::waiting::waiting;

/// Shows one run, once it is over where that is asked for.
pub(crate) async fn run(args: &Inspect, workplace: &Workplace, out: &Out) -> Result<Exit, Problem> {
    let mut interrupts = args.wait.then(Interrupts::new);
    let id = find(workplace, &args.run).await?;
    let run = match &mut interrupts {
        Some(interrupts) => follow::to_the_end(workplace, id, OnInterrupt::Leave, interrupts, out).await?,
        None => load(workplace, id).await?,
    };
    if out.is_json() {
        out.json(&cyberine_operator::run_view(&run));
    } else {
        report::print(out, &run);
        for (name, words) in waiting(workplace, &run).await {
            out.line(format_args!("  {} {}", cut(&name, 80), cut(&words, usize::MAX)));
        }
    }
    Ok(if args.wait { verdict_on(&run) } else { Exit::Done })
}
