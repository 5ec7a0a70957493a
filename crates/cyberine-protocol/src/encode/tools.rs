use std::fmt;
use std::sync::OnceLock;

use super::json::Object;
use crate::escape::escape_line;
use crate::model::{CacheHint, ListedTool, Tool};
use crate::revision::Revision;

/// Where a listing reads its tools, so that whoever keeps them in another form need not copy them.
pub trait ToolSource: fmt::Debug + Send + Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// One of them, counted from 0, in the order they are listed.
    fn tool(&self, at: usize) -> ListedTool<'_>;
}

impl ToolSource for Vec<Tool> {
    fn count(&self) -> usize {
        self.len()
    }

    fn tool(&self, at: usize) -> ListedTool<'_> {
        ListedTool::from(&self[at])
    }
}

/// All tools of a server, encoded at most once per revision: a listing is a copy of bytes.
#[derive(Debug)]
pub struct ToolListing {
    tools: Box<dyn ToolSource>,
    cache: CacheHint,
    encoded: [OnceLock<Box<[u8]>>; Revision::ALL.len()],
}

impl ToolListing {
    /// Lists the tools of `tools`.
    #[must_use]
    pub fn new(tools: impl ToolSource + 'static, cache: CacheHint) -> Self {
        Self { tools: Box::new(tools), cache, encoded: Default::default() }
    }

    /// The members of the result object, without its braces and without `_meta`, escaped.
    pub(super) fn members(&self, revision: Revision) -> &[u8] {
        self.encoded[revision as usize].get_or_init(|| {
            let mut out = Vec::new();
            let mut object = Object::new(&mut out);
            if revision.is_stateless() {
                object.raw("resultType", "\"complete\"");
            }
            let tools: Vec<ListedTool<'_>> = (0..self.tools.count()).map(|at| self.tools.tool(at)).collect();
            object.array("tools", &tools, |out, tool| write_tool(out, tool, revision));
            object.cache(self.cache, revision);
            escape_line(out.split_off(1)).into()
        })
    }
}

fn write_tool(out: &mut Vec<u8>, tool: &ListedTool<'_>, revision: Revision) {
    let mut object = Object::new(out);
    object.member("name", tool.name);
    object.title(tool.title.as_ref(), revision);
    object.optional("description", tool.description.as_ref());
    object.raw("inputSchema", &tool.input_schema);
    if revision >= Revision::V2025_06_18 {
        let output = tool.output_schema.as_ref();
        if let Some(schema) = output.filter(|schema| revision.is_stateless() || schema.is_object) {
            object.raw("outputSchema", &schema.text);
        }
    }
    if revision >= Revision::V2025_03_26 {
        object.optional("annotations", tool.annotations.as_ref());
    }
    object.icons(tool.icons, revision);
    if let Some(meta) = tool.meta {
        object.part_meta(meta, revision);
    }
    object.end();
}
