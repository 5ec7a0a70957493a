//! A rubric with criteria: a TOML file of its own.

use cyberine_orchestrator::{Criterion, Rubric};

use super::document::Document;
use super::{ConfigError, ConfigSource};

/// Reads `about` and `[[criteria]]` of a rubric in TOML.
///
/// # Errors
/// Where it is no such file, with the place in it.
pub(crate) fn rubric_of(source: &ConfigSource) -> Result<Rubric, ConfigError> {
    let document = Document::parse(source)?;
    document.only(&["about", "criteria"])?;
    let about: Option<String> = document.section("about")?;
    let criteria: Vec<Criterion> = document.section("criteria")?.unwrap_or_default();
    Rubric::new(about.as_deref(), criteria).map_err(|error| {
        let message = format!(
            "the rubric cannot be scored: {error}; a criterion is a table `[[criteria]]` with a `name`"
        );
        ConfigError::Invalid { at: document.place_at(&["criteria"]), message }
    })
}
