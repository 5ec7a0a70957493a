//! A whole list of tools, page by page, within bounds.

use std::collections::BTreeMap;

use cyberine_protocol::http::HeaderParams;
use cyberine_protocol::{Ask, ClientEffect, OfferedTool, ToolsPage};

use serde_json::Value;

use crate::error::ClientError;
use crate::link::{Link, Next};

/// The most pages that are asked for.
const PAGES: usize = 1_000;
/// The most tools that are kept.
const TOOLS: usize = 10_000;
/// The most bytes of names, descriptions and schemas that are kept.
const BYTES: usize = 16 * 1024 * 1024;

/// What of a list has come.
#[derive(Default)]
struct List {
    tools: Vec<OfferedTool>,
    bytes: usize,
    pages: usize,
}

impl List {
    /// Adds a page. Gives the cursor of the next one, where there is one.
    fn add(&mut self, page: ToolsPage) -> Result<Option<String>, String> {
        self.pages += 1;
        self.bytes += page.tools.iter().map(size).sum::<usize>();
        self.tools.extend(page.tools);
        if self.tools.len() > TOOLS {
            return Err(format!("it has more than {TOOLS} tools"));
        }
        if self.bytes > BYTES {
            return Err(format!("it has more than {BYTES} bytes"));
        }
        match page.next_cursor {
            Some(_) if self.pages >= PAGES => Err(format!("it has more than {PAGES} pages")),
            next => Ok(next),
        }
    }
}

fn size(tool: &OfferedTool) -> usize {
    let schema = tool.input_schema.as_ref().map_or(0, |schema| schema.get().len());
    tool.name.len() + tool.description.as_ref().map_or(0, String::len) + schema
}

pub(crate) async fn all(link: &mut Link) -> Result<Vec<OfferedTool>, ClientError> {
    let (mut list, mut cursor) = (List::default(), None);
    loop {
        let next = page(link, cursor).await?;
        cursor = list.add(next).map_err(|what| ClientError::EndlessTools { what })?;
        if cursor.is_none() {
            return Ok(list.tools);
        }
    }
}

async fn page(link: &mut Link, cursor: Option<String>) -> Result<ToolsPage, ClientError> {
    let mine = link.ask(&Ask::ListTools { cursor }, None, Vec::new())?;
    loop {
        match link.next().await? {
            Next::Effect(ClientEffect::Tools { key, page }) if key == mine => return Ok(page),
            Next::Effect(ClientEffect::Failed { key, error }) if key == mine => return Err(error.into()),
            Next::Lost(key, why) if key == mine => return Err(why),
            _ => {}
        }
    }
}

/// Which arguments of each tool are told in headers. A tool whose marks break the rules is taken out
/// of the list (2026-07-28, `server/tools`, `x-mcp-header`).
pub(crate) fn marked(tools: &mut Vec<OfferedTool>) -> BTreeMap<String, HeaderParams> {
    let mut marks = BTreeMap::new();
    tools.retain(|tool| {
        let schema = tool.input_schema.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
        match HeaderParams::of_schema(&schema.unwrap_or(Value::Null)) {
            Ok(params) => {
                if !params.is_empty() {
                    marks.insert(tool.name.clone(), params);
                }
                true
            }
            Err(error) => {
                tracing::warn!(tool = tool.name, "an MCP server's tool is left out: {error}");
                false
            }
        }
    });
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(tools: usize, description: &str, next_cursor: Option<&str>) -> ToolsPage {
        let description = Some(description.to_owned());
        let tool = OfferedTool { name: "t".into(), description, input_schema: None };
        ToolsPage { tools: vec![tool; tools], next_cursor: next_cursor.map(str::to_owned) }
    }

    #[test]
    fn a_list_is_bounded_in_pages_tools_and_bytes() {
        let mut list = List::default();
        assert_eq!(list.add(page(TOOLS, "", Some(""))), Ok(Some(String::new())), "an empty cursor is one");
        assert_eq!(list.add(page(0, "", None)), Ok(None));
        assert_eq!(list.add(page(1, "", None)), Err("it has more than 10000 tools".to_owned()));

        let mut list = List::default();
        for _ in 1..PAGES {
            assert_eq!(list.add(page(0, "", Some("same"))), Ok(Some("same".to_owned())));
        }
        assert_eq!(list.add(page(0, "", None)), Ok(None));
        assert_eq!(list.add(page(0, "", Some("same"))), Err("it has more than 1000 pages".to_owned()));

        let big = "x".repeat(BYTES / 4);
        assert_eq!(List::default().add(page(3, &big, None)), Ok(None));
        assert_eq!(
            List::default().add(page(4, &big, None)),
            Err("it has more than 16777216 bytes".to_owned())
        );
    }
}
