//! `cyberine inbox` without a mailbox: all of them.

use cyberine_app::{Exit, Problem, Workplace};

use crate::args::Inbox;
use crate::out::Out;

pub(super) async fn run(_args: &Inbox, _workplace: &Workplace, _out: &Out) -> Result<Exit, Problem> {
    Err(Problem::new(Exit::Usage, "name a mailbox"))
}
