//! `cargo xtask bundle`: the server as an MCP bundle (`.mcpb`) for this platform, and the
//! `server.json` by which a registry lists it. Both are written from what stands here and from the
//! golden file of the tools, and are tried before they count.

use std::io::{Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::proc::{self, Scratch};
use crate::wire::{Era, Server, Stdio2};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// At most 100 characters, which is what a registry takes.
const DESCRIPTION: &str =
    "An agent team behind any MCP host: one prompt to every provider, judged, on durable runs.";
const LONG_DESCRIPTION: &str = "Puts one prompt to every provider you have, judges the answers, and returns the \
                                winner and why. Runs are durable: they outlive the host. Every orchestration may \
                                spend money; without any configuration only models on this machine are asked.";
/// The version of the bundle's manifest that hosts read today.
const MANIFEST_VERSION: &str = "0.3";
const SERVER_SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// The official checker of bundles, as a package of npm.
const CHECKER: &str = "@anthropic-ai/mcpb@2.1.2";
/// Where a bundle is published, unless `--download` says otherwise.
const DOWNLOAD: &str = "https://github.com/cyberine/cyberine/releases/download";
/// The name in a registry, unless `--name` says otherwise.
const NAME: &str = "io.github.cyberine/cyberine";
const GOLDEN: &str = "crates/cyberine-operator/tests/golden/tools.json";
const PROGRAM: &str = "server/cyberine-mcp";

/// `[--debug] [--check] [--name NAME] [--download URL]`.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let (mut debug, mut check, mut name, mut download) = (false, false, NAME, DOWNLOAD);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().with_context(|| format!("`{word}` wants a value"));
        match *word {
            "--debug" => debug = true,
            "--check" => check = true,
            "--name" => name = value()?,
            "--download" => download = value()?,
            other => bail!("`bundle` does not know `{other}`"),
        }
    }
    let program = build(debug)?;
    let out = proc::bin_dir()?.parent().context("the target directory")?.join("bundle");
    std::fs::create_dir_all(&out)?;
    let manifest = manifest()?;
    let bytes = pack(&manifest, &program)?;
    ensure!(pack(&manifest, &program)? == bytes, "the same files gave two bundles");
    let file = format!("cyberine-{VERSION}-{}-{}.mcpb", platform(), std::env::consts::ARCH);
    try_out(&bytes, &manifest)?;
    if check {
        official(&manifest)?;
    }
    let url = format!("{}/v{VERSION}/{file}", download.trim_end_matches('/'));
    std::fs::write(out.join(&file), &bytes)?;
    std::fs::write(out.join("manifest.json"), pretty(&manifest)?)?;
    std::fs::write(out.join("server.json"), pretty(&server(name, &url, &bytes)?)?)?;
    println!("{} ({} KiB) and server.json", out.join(file).display(), bytes.len() / 1024);
    Ok(())
}

/// Builds the bundle and tries it, without a release build: for CI.
pub(crate) fn lane() -> Result<()> {
    run(&["--debug", "--check"])
}

/// The server of this platform.
fn build(debug: bool) -> Result<PathBuf> {
    if debug {
        return Ok(proc::build_binaries()?.join("cyberine-mcp"));
    }
    let mut command = proc::cargo();
    proc::run(
        command.args(["build", "--quiet", "--release", "-p", "cyberine-mcp"]),
        Duration::from_secs(3600),
    )?;
    Ok(proc::bin_dir()?.parent().context("the target directory")?.join("release").join("cyberine-mcp"))
}

const fn platform() -> &'static str {
    if cfg!(target_os = "macos") {
        "darwin"
    } else if cfg!(windows) {
        "win32"
    } else {
        "linux"
    }
}

/// The tools as the product's own tests hold them: name and description.
fn tools() -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(proc::root().join(GOLDEN)).context(GOLDEN)?;
    let golden: Value = serde_json::from_str(&text).context(GOLDEN)?;
    let tools = golden.as_array().with_context(|| format!("{GOLDEN} is no list"))?;
    Ok(tools.iter().map(|tool| json!({"name": tool["name"], "description": tool["description"]})).collect())
}

fn manifest() -> Result<Value> {
    Ok(json!({
        "manifest_version": MANIFEST_VERSION,
        "name": "cyberine",
        "display_name": "Cyberine",
        "version": VERSION,
        "description": DESCRIPTION,
        "long_description": LONG_DESCRIPTION,
        "author": {"name": "Cyberine"},
        "license": "MIT OR Apache-2.0",
        "keywords": ["agents", "orchestration", "judge", "team"],
        "server": {
            "type": "binary",
            "entry_point": PROGRAM,
            "mcp_config": {
                "command": format!("${{__dirname}}/{PROGRAM}"),
                "args": ["--project", "${user_config.project}"],
            },
        },
        "user_config": {
            "project": {
                "type": "directory",
                "title": "Project",
                "description": "The directory whose runs these are; their files go into its folder .local",
                "required": true,
            },
        },
        "tools": tools()?,
        "compatibility": {"platforms": [platform()]},
    }))
}

