//! The crate tiers and the bans of `docs/architecture.md`, checked.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::proc;

/// Every crate and its tier; a crate depends only on crates of a strictly lower tier.
const TIERS: &[(&str, u8)] = &[
    ("cyberine-types", 0),
    ("cyberine-fs", 1),
    ("cyberine-process", 1),
    ("cyberine-protocol", 1),
    ("cyberine-run-store", 2),
    ("cyberine-bus", 2),
    ("cyberine-presence", 2),
    ("cyberine-install", 2),
    ("cyberine-server", 2),
    ("cyberine-client", 2),
    ("cyberine-provider", 3),
    ("cyberine-http", 3),
    ("cyberine-orchestrator", 4),
    ("cyberine-operator", 5),
    ("cyberine-app", 6),
    ("cyberine", 6),
    ("cyberine-mcp", 7),
    ("cyberine-cli", 7),
];

/// Crates for development, and the only crates of ours each may depend on.
const DEV: &[(&str, &[&str])] =
    &[("xtask", &[]), ("cyberine-scripted-llm", &[]), ("cyberine-testkit", &["cyberine-types"])];

/// A text that may stand only in some places: `(what, why, where it may stand)`. A place is a
/// prefix of the path from the root.
const PLACES: &[(&str, &str, &[&str])] = &[
    ("SystemTime::now", "the clock is `cyberine_types::Clock`", &["crates/cyberine-types/src/clock.rs"]),
    ("Utc::now", "the clock is `cyberine_types::Clock`", &[]),
    (
        "env::var",
        "the environment is read once, in the composition root",
        &["crates/cyberine-app/src/environment"],
    ),
    (
        "env::vars",
        "the environment is read once, in the composition root",
        &["crates/cyberine-app/src/environment"],
    ),
    ("tokio::io::stdin", "a pool hop for every read: use the rail's own stdio", &[]),
    ("tokio::io::stdout", "a pool hop for every write: use the rail's own stdio", &[]),
    (
        "io::stdout()",
        "only `StdioGuard` and the CLI's `Out` write to stdout; a runner's channel stands in its place",
        &[
            "crates/cyberine-server/src/stdio",
            "crates/cyberine-app/src/exit.rs",
            "crates/cyberine-process/src/detach.rs",
            "bins/cyberine-cli/src",
        ],
    ),
    (
        "dup2_stdout",
        "only the first lines of a server and of a runner touch the real stdout",
        &["crates/cyberine-server/src/stdio", "crates/cyberine-process/src/detach.rs"],
    ),
];

/// Texts that must not stand in a place: `(prefix of the path below crates/, text, why)`.
const ABSENT: &[(&str, &str, &str)] = &[
    ("cyberine-protocol/", "tokio", "protocol does no I/O and does not know tokio"),
    ("cyberine-protocol/", "std::fs", "protocol does no I/O"),
    ("cyberine-protocol/", "std::net", "protocol does no I/O"),
    ("cyberine-types/", "tokio", "types do no I/O"),
    ("cyberine-run-store/", "jsonrpc", "no port's signature mentions JSON-RPC"),
    ("cyberine-bus/", "jsonrpc", "no port's signature mentions JSON-RPC"),
    ("cyberine-presence/", "jsonrpc", "no port's signature mentions JSON-RPC"),
    ("cyberine-provider/src/port.rs", "jsonrpc", "no port's signature mentions JSON-RPC"),
    ("cyberine-orchestrator/", "jsonrpc", "no port's signature mentions JSON-RPC"),
    ("cyberine-orchestrator/", "std::fs", "engines hold ports, never paths"),
];

/// The longest a source file may be, tests aside.
const LONGEST_FILE: usize = 600;
/// The most lines of code in a binary's `main.rs`, `mod` lines aside.
const LONGEST_MAIN: usize = 30;

pub(crate) fn run() -> Result<()> {
    let mut faults = dependency_faults(&metadata()?)?;
    faults.extend(source_faults(&proc::root())?);
    if faults.is_empty() {
        println!("layers: {} crates in their tiers, every ban kept", TIERS.len() + DEV.len());
        return Ok(());
    }
    bail!("layers:\n  {}", faults.join("\n  "))
}

fn metadata() -> Result<Value> {
    let output =
        proc::cargo().args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).output()?;
    serde_json::from_slice(&output.stdout).context("reading `cargo metadata`")
}

fn tier(name: &str) -> Option<u8> {
    TIERS.iter().find(|(known, _)| *known == name).map(|(_, tier)| *tier)
}

