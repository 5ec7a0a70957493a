use super::json::{Object, put};
use crate::model::{Annotations, ContentBlock, Resource, ResourceBody, ResourceContents, ResourceTemplate};
use crate::revision::Revision;

fn annotations(object: &mut Object<'_>, hints: Option<&Annotations>, revision: Revision) {
    let Some(hints) = hints else { return };
    let mut inner = object.object("annotations");
    if !hints.audience.is_empty() {
        inner.member("audience", &hints.audience);
    }
    inner.optional("priority", hints.priority.as_ref());
    if revision >= Revision::V2025_06_18 {
        inner.optional("lastModified", hints.last_modified.as_ref());
    }
    inner.end();
}

/// One block of a result. What the revision has no block for becomes a line of text, so that the
/// model still learns of it.
pub(super) fn block(out: &mut Vec<u8>, block: &ContentBlock, revision: Revision) {
    match block {
        ContentBlock::Text { text, annotations } => text_block(out, text, annotations.as_ref(), revision),
        ContentBlock::Image { data, mime_type, annotations } => {
            media(out, "\"image\"", data, mime_type, annotations.as_ref(), revision);
        }
        ContentBlock::Audio { data, mime_type, annotations } if revision >= Revision::V2025_03_26 => {
            media(out, "\"audio\"", data, mime_type, annotations.as_ref(), revision);
        }
        ContentBlock::Audio { mime_type, annotations, .. } => {
            let text = format!("audio of type {mime_type}, which revision {revision} cannot carry");
            text_block(out, &text, annotations.as_ref(), revision);
        }
        ContentBlock::ResourceLink(resource) if revision >= Revision::V2025_06_18 => {
            let mut object = Object::new(out);
            object.raw("type", "\"resource_link\"");
            resource_members(object, resource, revision);
        }
        ContentBlock::ResourceLink(resource) => {
            let name = resource.title.as_ref().unwrap_or(&resource.name);
            let text = format!("{name}: {}", resource.uri);
            text_block(out, &text, resource.annotations.as_ref(), revision);
        }
        ContentBlock::Embedded { contents, annotations: hints } => {
            let mut object = Object::new(out);
            object.raw("type", "\"resource\"");
            resource_contents(object.key("resource"), contents, revision);
            annotations(&mut object, hints.as_ref(), revision);
            object.end();
        }
    }
}

fn text_block(out: &mut Vec<u8>, text: &str, hints: Option<&Annotations>, revision: Revision) {
    let mut object = Object::new(out);
    object.raw("type", "\"text\"");
    object.member("text", text);
    annotations(&mut object, hints, revision);
    object.end();
}

fn media(
    out: &mut Vec<u8>,
    kind: &str,
    data: &str,
    mime: &str,
    hints: Option<&Annotations>,
    revision: Revision,
) {
    let mut object = Object::new(out);
    object.raw("type", kind);
    object.member("data", data);
    object.member("mimeType", mime);
    annotations(&mut object, hints, revision);
    object.end();
}

pub(super) fn resource(out: &mut Vec<u8>, resource: &Resource, revision: Revision) {
    resource_members(Object::new(out), resource, revision);
}

fn resource_members(mut object: Object<'_>, resource: &Resource, revision: Revision) {
    object.member("uri", &resource.uri);
    object.member("name", &resource.name);
    object.title(resource.title.as_ref(), revision);
    object.optional("description", resource.description.as_ref());
    object.optional("mimeType", resource.mime_type.as_ref());
    object.optional("size", resource.size.as_ref());
    annotations(&mut object, resource.annotations.as_ref(), revision);
    object.icons(&resource.icons, revision);
    object.part_meta(&resource.meta, revision);
    object.end();
}

pub(super) fn template(out: &mut Vec<u8>, template: &ResourceTemplate, revision: Revision) {
    let mut object = Object::new(out);
    object.member("uriTemplate", &template.uri_template);
    object.member("name", &template.name);
    object.title(template.title.as_ref(), revision);
    object.optional("description", template.description.as_ref());
    object.optional("mimeType", template.mime_type.as_ref());
    annotations(&mut object, template.annotations.as_ref(), revision);
    object.icons(&template.icons, revision);
    object.part_meta(&template.meta, revision);
    object.end();
}

pub(super) fn resource_contents(out: &mut Vec<u8>, contents: &ResourceContents, revision: Revision) {
    let mut object = Object::new(out);
    object.member("uri", &contents.uri);
    object.optional("mimeType", contents.mime_type.as_ref());
    match &contents.body {
        ResourceBody::Text(text) => put(object.key("text"), text),
        ResourceBody::Blob(base64) => put(object.key("blob"), base64),
    }
    object.part_meta(&contents.meta, revision);
    object.end();
}
