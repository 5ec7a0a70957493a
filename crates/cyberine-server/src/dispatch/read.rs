//! Lists and contents of resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use cyberine_protocol::model::{
    self, CacheHint, CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
};
use cyberine_protocol::{Answer, RpcError};
use serde_json::{Map, Value, json};

use super::Request;
use super::input::{Input, Needs, Next};
use crate::connection::Reply;
use crate::resource_set::{
    ReadOutcome, Resource, ResourceContents, ResourceError, ResourceRead, ResourceSet, ResourceTemplate,
};
use crate::seal::Binding;
use crate::server::Server;

/// The code of a resource behind a closed gate.
const UNAUTHORIZED: i64 = -33001;

/// Templates change with the program only.
const TEMPLATES_CACHE: CacheHint = CacheHint { ttl_ms: 3_600_000, scope: CacheScope::Public };

/// What the client wrote.
pub(super) struct Asked {
    pub(super) uri: String,
    pub(super) input_responses: BTreeMap<String, Value>,
    pub(super) request_state: Option<String>,
}

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

pub(super) async fn contents(request: &Request, asked: Asked) -> Reply {
    let resources = resources(request.server())?;
    let Asked { uri, input_responses, request_state } = asked;
    let (principal, no_arguments) = (request.caller.principal(), Map::new());
    let binding = Binding { principal, method: "resources/read", name: &uri, arguments: &no_arguments };
    let mut input = Input::new(request, binding, input_responses, request_state.as_deref())?;
    loop {
        let (input_responses, state) = input.take();
        let (caller, capabilities) = (request.caller.clone(), request.capabilities);
        let read = ResourceRead { uri: uri.clone(), caller, capabilities, input_responses, state };
        let needs = match resources.read(read).await.map_err(rpc_error)? {
            ReadOutcome::Contents(contents) => return Ok(wire_read(contents)),
            ReadOutcome::InputRequired { requests, state } => Needs { requests, state },
        };
        match input.ask(needs).await? {
            Next::Again => {}
            Next::Reply(answer) => return Ok(answer),
            Next::Unanswered(why) => return Err(why.into_error()),
        }
    }
}

fn wire_read(contents: Vec<ResourceContents>) -> Answer {
    let contents = contents.into_iter().map(wire_contents).collect();
    Answer::Contents(ReadResourceResult { contents, cache: CacheHint::NONE })
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
        ResourceError::BadUri { message, reason } => {
            RpcError::invalid_params(message).with_data(json!({ "reason": reason }))
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
    let ResourceContents { uri, mime_type, body } = contents;
    model::ResourceContents { uri, mime_type: Some(mime_type), body, meta: Map::new() }
}
