//! The tools of one list, ready to be listed and called.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cyberine_protocol::http::HeaderParams;
use cyberine_protocol::{Schema, ToolListing, ToolSource, model};
use serde_json::{Map, Value};

use crate::object_schema::ExtraArgument;
use crate::toolset::{Tool, ToolResult};

/// How many lists are kept. There is one per audience.
const KEPT: usize = 8;

/// How long a list may be kept: it may change with the server's configuration from one start to the
/// next.
const LIST_TTL_MS: u64 = 300_000;

/// How long a list may be kept, and by whom: `is_public` where it is the same for every caller.
pub(crate) const fn list_cache(is_public: bool) -> model::CacheHint {
    let scope = if is_public { model::CacheScope::Public } else { model::CacheScope::Private };
    model::CacheHint { ttl_ms: LIST_TTL_MS, scope }
}

/// The tools of one list: encoded once, their validators compiled on first call.
pub(crate) struct Catalog {
    listed: Listed,
    by_name: HashMap<&'static str, usize>,
    validators: Vec<OnceLock<Result<Schema, String>>>,
    listing: OnceLock<Arc<ToolListing>>,
    /// The arguments of each tool that are mirrored into headers; `None` where it has none.
    mirrored: Vec<OnceLock<Option<Arc<HeaderParams>>>>,
    cache: model::CacheHint,
}

/// What a catalogue is made of beside the tools.
pub(crate) struct Around {
    /// The arguments that all of them take.
    pub(crate) extra: Vec<ExtraArgument>,
    /// Whether the list is the same for every caller.
    pub(crate) is_public: bool,
}

/// Why a call cannot begin.
#[derive(Debug)]
pub(crate) enum Refused {
    UnknownTool,
    /// The arguments do not fit; the result says where.
    Arguments(ToolResult),
    /// The tool's own schema is at fault.
    Schema(String),
}

impl Catalog {
    fn new(tools: Arc<[Tool]>, Around { extra, is_public }: Around) -> Self {
        let by_name = tools.iter().enumerate().map(|(at, tool)| (tool.name, at)).collect();
        let validators = tools.iter().map(|_| OnceLock::new()).collect();
        let mirrored = tools.iter().map(|_| OnceLock::new()).collect();
        let listed = Listed { tools, extra: extra.into() };
        Self { listed, by_name, validators, listing: OnceLock::new(), mirrored, cache: list_cache(is_public) }
    }

    /// The list as it goes out.
    pub(crate) fn listing(&self) -> Arc<ToolListing> {
        let encoded = || Arc::new(ToolListing::new(self.listed.clone(), self.cache));
        Arc::clone(self.listing.get_or_init(encoded))
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The arguments of a tool that are mirrored into headers, if there are any.
    pub(crate) fn mirrored(&self, name: &str) -> Option<Arc<HeaderParams>> {
        let at = *self.by_name.get(name)?;
        let found = || {
            let schema = serde_json::from_str(&self.listed.input_schema(at)).ok()?;
            match HeaderParams::of_schema(&schema) {
                Ok(params) => Some(Arc::new(params)).filter(|params| !params.is_empty()),
                Err(error) => {
                    tracing::error!(tool = name, %error, "clients over HTTP leave this tool out");
                    None
                }
            }
        };
        self.mirrored[at].get_or_init(found).clone()
    }

    /// Checks the arguments of a call against the tool's input schema.
    pub(crate) fn check(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Map<String, Value>, Refused> {
        let at = *self.by_name.get(name).ok_or(Refused::UnknownTool)?;
        let compile = || Schema::parse(&self.listed.input_schema(at)).map_err(|error| error.to_string());
        let validator = match self.validators[at].get_or_init(compile) {
            Ok(validator) => validator,
            Err(error) => return Err(Refused::Schema(error.clone())),
        };
        let arguments = Value::Object(arguments);
        match (validator.check(&arguments), arguments) {
            (Ok(()), Value::Object(arguments)) => Ok(arguments),
            (Ok(()), _) => Err(Refused::UnknownTool),
            (Err(violations), _) => Err(Refused::Arguments(ToolResult::error(violations.to_string()))),
        }
    }
}

/// The tools as they are listed, and the arguments that all of them take.
#[derive(Debug, Clone)]
struct Listed {
    tools: Arc<[Tool]>,
    extra: Arc<[ExtraArgument]>,
}

impl Listed {
    fn input_schema(&self, at: usize) -> String {
        self.tools[at].input_schema.text_with(&self.extra)
    }
}

impl ToolSource for Listed {
    fn count(&self) -> usize {
        self.tools.len()
    }

    fn tool(&self, at: usize) -> model::ListedTool<'_> {
        let Tool { name, title, description, output_schema, annotations, .. } = &self.tools[at];
        model::ListedTool {
            name,
            title: Some(title),
            description: Some(description),
            input_schema: Cow::Owned(self.input_schema(at)),
            output_schema: (!output_schema.is_empty()).then(|| model::ListedSchema {
                text: Cow::Owned(output_schema.to_string()),
                is_object: true,
            }),
            annotations: Some(model::ToolAnnotations {
                title: None,
                read_only: Some(annotations.read_only),
                destructive: Some(annotations.destructive),
                idempotent: Some(annotations.idempotent),
                open_world: Some(annotations.open_world),
            }),
            icons: &[],
            meta: None,
        }
    }
}

/// The lists in use, newest last.
#[derive(Default)]
pub(crate) struct Catalogs(Mutex<Vec<Arc<Catalog>>>);

impl Catalogs {
    /// The catalogue of `tools`: the one made before, where the list is the same.
    /// `around` is asked where it is made.
    pub(crate) fn of(&self, tools: &Arc<[Tool]>, around: impl FnOnce() -> Around) -> Arc<Catalog> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.iter().find(|catalog| Arc::ptr_eq(&catalog.listed.tools, tools));
        if let Some(known) = known.or_else(|| kept.iter().find(|catalog| catalog.listed.tools == *tools)) {
            return Arc::clone(known);
        }
        let fresh = Arc::new(Catalog::new(Arc::clone(tools), around()));
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(Arc::clone(&fresh));
        fresh
    }
}
