//! `cargo xtask docs-run`: the documentation, carried out.
//!
//! Every fenced shell block of a page says in an HTML comment before it whether it is run:
//!
//! ```text
//! <!-- docs-run: ok -->                              every command of the block ends well
//! <!-- docs-run: exit 75 -->                         the block ends with that code
//! <!-- docs-run: ok, terminal 2, limit 60 -->        in another terminal; 60 s at most
//! <!-- docs-run: stays, terminal 2 -->               goes on while the page does (`cyberine watch`)
//! <!-- docs-run: ok, needs nginx -->                 only where that program is installed
//! <!-- docs-run: skip, needs an account -->          not run, and why
//! <!-- docs-run: output, terminal 2 -->              before a `text` fence: what that terminal says now
//! <!-- docs-run: file proxy.conf -->                 before any fence: it is written into that file
//! <!-- docs-run: before                              commands a reader need not see
//! … -->
//! ```
//!
//! A `text` fence right after a block that is run is what it prints. `…` stands for any part of a
//! line; a line of nothing but `…` for any number of lines. The terminals of a page are shells that
//! keep their directory and their variables, in a home, a project and a `PATH` of their own.

mod expect;
mod page;
mod terminal;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use self::page::{Page, Part, Step};
use self::terminal::{Place, Terminal};
use crate::proc;

/// Runs the pages named, or the README and everything in `docs/`. With `--real` first, a program that a
/// page needs has to be there.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (real, names) = match words {
        ["--real", names @ ..] => (true, names),
        names => (false, names),
    };
    let root = proc::root();
    let pages = if names.is_empty() { all_pages(&root)? } else { names.iter().map(PathBuf::from).collect() };
    let bins = proc::build_binaries()?;
    let mut failed = 0;
    for path in pages {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {name}"))?;
        let start = Instant::now();
        match carry_out(&text, &name, &bins, real) {
            Ok(told) => println!("ok   {name:<40} {:>5.1} s  {told}", start.elapsed().as_secs_f64()),
            Err(error) => {
                failed += 1;
                println!("FAIL {name:<40} {:>5.1} s\n{error:#}", start.elapsed().as_secs_f64());
            }
        }
    }
    ensure!(failed == 0, "{failed} page(s) do not say what happens");
    Ok(())
}

fn all_pages(root: &Path) -> Result<Vec<PathBuf>> {
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Carries one page out; says what was run and what was not.
fn carry_out(text: &str, name: &str, bins: &Path, real: bool) -> Result<String> {
    let page = Page::read(text).map_err(|fault| anyhow::anyhow!("  {name}:{fault}"))?;
    let (mut ran, mut compared, mut skipped) = (0, 0, 0);
    let place = Place::new(bins)?;
    let mut terminals: BTreeMap<u32, Terminal> = BTreeMap::new();
    for part in &page.parts {
        let Part { line, terminal, limit, needs, step } = part;
        if let Some(program) = needs.as_deref().filter(|program| !installed(program)) {
            ensure!(!real, "  {name}:{line}: `{program}` is not installed");
            skipped += 1;
            continue;
        }
        let limit = Duration::from_secs(*limit);
        let session = match terminals.entry(*terminal) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(Terminal::open(&place)?),
        };
        let outcome = match step {
            Step::Skip(_) => {
                skipped += 1;
                Ok(())
            }
            Step::Run { commands, exit } => {
                ran += 1;
                session.run(commands, *exit, limit)
            }
            Step::Stay { commands } => {
                ran += 1;
                session.start(commands)
            }
            Step::Output(expected) => {
                compared += 1;
                session.expect(expected, limit)
            }
        };
        if let Err(error) = outcome {
            bail!("  {name}:{line}: {error:#}");
        }
    }
    Ok(summary(ran, compared, skipped))
}

/// Whether the search path has `program`.
fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn summary(ran: usize, compared: usize, skipped: usize) -> String {
    if ran + compared + skipped == 0 {
        return "nothing to run".to_owned();
    }
    format!("{ran} run, {compared} compared, {skipped} skipped")
}
