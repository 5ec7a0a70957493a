//! Where the keys of an issuer of tokens come from: a file, or an address that the configuration names.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cyberine_http::identity::{KeyError, KeySource, LARGEST_KEY_SET};
use cyberine_provider::JsonClient;
use futures_util::future::BoxFuture;

use crate::config::read_own;
use crate::problem::chain;

/// How long fetching the keys may take.
const LIMIT: Duration = Duration::from_secs(5);

/// Keys in a file, read again whenever they are asked for, with the care of a configuration: whoever can
/// write it can be anybody.
pub(crate) struct KeyFile(pub(crate) PathBuf);

impl KeySource for KeyFile {
    fn fetch(&self) -> BoxFuture<'_, Result<Vec<u8>, KeyError>> {
        let path = self.0.clone();
        Box::pin(async move {
            let read = tokio::task::spawn_blocking(move || read(&path)).await;
            read.unwrap_or_else(|panic| Err(panic.to_string())).map_err(KeyError)
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    match read_own(path) {
        Ok(Some(mut bytes)) => {
            bytes.truncate(LARGEST_KEY_SET + 1);
            Ok(bytes)
        }
        Ok(None) => Err(format!("`jwks_file`: there is no file `{}`", path.display())),
        Err(error) => Err(format!("`jwks_file`: {}", chain(&error))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn a_key_set_that_another_could_have_written_is_not_used_and_a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let path = at("keys.json");
        std::fs::write(&path, "{}").unwrap();
        for (mode, fine) in [(0o600, true), (0o644, true), (0o664, false), (0o602, false)] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            match read(&path) {
                Ok(bytes) => assert!(fine && bytes == b"{}", "{mode:o}"),
                Err(why) => assert!(!fine && why.contains("chmod go-w"), "{mode:o}: {why}"),
            }
        }
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(read(&at("fifo")).unwrap_err().contains("not a regular file"));
        assert!(read(&at("nothing")).unwrap_err().contains("there is no file"));
        std::fs::write(at("long"), vec![b' '; LARGEST_KEY_SET * 2]).unwrap();
        assert_eq!(read(&at("long")).unwrap().len(), LARGEST_KEY_SET + 1);
    }
}
