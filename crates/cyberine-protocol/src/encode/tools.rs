use std::sync::OnceLock;

use serde_json::Value;

use super::json::Object;
use crate::escape::escape_line;
use crate::model::{CacheHint, Tool};
use crate::revision::Revision;

/// All tools of a server, encoded at most once per revision: a listing is a copy of bytes.
#[derive(Debug)]
pub struct ToolListing {
    tools: Vec<Tool>,
    cache: CacheHint,
    encoded: [OnceLock<Box<[u8]>>; Revision::ALL.len()],
}

impl ToolListing {
    /// Takes the tools, in the order they are listed.
    #[must_use]
    pub fn new(tools: Vec<Tool>, cache: CacheHint) -> Self {
        Self { tools, cache, encoded: Default::default() }
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The members of the result object, without its braces and without `_meta`, escaped.
    pub(super) fn members(&self, revision: Revision) -> &[u8] {
        self.encoded[revision as usize].get_or_init(|| {
            let mut out = Vec::new();
            let mut object = Object::new(&mut out);
            if revision.is_stateless() {
                object.raw("resultType", "\"complete\"");
            }
            object.array("tools", &self.tools, |out, tool| write_tool(out, tool, revision));
            object.cache(self.cache, revision);
            escape_line(out.split_off(1)).into()
        })
    }
}

fn write_tool(out: &mut Vec<u8>, tool: &Tool, revision: Revision) {
    let mut object = Object::new(out);
    object.member("name", &tool.name);
    object.title(tool.title.as_ref(), revision);
    object.optional("description", tool.description.as_ref());
    object.member("inputSchema", &tool.input_schema);
    if revision >= Revision::V2025_06_18 {
        let fits = |schema: &&Value| revision.is_stateless() || schema["type"] == "object";
        object.optional("outputSchema", tool.output_schema.as_ref().filter(fits));
    }
    if revision >= Revision::V2025_03_26 {
        object.optional("annotations", tool.annotations.as_ref());
    }
    object.icons(&tool.icons, revision);
    object.part_meta(&tool.meta, revision);
    object.end();
}
