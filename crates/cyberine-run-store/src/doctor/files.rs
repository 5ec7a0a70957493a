//! What lies in projects and in the home beside the database.

use std::time::Duration;

use cyberine_fs::PrivateDir;
use cyberine_types::RunId;

use super::{FindingKind, Repair, Report, detail};
use crate::error::StoreError;
use crate::event::{Event, RunState};
use crate::home::{FILES_PATIENCE, Home};
use crate::projection::{self, Projector, RunDir};
use crate::run::Run;
use crate::sqlite::{Inner, read};

/// Compares the files of a run in its project with its events and writes them anew where they
/// differ. The files of a run that somebody carries out are left to its holder.
pub(super) fn check_projection(
    inner: &Inner,
    run: &Run,
    log: &[Event],
    report: &mut Report,
) -> Result<(), StoreError> {
    let (id, home) = (run.run_id, inner.database.home()?);
    // Held while the files are looked at, so that no adopter writes them at the same time.
    let Some(held) = home.lock(id)? else { return Ok(()) };
    if !run.state.is_terminal() {
        let detail = format!("it is {} and nobody carries it out", run.state.name());
        report.add(FindingKind::Abandoned, id.to_string(), detail, Repair::Left);
    }
    let is_over = run.state.is_terminal();
    let outcome = match home.lock_files(id, FILES_PATIENCE) {
        Ok(files) => {
            let outcome = repair_projection(inner, run, log, report);
            home.unlock_files(id, files, is_over);
            outcome
        }
        // Whoever writes them looks at the run again when it is done.
        Err(StoreError::Busy { .. }) => Ok(()),
        Err(error) => Err(error),
    };
    if is_over {
        home.forget_lock(id);
    }
    Home::unlock(held);
    outcome
}

fn repair_projection(inner: &Inner, run: &Run, log: &[Event], report: &mut Report) -> Result<(), StoreError> {
    let subject = run.run_id.to_string();
    let dir = match inner.run_dir(run.run_id) {
        Ok(dir) => dir,
        Err(error @ StoreError::ProjectUnusable { .. }) => {
            report.add(FindingKind::ProjectGone, subject, detail(&error), Repair::Left);
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    match dir.sweep() {
        Ok(0) => {}
        Ok(swept) => {
            let text = format!("{swept} temporary files of a killed writer");
            report.add(FindingKind::Leftover, subject.clone(), text, Repair::Done);
        }
        Err(error) => report.add(FindingKind::Projection, subject.clone(), error.to_string(), Repair::Left),
    }
    // The run may have moved on between its record and its lock: then it is not ours to judge.
    let now = inner.database.read(|conn| read::row(conn, run.run_id))?;
    if now.is_none_or(|row| row.last_seq != log.len() as u64) || is_current(&dir, run, log) {
        return Ok(());
    }
    let text = "its files in the project were behind or damaged".to_owned();
    match Projector::new(dir).rewrite(run, log).map_err(StoreError::from) {
        Ok(()) => report.add(FindingKind::Projection, subject, text, Repair::Done),
        Err(error) => report.add(FindingKind::Projection, subject, detail(&error), Repair::Left),
    }
    Ok(())
}

fn is_current(dir: &RunDir, run: &Run, log: &[Event]) -> bool {
    let same = |dir: &PrivateDir, name: &str, wanted: &[u8]| matches!(dir.read(name, wanted.len()), Ok(Some(bytes)) if bytes == wanted);
    let Ok(outputs) = dir.dir.existing_subdir(projection::OUTPUTS) else { return false };
    let whole = run.steps.iter().enumerate().all(|(s, step)| {
        step.candidates.iter().enumerate().filter(|(_, candidate)| candidate.state == RunState::Done).all(
            |(c, candidate)| {
                let name = projection::output_name(s, c, &candidate.id);
                outputs.as_ref().is_some_and(|outputs| same(outputs, &name, candidate.output.as_bytes()))
            },
        )
    });
    let decided = match run.decisions.as_slice() {
        [] => matches!(dir.dir.exists(projection::APPROVAL), Ok(false)),
        _ => same(&dir.dir, projection::APPROVAL, &projection::approval(run)),
    };
    whole
        && decided
        && same(&dir.dir, projection::RUN, &projection::document(run))
        && same(&dir.dir, projection::EVENTS, &projection::lines(log))
}

/// Lists the projects of the database that are missing from the home's list.
pub(super) fn check_projects(inner: &Inner, report: &mut Report) -> Result<(), StoreError> {
    let home = inner.database.home()?;
    let listed = home.projects()?;
    for path in inner.database.read(read::projects)? {
        if !listed.contains(&path) {
            home.remember_project(&path)?;
            let text = "it was missing from the home's list of projects".to_owned();
            report.add(FindingKind::Unlisted, path, text, Repair::Done);
        }
    }
    Ok(())
}

/// Removes directories of runs that were never recorded: their admission was cut short. A log
/// of more than the first event was recorded once, and stays.
pub(super) fn check_orphans(inner: &Inner, report: &mut Report) -> Result<(), StoreError> {
    let home = inner.database.home()?;
    for path in home.projects()? {
        let Ok((project, _)) = projection::open_project(&path, None) else { continue };
        let ids = projection::runs_in(&project).unwrap_or_else(|error| {
            report.add(FindingKind::ProjectGone, path.clone(), error.to_string(), Repair::Left);
            Vec::new()
        });
        for id in ids {
            if inner.database.read(|conn| read::row(conn, id))?.is_none() {
                check_orphan(inner, &project, id, report)?;
            }
        }
    }
    Ok(())
}

fn check_orphan(
    inner: &Inner,
    project: &PrivateDir,
    id: RunId,
    report: &mut Report,
) -> Result<(), StoreError> {
    let home = inner.database.home()?;
    // Whoever is about to admit the run holds its lock.
    let Some(_held) = home.lock(id)? else { return Ok(()) };
    if inner.database.read(|conn| read::row(conn, id))?.is_some() {
        return Ok(());
    }
    let Ok(Some(dir)) = RunDir::open(project, id) else { return Ok(()) };
    let subject = dir.path().display().to_string();
    if dir.is_cut_short().unwrap_or(false) {
        dir.discard();
        let text = "its admission was cut short".to_owned();
        report.add(FindingKind::Orphan, subject, text, Repair::Done);
    } else {
        let text = "the database does not know this run; was it restored from an older copy?".to_owned();
        report.add(FindingKind::Orphan, subject, text, Repair::Left);
    }
    home.forget_lock(id);
    Ok(())
}

/// Removes lock and wake-up files of runs that are over or unknown.
pub(super) fn check_leftovers(inner: &Inner, report: &mut Report) -> Result<(), StoreError> {
    let home = inner.database.home()?;
    for id in home.locked_or_told()? {
        let open = inner.database.read(|conn| read::row(conn, id))?.is_some_and(|row| !row.settled);
        if open {
            continue;
        }
        let Some(_held) = home.lock(id)? else { continue };
        // Admitted since the first look? Then its holder has it, or had it and died.
        if inner.database.read(|conn| read::row(conn, id))?.is_none_or(|row| row.settled) {
            home.tell_settled(id);
            if let Ok(files) = home.lock_files(id, Duration::ZERO) {
                home.unlock_files(id, files, true);
            }
            home.forget_lock(id);
            let text = "a lock or wake-up file of a run that is over or unknown".to_owned();
            report.add(FindingKind::Leftover, id.to_string(), text, Repair::Done);
        }
    }
    Ok(())
}
