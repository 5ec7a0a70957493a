//! Lists and contents of resources.

use std::sync::Arc;

use cyberine_protocol::model::{
    self, CacheHint, CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
    ResourceBody,
};
use cyberine_protocol::{Answer, RpcError};
use serde_json::{Map, json};

use super::Request;
use crate::connection::Reply;
use crate::resource_set::{Resource, ResourceContents, ResourceError, ResourceSet, ResourceTemplate};
use crate::server::Server;

/// The code of a resource behind a closed gate.
const UNAUTHORIZED: i64 = -33001;

/// Templates change with the program only.
const TEMPLATES_CACHE: CacheHint = CacheHint { ttl_ms: 3_600_000, scope: CacheScope::Public };

pub(super) fn templates(server: &Server) -> Reply {
    let templates = resources(server)?.templates().into_iter().map(wire_template).collect();
    Ok(Answer::Templates(ListResourceTemplatesResult {
        templates,
        next_cursor: None,
        cache: TEMPLATES_CACHE,
    }))
}

pub(super) async fn list(request: &Request, cursor: Option<String>) -> Reply {
    let page = resources(request.server())?.list(request.caller.clone(), cursor).await.map_err(rpc_error)?;
    Ok(Answer::Resources(ListResourcesResult {
        resources: page.resources.into_iter().map(wire_resource).collect(),
        next_cursor: page.next_cursor,
        cache: CacheHint::NONE,
    }))
}

pub(super) async fn contents(request: &Request, uri: String) -> Reply {
    let contents = resources(request.server())?.read(request.caller.clone(), uri).await.map_err(rpc_error)?;
    Ok(Answer::Contents(ReadResourceResult {
        contents: vec![wire_contents(contents)],
        cache: CacheHint::NONE,
    }))
}

pub(super) fn resources(server: &Server) -> Result<&Arc<dyn ResourceSet>, RpcError> {
    server.resources.as_ref().ok_or_else(|| RpcError::method_not_found("resources"))
}

pub(super) fn rpc_error(error: ResourceError) -> RpcError {
    match error {
        // What a client puts behind the path may be a secret.
        ResourceError::NotFound { uri } => {
            RpcError::resource_not_found(uri.split(['?', '#']).next().unwrap_or_default())
        }
        ResourceError::BadCursor => RpcError::invalid_cursor(),
        ResourceError::Unauthorized => {
            RpcError::own(UNAUTHORIZED, "unauthorized").with_data(json!({ "reason": "unauthorized" }))
        }
        ResourceError::Internal(message) => RpcError::internal(message),
        ResourceError::Other { code, message, data } => {
            let error = RpcError::own(code, message);
            match data {
                Some(data) => error.with_data(data),
                None => error,
            }
        }
    }
}

fn wire_template(template: ResourceTemplate) -> model::ResourceTemplate {
    let ResourceTemplate { uri_template, name, title, description, mime_type } = template;
    model::ResourceTemplate {
        uri_template,
        name,
        title: Some(title),
        description: Some(description),
        mime_type: Some(mime_type),
        ..model::ResourceTemplate::default()
    }
}

fn wire_resource(resource: Resource) -> model::Resource {
    let Resource { uri, name, description, mime_type, last_modified } = resource;
    let annotations = last_modified
        .map(|at| model::Annotations { last_modified: Some(at), ..model::Annotations::default() });
    model::Resource {
        uri,
        name,
        description: Some(description),
        mime_type: Some(mime_type),
        annotations,
        ..model::Resource::default()
    }
}

fn wire_contents(contents: ResourceContents) -> model::ResourceContents {
    let ResourceContents { uri, mime_type, text } = contents;
    model::ResourceContents {
        uri,
        mime_type: Some(mime_type),
        body: ResourceBody::Text(text),
        meta: Map::new(),
    }
}
