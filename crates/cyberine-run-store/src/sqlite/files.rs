//! The files of runs in their projects: made with a run, kept up with it, and shown whatever was
//! decided.

use std::path::Path;
use std::time::Duration;

use cyberine_fs::PrivateDir;
use cyberine_types::RunId;

use super::write::Changed;
use super::{Inner, read};
use crate::error::{StoreError, chain};
use crate::event::Event;
use crate::fold;
use crate::home::{FILES_PATIENCE, Home};
use crate::projection::{self, Projector, RunDir};
use crate::run::Run;

/// How often files are written anew because the run moved on meanwhile.
const ROUNDS: u32 = 8;

impl Inner {
    /// Makes the run's directory and its first projections, so that a project that is full or
    /// cannot be written to is refused before anything is spent. What an admission of the same run
    /// left that was cut short is cleared away. `None` where the directory shows a run. Only for
    /// the holder of the run's lock.
    pub(super) fn prepare_project(
        &self,
        home: &Home,
        project: &PrivateDir,
        run: &Run,
        first: &Event,
    ) -> Result<Option<Projector>, StoreError> {
        let unusable = |error| StoreError::project(Path::new(&run.cwd), &error);
        let Some(dir) = new_dir(project, run.run_id).map_err(unusable)? else { return Ok(None) };
        let mut projector = Projector::new(dir);
        let written = projector.rewrite(run, std::slice::from_ref(first)).map_err(unusable);
        if let Err(error) = written.and_then(|()| self.remember_project(home, &run.cwd)) {
            projector.into_dir().discard();
            return Err(error);
        }
        Ok(Some(projector))
    }

    /// Writes a project that is new to the home into its list.
    fn remember_project(&self, home: &Home, path: &str) -> Result<(), StoreError> {
        if self.database.read(|conn| read::knows_project(conn, path))? {
            return Ok(());
        }
        home.remember_project(path)
    }

    pub(crate) fn run_dir(&self, id: RunId) -> Result<RunDir, StoreError> {
        let project = self.database.read(|conn| read::project(conn, id))?;
        let (path, identity) = project.ok_or(StoreError::NotFound { run: id })?;
        let (project, _) = projection::open_project(&path, Some(identity))?;
        RunDir::open_or_create(&project, id).map_err(|error| StoreError::project(Path::new(&path), &error))
    }

    /// Shows what the run's holder has changed.
    pub(super) fn project(&self, home: &Home, projector: &mut Projector, changed: &Changed) {
        let id = changed.run.run_id;
        // Whoever holds the files for that long may be stopped: the run waits for it once.
        let patience = if projector.shut_out { Duration::ZERO } else { FILES_PATIENCE };
        let held = home.lock_files(id, patience);
        projector.shut_out = held.is_err();
        let written = held.and_then(|held| {
            let written = self.bring_up(projector, changed);
            home.unlock_files(id, held, changed.run.state.is_terminal());
            written
        });
        if let Err(error) = written {
            let error = chain(&error);
            tracing::warn!(run = %id, error, "the run's files in the project are behind");
        }
    }

    fn bring_up(&self, projector: &mut Projector, changed: &Changed) -> Result<(), StoreError> {
        if projector.covers(changed.last_seq()) {
            return Ok(());
        }
        if projector.follows(&changed.added) {
            return Ok(projector.extend(&changed.run, &changed.added)?);
        }
        let (run, log) = self.whole(changed.run.run_id)?;
        Ok(projector.rewrite(&run, &log)?)
    }

    /// Shows what somebody who need not be the run's holder has changed, also after its end. The
    /// holder waits a while for the files, and then goes on without them: so the run is looked at
    /// again once they are written.
    pub(super) fn show(&self, home: &Home, id: RunId) {
        let shown = self.run_dir(id).and_then(|dir| {
            let held = home.lock_files(id, FILES_PATIENCE)?;
            let mut is_over = false;
            let written = self.catch_up(Projector::new(dir), id, &mut is_over);
            home.unlock_files(id, held, is_over);
            written
        });
        if let Err(error) = shown {
            let error = chain(&error);
            tracing::warn!(run = %id, error, "the run's files in the project do not show a change");
        }
    }

    fn catch_up(&self, mut projector: Projector, id: RunId, is_over: &mut bool) -> Result<(), StoreError> {
        for _ in 0..ROUNDS {
            let (run, log) = self.whole(id)?;
            *is_over = run.state.is_terminal();
            if projector.covers(run.next_seq - 1) {
                break;
            }
            projector.rewrite(&run, &log)?;
        }
        Ok(())
    }

    /// The run with all its events, both of one instant.
    pub(crate) fn whole(&self, id: RunId) -> Result<(Run, Vec<Event>), StoreError> {
        let log = self.database.read(|conn| match read::row(conn, id)? {
            Some(row) => read::events(conn, &row, 0),
            None => Err(StoreError::NotFound { run: id }),
        })?;
        let run = fold::fold(id, &log)
            .map_err(|error| StoreError::Corrupt { run: id, detail: error.to_string() })?;
        Ok((run, log))
    }
}

/// The directory of a run that is about to be admitted; `None` where it shows a run.
fn new_dir(project: &PrivateDir, id: RunId) -> Result<Option<RunDir>, cyberine_fs::FsError> {
    if let Some(dir) = RunDir::create(project, id)? {
        return Ok(Some(dir));
    }
    match RunDir::open(project, id)? {
        Some(left) if left.is_cut_short()? => left.discard(),
        _ => return Ok(None),
    }
    RunDir::create(project, id)
}
