use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::{CacheHint, CacheScope};
use crate::revision::Revision;

/// Appends the JSON of `value`.
pub(super) fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("a vector takes every write, and our maps have string keys");
}

/// Writes one JSON object, member by member.
pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    /// Writes a key that needs no escapes and hands out the place of its value.
    pub(super) fn key(&mut self, key: &str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if self.empty { b"\"" } else { b",\"" });
        self.empty = false;
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    /// The same for a key that may need escapes.
    pub(super) fn any_key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        put(self.out, key);
        self.out.push(b':');
        self.out
    }

    pub(super) fn member<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        put(self.key(key), value);
    }

    pub(super) fn optional<T: Serialize>(&mut self, key: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.member(key, value);
        }
    }

    /// A value that is JSON already.
    pub(super) fn raw(&mut self, key: &str, json: &str) {
        self.key(key).extend_from_slice(json.as_bytes());
    }

    pub(super) fn object(&mut self, key: &str) -> Object<'_> {
        Object::new(self.key(key))
    }

    pub(super) fn array<T>(&mut self, key: &str, items: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
        let out = self.key(key);
        out.push(b'[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write(out, item);
        }
        out.push(b']');
    }

    /// `icons`, from 2025-11-25.
    pub(super) fn icons<T: Serialize>(&mut self, icons: &[T], revision: Revision) {
        if revision >= Revision::V2025_11_25 && !icons.is_empty() {
            self.member("icons", icons);
        }
    }

    /// `title`, from 2025-06-18.
    pub(super) fn title<T: Serialize>(&mut self, title: Option<&T>, revision: Revision) {
        if revision >= Revision::V2025_06_18 {
            self.optional("title", title);
        }
    }

    /// `_meta` of a part of a result, from 2025-06-18.
    pub(super) fn part_meta(&mut self, meta: &Map<String, Value>, revision: Revision) {
        if revision >= Revision::V2025_06_18 && !meta.is_empty() {
            self.member("_meta", meta);
        }
    }

    /// `ttlMs` and `cacheScope`, which the stateless era requires on what can be kept.
    pub(super) fn cache(&mut self, hint: CacheHint, revision: Revision) {
        if revision.is_stateless() {
            self.member("ttlMs", &hint.ttl_ms);
            let scope = match hint.scope {
                CacheScope::Public => "public",
                CacheScope::Private => "private",
            };
            self.member("cacheScope", scope);
        }
    }

    pub(super) fn end(self) {
        self.out.push(b'}');
    }
}