fn server(name: &str, url: &str, bundle: &[u8]) -> Result<Value> {
    let (namespace, rest) = name.split_once('/').context("a registry's name is NAMESPACE/NAME")?;
    ensure!(namespace.contains('.') && !rest.is_empty(), "a registry's name begins with a reversed domain");
    ensure!(DESCRIPTION.chars().count() <= 100, "a registry takes a description of 100 characters");
    Ok(json!({
        "$schema": SERVER_SCHEMA,
        "name": name,
        "title": "Cyberine",
        "description": DESCRIPTION,
        "version": VERSION,
        "packages": [{
            "registryType": "mcpb",
            "identifier": url,
            "version": VERSION,
            "fileSha256": digest(bundle),
            "transport": {"type": "stdio"},
        }],
    }))
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn pretty(value: &Value) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// The archive: always the same bytes for the same files, so without times and in a fixed order.
fn pack(manifest: &Value, program: &Path) -> Result<Vec<u8>> {
    let root = proc::root();
    let read = |path: PathBuf| std::fs::read(&path).with_context(|| path.display().to_string());
    let files = [
        ("manifest.json", 0o644, pretty(manifest)?.into_bytes()),
        ("LICENSE-APACHE", 0o644, read(root.join("LICENSE-APACHE"))?),
        ("LICENSE-MIT", 0o644, read(root.join("LICENSE-MIT"))?),
        (PROGRAM, 0o755, read(program.to_owned())?),
    ];
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, mode, bytes) in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        archive.start_file(name, options)?;
        archive.write_all(&bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// Unpacks the bundle as a host does, starts the server in it and compares its tools.
fn try_out(bundle: &[u8], manifest: &Value) -> Result<()> {
    let scratch = Scratch::new("bundle")?;
    let (place, home, project) = (scratch.dir("unpacked")?, scratch.dir("home")?, scratch.dir("project")?);
    let mut archive = ZipArchive::new(Cursor::new(bundle)).context("reading the bundle back")?;
    archive.extract(&place).context("unpacking the bundle")?;
    let mut unpacked = String::new();
    archive.by_name("manifest.json")?.read_to_string(&mut unpacked)?;
    ensure!(serde_json::from_str::<Value>(&unpacked)? == *manifest, "the manifest came back changed");
    let config = &manifest["server"]["mcp_config"];
    let filled = |text: &Value| -> Result<String> {
        let text = text.as_str().context("the manifest's command is text")?;
        Ok(text
            .replace("${__dirname}", &place.display().to_string())
            .replace("${user_config.project}", &project.display().to_string()))
    };
    let mut command = Command::new(filled(&config["command"])?);
    for argument in config["args"].as_array().context("the manifest's arguments")? {
        command.arg(filled(argument)?);
    }
    command.env_clear().env("HOME", &home).env("CYBERINE_HOME", home.join(".cyberine")).current_dir("/");
    command.env("CYBERINE_DISCOVERY", "off").stderr(Stdio::inherit());
    let mut server = Server::start(command, Stdio2::Pipes)?;
    let opened = server.initialize("2025-11-25")?;
    ensure!(opened["serverInfo"]["version"] == VERSION, "the bundle holds another version: {opened}");
    let listed = server.ask("tools/list", &Era::Y2025.params(json!({})))?;
    let names = |tools: &Value| -> Vec<String> {
        let tools = tools.as_array().map(Vec::as_slice).unwrap_or_default();
        tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
    };
    let (served, told) = (names(&listed["result"]["tools"]), names(&manifest["tools"]));
    ensure!(!told.is_empty() && served == told, "the server has {served:?}, the manifest {told:?}");
    let (code, _) = server.close()?;
    ensure!(code == 0, "the server ended with {code}");
    Ok(())
}

/// Has the official checker read the manifest; says so and is content where npm has it not.
fn official(manifest: &Value) -> Result<()> {
    let scratch = Scratch::new("bundle-check")?;
    let file = scratch.path().join("manifest.json");
    std::fs::write(&file, pretty(manifest)?)?;
    let mut install = Command::new("npm");
    install.current_dir(scratch.path()).args(["install", "--silent", "--no-audit", "--no-fund", CHECKER]);
    if let Err(error) = proc::run(&mut install, Duration::from_secs(180)) {
        println!("bundle: not read by the official checker: {error:#}");
        return Ok(());
    }
    let checker = scratch.path().join("node_modules/.bin/mcpb");
    proc::run(Command::new(checker).arg("validate").arg(&file), Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_names_every_tool_of_the_golden_file_with_words() {
        let manifest = manifest().unwrap();
        let tools = manifest["tools"].as_array().unwrap();
        assert!(tools.len() >= 4);
        assert!(tools.iter().all(|tool| tool["name"].is_string() && tool["description"].is_string()));
    }

    #[test]
    fn a_bundle_is_the_same_bytes_each_time_and_its_program_may_run() {
        let manifest = manifest().unwrap();
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let bundle = pack(&manifest, &program).unwrap();
        assert_eq!(bundle, pack(&manifest, &program).unwrap());
        let mut archive = ZipArchive::new(Cursor::new(&bundle[..])).unwrap();
        assert_eq!(archive.by_name(PROGRAM).unwrap().unix_mode().unwrap() & 0o777, 0o755);
        assert_eq!(archive.by_index(0).unwrap().name().unwrap(), "manifest.json");
    }

    #[test]
    fn a_registrys_entry_carries_the_digest_of_the_bundle() {
        let entry = server("com.example/cyberine", "https://example.com/a.mcpb", b"abc").unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(entry["packages"][0]["fileSha256"], sum);
        assert!(server("cyberine", "u", b"").is_err());
        assert!(server("example/cyberine", "u", b"").is_err());
    }
}