fn dependency_faults(metadata: &Value) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for package in metadata["packages"].as_array().context("packages")? {
        let name = package["name"].as_str().context("a package's name")?;
        let ours = package["dependencies"]
            .as_array()
            .context("dependencies")?
            .iter()
            .filter(|dependency| dependency["kind"] != "dev" && dependency["source"].is_null());
        for dependency in ours {
            let on = dependency["name"].as_str().context("a dependency's name")?;
            faults.extend(dependency_fault(name, on));
        }
        if tier(name).is_none() && !DEV.iter().any(|(dev, _)| *dev == name) {
            faults.push(format!(
                "`{name}` has no tier: give it one in xtask/src/layers.rs and in docs/architecture.md"
            ));
        }
    }
    Ok(faults)
}

fn dependency_fault(name: &str, on: &str) -> Option<String> {
    if let Some((_, allowed)) = DEV.iter().find(|(dev, _)| *dev == name) {
        return (!allowed.contains(&on))
            .then(|| format!("`{name}` is for development and must not depend on `{on}`"));
    }
    match (tier(name), tier(on)) {
        (Some(above), Some(below)) if below < above => None,
        (Some(above), Some(below)) => {
            Some(format!("`{name}` (tier {above}) must not depend on `{on}` (tier {below})"))
        }
        _ => Some(format!("`{name}` depends on `{on}`, which is no crate of the product")),
    }
}

fn source_faults(root: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for top in ["crates", "bins"] {
        for file in rust_files(&root.join(top))? {
            let path = file.strip_prefix(root)?.to_string_lossy().into_owned();
            if path.contains("/tests/")
                || path.contains("/examples/")
                || path.contains("/benches/")
                || path.ends_with("tests.rs")
            {
                continue;
            }
            faults.extend(file_faults(&path, &std::fs::read_to_string(&file)?));
        }
    }
    Ok(faults)
}

fn file_faults(path: &str, text: &str) -> Vec<String> {
    let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let code: String = product.lines().filter(|line| !line.trim_start().starts_with("//")).fold(
        String::new(),
        |mut code, line| {
            code.push_str(line);
            code.push('\n');
            code
        },
    );
    let mut faults = Vec::new();
    let lines = product.lines().count();
    if lines > LONGEST_FILE {
        faults.push(format!("{path}: {lines} lines; over {LONGEST_FILE} nobody finds the room"));
    }
    if path.ends_with("/mod.rs") {
        faults.push(format!("{path}: `foo.rs` beside `foo/`, never `mod.rs`"));
    }
    let code_lines = code.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("mod ")).count();
    if path.starts_with("bins/") && path.ends_with("/main.rs") && code_lines > LONGEST_MAIN {
        faults
            .push(format!("{path}: {code_lines} lines of code; a binary's main has at most {LONGEST_MAIN}"));
    }
    if path.starts_with("crates/cyberine-scripted-llm") || path.starts_with("crates/cyberine-testkit") {
        return faults;
    }
    for (text, why, places) in PLACES {
        if code.contains(text) && !places.iter().any(|place| path.starts_with(place)) {
            faults.push(format!("{path}: `{text}`: {why}"));
        }
    }
    for (place, text, why) in ABSENT {
        if path.starts_with(&format!("crates/{place}")) && code.contains(text) {
            faults.push(format!("{path}: `{text}`: {why}"));
        }
    }
    faults
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_upward_or_sideways_is_a_fault() {
        assert_eq!(dependency_fault("cyberine-server", "cyberine-protocol"), None);
        assert!(dependency_fault("cyberine-protocol", "cyberine-server").is_some());
        assert!(dependency_fault("cyberine-bus", "cyberine-run-store").is_some());
        assert!(dependency_fault("xtask", "cyberine-types").is_some());
        assert!(dependency_fault("cyberine-app", "cyberine-scripted-llm").is_some());
    }

    #[test]
    fn a_ban_is_seen_in_code_and_not_in_comments_or_tests() {
        let path = "crates/cyberine-run-store/src/x.rs";
        assert_eq!(file_faults(path, "fn f() { SystemTime::now(); }").len(), 1);
        assert!(
            file_faults(
                path,
                "// SystemTime::now\n#[cfg(test)]\nmod tests { fn f() { SystemTime::now(); } }"
            )
            .is_empty()
        );
        assert!(file_faults("crates/cyberine-types/src/clock.rs", "SystemTime::now()").is_empty());
        assert_eq!(file_faults("crates/cyberine-protocol/src/x.rs", "use tokio::net;").len(), 1);
        assert_eq!(file_faults("crates/cyberine-provider/src/port.rs", "\"jsonrpc\"").len(), 1);
        assert_eq!(file_faults("crates/cyberine-provider/src/wire.rs", "\"jsonrpc\"").len(), 0);
        assert_eq!(file_faults("crates/cyberine-fs/src/x/mod.rs", "").len(), 1);
        assert_eq!(file_faults("bins/cyberine-mcp/src/main.rs", &"f();\n".repeat(31)).len(), 1);
    }
}
