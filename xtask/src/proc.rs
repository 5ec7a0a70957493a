//! Where things are, and programs with a time limit.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// `cargo` as it was called, in the workspace's root.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The directory cargo puts this profile's binaries into: the one xtask itself runs from.
pub(crate) fn bin_dir() -> Result<PathBuf> {
    let me = std::env::current_exe().context("where xtask runs from")?;
    Ok(me.parent().context("xtask has a directory")?.to_path_buf())
}

/// Builds the product's binaries (and the scripted server) and returns their directory.
pub(crate) fn build_binaries() -> Result<PathBuf> {
    run(
        cargo().args([
            "build",
            "--quiet",
            "-p",
            "cyberine-mcp",
            "-p",
            "cyberine-cli",
            "-p",
            "cyberine-scripted-llm",
        ]),
        Duration::from_secs(1500),
    )?;
    bin_dir()
}

/// Runs `command` to its end, or kills it after `limit`.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<()> {
    let shown = format!("{command:?}");
    let mut child = command.spawn().with_context(|| format!("starting {shown}"))?;
    match wait(&mut child, limit)? {
        Some(0) => Ok(()),
        Some(code) => bail!("{shown} ended with {code}"),
        None => bail!("{shown} took longer than {} s and was killed", limit.as_secs()),
    }
}

/// Waits for `child`; `None` where it had to be killed after `limit`. A death by signal is -1.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<i32>> {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.code().unwrap_or(-1)));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

/// Waits until `ready` says so, and fails naming `what` after `limit`.
pub(crate) fn until(what: &str, limit: Duration, mut ready: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + limit;
    loop {
        if ready()? {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("waited {} s in vain for: {what}", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A figure of `/proc/PID/status` in KiB: `VmRSS`, or `VmHWM` for the peak of it.
pub(crate) fn memory_kib(pid: u32, figure: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).context("a figure of memory")?;
    line.trim_start_matches(':').trim().trim_end_matches("kB").trim().parse().context("a figure of memory")
}

/// A directory of its own under the system's temporary one, removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique =
            format!("cyberine-{name}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("creating {}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A directory inside, created.
    pub(crate) fn dir(&self, name: &str) -> Result<PathBuf> {
        use std::os::unix::fs::DirBuilderExt as _;
        let path = self.0.join(name);
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The live processes that carry `variable` (`NAME=value`) in their environment.
pub(crate) fn carrying(variable: &[u8]) -> Vec<u32> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|held| held == variable)
        })
        .collect()
}
