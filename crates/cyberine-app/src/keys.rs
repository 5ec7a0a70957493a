//! Where the keys of an issuer of tokens come from: a file, or an address that the configuration names.

use std::path::PathBuf;
use std::time::Duration;

use cyberine_http::identity::{KeyError, KeySource, LARGEST_KEY_SET};
use cyberine_provider::JsonClient;
use futures_util::future::BoxFuture;

/// How long fetching the keys may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Keys in a file, read again whenever they are asked for.
pub(crate) struct KeyFile(pub(crate) PathBuf);

impl KeySource for KeyFile {
    fn fetch(&self) -> BoxFuture<'_, Result<Vec<u8>, KeyError>> {
        let path = self.0.clone();
        Box::pin(async move {
            let shown = path.display().to_string();
            let read = tokio::task::spawn_blocking(move || read(&path)).await;
            let read = read.unwrap_or_else(|panic| Err(std::io::Error::other(panic)));
            read.map_err(|error| KeyError(format!("the key set `{shown}` cannot be read: {error}")))
        })
    }
}

fn read(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let most = u64::try_from(LARGEST_KEY_SET).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Keys that are published at an address.
pub(crate) struct KeyUrl(JsonClient);

impl KeyUrl {
    /// The keys at `url`: https, or http on this machine.
    ///
    /// # Errors
    /// Where it is no such URL.
    pub(crate) fn at(url: &str) -> Result<Self, String> {
        JsonClient::new(url, LIMIT, LARGEST_KEY_SET + 1).map(Self)
    }
}

impl KeySource for KeyUrl {
    fn fetch(&self) -> BoxFuture<'_, Result<Vec<u8>, KeyError>> {
        Box::pin(async move { self.0.get().await.map_err(KeyError) })
    }
}
