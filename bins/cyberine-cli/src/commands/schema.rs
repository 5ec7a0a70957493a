//! `cyberine schema`, and the schema that `cyberine init` puts beside a configuration.

use cyberine_app::{Exit, Workplace};
use cyberine_fs::{Durability, FsError, PrivateDir};

use crate::draft::Scope;
use crate::out::Out;

/// What a configuration file may say.
const SCHEMA: &str = include_str!("../../../../docs/formats/cyberine.schema.json");
/// The schema's name on the disk.
const FILE: &str = "cyberine.schema.json";
/// Where a project keeps what is nobody's to commit.
const LOCAL: &str = ".local";

/// Prints the schema of `cyberine.toml` and of the home's `config.toml`, which are alike.
pub(super) fn run(out: &Out) -> Exit {
    out.raw(SCHEMA);
    Exit::Done
}

/// Puts the schema where a configuration can name it, and says how: by a path from its own
/// directory, which editors follow without a network.
///
/// # Errors
/// Where it cannot be written. A configuration does without.
pub(super) fn put(scope: Scope, workplace: &Workplace) -> Result<String, FsError> {
    if scope == Scope::Home {
        let home = PrivateDir::open_existing(workplace.home.directory())?;
        home.replace(FILE, SCHEMA.as_bytes(), Durability::Fast)?;
        return Ok(format!("./{FILE}"));
    }
    let local = PrivateDir::open_existing(workplace.project.directory())?.subdir(LOCAL)?;
    if !local.exists(".gitignore")? {
        local.replace(".gitignore", b"*\n", Durability::Fast)?;
    }
    local.replace(FILE, SCHEMA.as_bytes(), Durability::Fast)?;
    Ok(format!("./{LOCAL}/{FILE}"))
}

#[cfg(test)]
mod tests;
