//! The example `bus_child` as another process, and what it said.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use cyberine_bus::{FileBus, Page};

use crate::support::{Place, block_on, read, send};

/// What a child said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// Number and sequence number of everything acknowledged.
    pub(crate) acks: Vec<(u64, u64)>,
    /// The codes of what was refused.
    pub(crate) refusals: Vec<String>,
}

impl Said {
    pub(crate) fn parse(text: &str) -> Self {
        let mut said = Self::default();
        // A last line without its end was cut by a kill: nobody was told.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                ["ack", number, seq] => said.acks.push((number.parse().unwrap(), seq.parse().unwrap())),
                ["refused", code] => said.refusals.push((*code).to_owned()),
                other => unreachable!("the child said {other:?}"),
            }
        }
        said
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        Self::parse(&String::from_utf8(command.output().unwrap().stdout).unwrap())
    }
}

/// `cargo test` builds the example beside the tests.
fn program() -> PathBuf {
    let deps = std::env::current_exe().unwrap();
    let path = deps.parent().unwrap().parent().unwrap().join("examples/bus_child");
    assert!(path.exists(), "build the example first: cargo build -p cyberine-bus --example bus_child");
    path
}

/// Writer `writer`, with the messages from `first` to `last`.
pub(crate) fn child(place: &Place, mode: &str, writer: u32, first: u64, last: u64) -> Command {
    let mut command = Command::new(program());
    command
        .arg(mode)
        .arg(place.home())
        .args([u64::from(writer), first, last].map(|number| number.to_string()));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// `strace` around writer 0, or `None` and a printed reason where there is none that works.
pub(crate) fn traced(place: &Place, mode: &str, last: u64, options: &[&str]) -> Option<Command> {
    let works = Command::new("strace").args(["-f", "-qq", "-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|out| out.status.success()) {
        println!("skipped: `strace` is missing or may not trace (apt-get install -y strace)");
        return None;
    }
    let inner = child(place, mode, 0, 1, last);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(place.root.path().join("trace")).args(options);
    command.arg(inner.get_program()).args(inner.get_args());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Some(command)
}

/// The number in a message's text.
pub(crate) fn number(text: &str) -> (u32, u64) {
    let mut words = text.split(' ');
    let mut next = || words.next().unwrap();
    (next().parse().unwrap(), next().parse().unwrap())
}

/// What must hold after any death or fault of writer 0: everything acknowledged is there at its
/// place, nothing is there twice, no number is missing, nothing is damaged, and the mailbox takes
/// the next message.
pub(crate) fn assert_sound(place: &Place, said: &Said) -> Page {
    block_on(async {
        let bus: FileBus = place.bus();
        let page = read(&bus, 0).await;
        let seqs: Vec<u64> = page.messages.iter().map(|envelope| envelope.seq).collect();
        assert_eq!(seqs, (1..=page.last).collect::<Vec<_>>(), "without holes");
        let found: Vec<u64> = page.messages.iter().map(|envelope| number(&envelope.text).1).collect();
        for (number, seq) in said.acks.iter().filter(|(number, _)| *number > 0) {
            let index = usize::try_from(*seq).unwrap() - 1;
            assert_eq!(found.get(index), Some(number), "message {number} was acknowledged as {seq}");
        }
        let mut once = found.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), found.len(), "none twice: {found:?}");
        if page.last > 0 {
            assert_eq!(send(&bus, "0 999 after").await.seq, page.last + 1);
            let reports = bus.check().await.unwrap();
            assert!(reports.iter().all(|report| report.bad_lines == 0), "{reports:?}");
        }
        page
    })
}
