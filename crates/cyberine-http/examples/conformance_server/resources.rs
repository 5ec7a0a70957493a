//! The resources: two that stay as they are, one that can be followed, and a template.

use cyberine_server::{
    ReadOutcome, Resource, ResourceBody, ResourceContents, ResourceError, ResourcePage, ResourceRead,
    ResourceSet, ResourceTemplate, ResourceWatch,
};
use cyberine_types::Caller;
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::PNG;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";

pub(crate) struct Resources;

/// What is at a URI: its media type and what it holds.
fn find(uri: &str) -> Option<(&'static str, ResourceBody)> {
    let text = |text: &str| ("text/plain", ResourceBody::Text(text.to_owned()));
    match uri {
        TEXT => Some(text("This is the content of the static text resource.")),
        BINARY => Some(("image/png", ResourceBody::Blob(PNG.to_owned()))),
        WATCHED => Some(text("This resource can be followed.")),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            let known = !id.is_empty() && !id.contains('/');
            known.then(|| ("application/json", ResourceBody::Text(data.to_string())))
        }
    }
}

impl ResourceSet for Resources {
    fn templates(&self) -> Vec<ResourceTemplate> {
        vec![ResourceTemplate {
            uri_template: "test://template/{id}/data".to_owned(),
            name: "template".to_owned(),
            title: "Template".to_owned(),
            description: "Data of any id.".to_owned(),
            mime_type: "application/json".to_owned(),
        }]
    }

    fn list(
        &self,
        _caller: Caller,
        cursor: Option<String>,
    ) -> BoxFuture<'_, Result<ResourcePage, ResourceError>> {
        let listed = |uri: &str, name: &str, description: &str, mime_type: &str| Resource {
            uri: uri.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            mime_type: mime_type.to_owned(),
            last_modified: None,
        };
        let resources = vec![
            listed(TEXT, "static-text", "A text that stays as it is.", "text/plain"),
            listed(BINARY, "static-binary", "A picture that stays as it is.", "image/png"),
            listed(WATCHED, "watched-resource", "A text that can be followed.", "text/plain"),
        ];
        let page = match cursor {
            None => Ok(ResourcePage { resources, next_cursor: None }),
            Some(_) => Err(ResourceError::BadCursor),
        };
        Box::pin(std::future::ready(page))
    }

    fn read(&self, read: ResourceRead) -> BoxFuture<'_, Result<ReadOutcome, ResourceError>> {
        let uri = read.uri;
        let outcome = match find(&uri) {
            Some((mime_type, body)) => {
                let contents = ResourceContents { uri, mime_type: mime_type.to_owned(), body };
                Ok(ReadOutcome::Contents(vec![contents]))
            }
            None => Err(ResourceError::NotFound { uri }),
        };
        Box::pin(std::future::ready(outcome))
    }

    fn is_watchable(&self) -> bool {
        true
    }

    fn watch(
        &self,
        _caller: Caller,
        uri: String,
    ) -> BoxFuture<'_, Result<Box<dyn ResourceWatch>, ResourceError>> {
        let watch = if find(&uri).is_some() {
            let watch: Box<dyn ResourceWatch> = Box::new(Still(uri));
            Ok(watch)
        } else {
            Err(ResourceError::NotFound { uri })
        };
        Box::pin(std::future::ready(watch))
    }
}

/// A resource that never changes.
struct Still(String);

impl ResourceWatch for Still {
    fn uri(&self) -> &str {
        &self.0
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
