//! What a server says of itself.

use super::json::{Object, put};
use super::result::{Writer, head};
use crate::escape::escape_line;
use crate::jsonrpc::RequestId;
use crate::model::{CacheHint, CacheScope, Implementation, ListKind, TASKS_EXTENSION};
use crate::revision::Revision;
use crate::session::ServerProfile;

const DISCOVER_TTL_MS: u64 = 3_600_000;

/// An `Implementation` object, escaped.
pub(crate) fn implementation(info: &Implementation, revision: Revision) -> String {
    let mut out = Vec::with_capacity(128);
    let mut object = Object::new(&mut out);
    object.member("name", &info.name);
    object.title(info.title.as_ref(), revision);
    object.member("version", &info.version);
    if revision >= Revision::V2025_11_25 {
        object.optional("description", info.description.as_ref());
        object.optional("websiteUrl", info.website_url.as_ref());
    }
    object.icons(&info.icons, revision);
    object.end();
    String::from_utf8_lossy(&escape_line(out)).into_owned()
}

fn capabilities(object: &mut Object<'_>, profile: &ServerProfile, revision: Revision) {
    let mut all = object.object("capabilities");
    if profile.tools {
        list(&mut all, "tools", profile, ListKind::Tools, false);
    }
    if profile.resources {
        list(&mut all, "resources", profile, ListKind::Resources, profile.subscriptions);
    }
    if profile.prompts {
        list(&mut all, "prompts", profile, ListKind::Prompts, false);
    }
    if profile.completions && revision >= Revision::V2025_03_26 {
        all.raw("completions", "{}");
    }
    if profile.logging {
        all.raw("logging", "{}");
    }
    if profile.tasks && revision.is_stateless() {
        let mut extensions = all.object("extensions");
        extensions.raw(TASKS_EXTENSION, "{}");
        extensions.end();
    }
    all.end();
}

fn list(all: &mut Object<'_>, key: &str, profile: &ServerProfile, kind: ListKind, subscribe: bool) {
    let mut inner = all.object(key);
    if subscribe {
        inner.raw("subscribe", "true");
    }
    if profile.tells_of(kind) {
        inner.raw("listChanged", "true");
    }
    inner.end();
}

/// The response to `initialize`.
pub(crate) fn initialize_line(id: &RequestId, profile: &ServerProfile, revision: Revision) -> Vec<u8> {
    let mut out = head(id, 1024);
    let mut object = Object::new(&mut out);
    object.member("protocolVersion", revision.as_str());
    capabilities(&mut object, profile, revision);
    object.raw("serverInfo", &implementation(&profile.info, revision));
    object.optional("instructions", profile.instructions.as_ref());
    object.end();
    out.push(b'}');
    escape_line(out)
}

/// The response to `server/discover`: the same for every caller.
pub(crate) fn discover_line(
    id: &RequestId,
    profile: &ServerProfile,
    revision: Revision,
    server: &str,
) -> Vec<u8> {
    let write = Writer { revision, server };
    write.line(id, 1024, |object| {
        write.kind(object, "complete");
        object
            .array("supportedVersions", &Revision::STATELESS, |out, supported| put(out, supported.as_str()));
        capabilities(object, profile, revision);
        object.optional("instructions", profile.instructions.as_ref());
        object.cache(CacheHint { ttl_ms: DISCOVER_TTL_MS, scope: CacheScope::Public }, revision);
        write.meta(object, None);
    })
}
