//! The gates of accounts, shared by every process of a home: `<home>/gates/ACCOUNT.json` says until
//! when an account is closed, `ACCOUNT.N.place` is locked by a turn that runs.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cyberine_fs::{Durability, FsError, LockFile, PrivateDir};
use cyberine_provider::{AccountGate, Entry, GateError, GateState, MemoryGate, Place, ProviderConfig};
use cyberine_types::{Clock, SystemClock, Timestamp};
use futures_util::future::BoxFuture;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::home::Home;
use crate::problem::chain;

/// How many bytes of an account's digest name its files.
const NAME_BYTES: usize = 12;
/// The longest file that is read.
const MAX_BYTES: usize = 64 << 10;
/// How long the lock of an account is waited for. It is held for the time of one small file.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it takes until the lock is tried again.
const PAUSE: Duration = Duration::from_millis(2);

/// An account by its name, and how many turns may run at once.
type Account = (String, Option<NonZeroUsize>);

/// An account that is closed: its turns wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Closure {
    /// Until when at least.
    pub until: Timestamp,
    /// What the provider said.
    pub reason: String,
}

/// The gates of all accounts of a home.
pub(crate) struct Gates {
    /// None where the home has no place for them: turns of this process share theirs all the same.
    directory: Option<PrivateDir>,
    clock: Arc<dyn Clock>,
    open: Mutex<BTreeMap<Account, Arc<dyn AccountGate>>>,
}

impl Gates {
    /// The gates of `home`.
    pub(crate) fn of(home: &Home) -> Self {
        let directory = match home.gates() {
            Ok(directory) => Some(directory),
            Err(error) => {
                tracing::warn!("no account's gate is shared with other processes: {}", chain(&error));
                None
            }
        };
        Self { directory, clock: Arc::new(SystemClock), open: Mutex::default() }
    }

    /// The gate of the account that `provider` uses.
    pub(crate) fn gate(&self, provider: &ProviderConfig) -> Arc<dyn AccountGate> {
        let (account, places) = (name(&provider.account()), provider.profile().max_parallel);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = open.entry((account.clone(), places)).or_insert_with(|| self.make(account, places));
        Arc::clone(gate)
    }

    /// Until when the account of `provider` is closed, where it is.
    pub(crate) fn closure(&self, provider: &ProviderConfig) -> Option<Closure> {
        let file = format!("{}.json", name(&provider.account()));
        let bytes = self.directory.as_ref()?.read(&file, MAX_BYTES).ok()??;
        let state: GateState = serde_json::from_slice(&bytes).ok()?;
        let (until, reason) = state.closed(self.clock.now())?;
        Some(Closure { until, reason: reason.to_owned() })
    }

    fn make(&self, account: String, places: Option<NonZeroUsize>) -> Arc<dyn AccountGate> {
        let clock = Arc::clone(&self.clock);
        let places = places.map(NonZeroUsize::get);
        match &self.directory {
            Some(directory) => {
                let files = Arc::new(Files { directory: directory.clone(), account, clock, places });
                Arc::new(FileGate(files))
            }
            None => Arc::new(MemoryGate::new(clock, places)),
        }
    }
}

/// What an account is called in file names: a part of a digest, which tells neither its address nor
/// what it pays with.
fn name(account: &str) -> String {
    let digest = Sha256::digest(account.as_bytes());
    digest.iter().take(NAME_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// A gate that is kept in a file.
struct FileGate(Arc<Files>);

/// The files of one account.
struct Files {
    directory: PrivateDir,
    account: String,
    clock: Arc<dyn Clock>,
    places: Option<usize>,
}

impl FileGate {
    /// Does `work` on the files where it holds nobody up.
    fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, GateError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, GateError>> {
        let files = Arc::clone(&self.0);
        Box::pin(async move {
            let worked = tokio::task::spawn_blocking(move || work(&files)).await;
            worked.unwrap_or_else(|error| Err(GateError { detail: error.to_string() }))
        })
    }
}

impl AccountGate for FileGate {
    fn enter(&self, turn: u64) -> BoxFuture<'_, Result<Entry, GateError>> {
        self.work(move |files| files.enter(turn))
    }

    fn close(&self, _turn: u64, wait: Duration, reason: String) -> BoxFuture<'_, Result<(), GateError>> {
        self.work(move |files| files.change(|state| state.close(files.clock.now(), wait, &reason)))
    }

    fn leave(&self, turn: u64, let_in: bool) -> BoxFuture<'_, Result<(), GateError>> {
        self.work(move |files| {
            // Nearly every turn ends here with the account open all the time.
            if files.read()? == GateState::default() {
                return Ok(());
            }
            files.change(|state| state.leave(turn, let_in))
        })
    }

    fn place(&self) -> BoxFuture<'_, Result<Option<Place>, GateError>> {
        self.work(Files::place)
    }
}

impl Files {
    fn enter(&self, turn: u64) -> Result<Entry, GateError> {
        if self.read()? == GateState::default() {
            return Ok(Entry::Open);
        }
        self.change(|state| state.enter(turn, self.clock.now()))
    }

    fn place(&self) -> Result<Option<Place>, GateError> {
        let Some(places) = self.places else { return Ok(Some(Box::new(()))) };
        for number in 0..places {
            if let Some(lock) =
                self.directory.try_lock(&format!("{}.{number}.place", self.account)).map_err(broken)?
            {
                return Ok(Some(Box::new(lock)));
            }
        }
        Ok(None)
    }

    fn state_file(&self) -> String {
        format!("{}.json", self.account)
    }

    /// What the file says. One that is not understood says nothing: what it closed is found out anew.
    fn read(&self) -> Result<GateState, GateError> {
        let bytes = match self.directory.read(&self.state_file(), MAX_BYTES) {
            Err(FsError::TooLarge { .. }) => None,
            read => read.map_err(broken)?,
        };
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
    }

    /// Changes the state, alone among all processes.
    fn change<T>(&self, change: impl FnOnce(&mut GateState) -> T) -> Result<T, GateError> {
        let _lock = self.lock()?;
        let before = self.read()?;
        let mut state = before.clone();
        let outcome = change(&mut state);
        if state != before {
            let bytes = serde_json::to_vec(&state).unwrap_or_default();
            self.directory.replace(&self.state_file(), &bytes, Durability::Fast).map_err(broken)?;
        }
        Ok(outcome)
    }

    fn lock(&self) -> Result<LockFile, GateError> {
        let name = format!("{}.lock", self.account);
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(lock) = self.directory.try_lock(&name).map_err(broken)? {
                return Ok(lock);
            }
            if Instant::now() > until {
                let path = self.directory.path().join(name);
                return Err(GateError { detail: format!("`{}` is held for too long", path.display()) });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn broken(error: FsError) -> GateError {
    GateError { detail: chain(&error) }
}

#[cfg(test)]
mod tests;
