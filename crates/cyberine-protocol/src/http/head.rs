use super::{LAST_EVENT_ID, METHOD, NAME, PARAM_PREFIX, PROTOCOL_VERSION, SESSION_ID};

/// The most `Mcp-Param-*` headers that are looked at.
const PARAM_LIMIT: usize = 128;

/// What a request says under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Field<'a> {
    /// Nothing.
    #[default]
    Absent,
    /// One value, without the white space around it.
    One(&'a str),
    /// More than one, which means nothing where one is meant.
    Many,
}

impl<'a> Field<'a> {
    fn add(&mut self, value: &'a str) {
        *self = match self {
            Self::Absent => Self::One(value),
            _ => Self::Many,
        };
    }

    /// The value, if there is one and no other.
    #[must_use]
    pub const fn one(self) -> Option<&'a str> {
        match self {
            Self::One(value) => Some(value),
            Self::Absent | Self::Many => None,
        }
    }
}

/// The headers of a request that count here.
#[derive(Debug, Clone, Default)]
pub struct HttpHead<'a> {
    pub(super) content_type: Field<'a>,
    pub(super) accept: Accept,
    pub(super) version: Field<'a>,
    pub(super) method: Field<'a>,
    pub(super) name: Field<'a>,
    /// What follows the prefix, and the value.
    pub(super) params: Vec<(&'a str, &'a str)>,
    session_id: Field<'a>,
    last_event_id: Field<'a>,
}

/// What kinds of answers a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Accept {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accept {
    /// Adds one `Accept` header (RFC 9110, section 12.5.1). What is taken with `q=0` is not.
    fn add(&mut self, value: &str) {
        for range in value.split(',') {
            let mut parts = range.split(';').map(trim);
            let kind = parts.next().unwrap_or_default();
            let refused = parts.any(|part| {
                let quality = part.split_once('=').filter(|(name, _)| trim(name).eq_ignore_ascii_case("q"));
                quality.is_some_and(|(_, weight)| trim(weight).parse() == Ok(0.0_f32))
            });
            if refused {
                continue;
            }
            let is = |name: &str| kind.eq_ignore_ascii_case(name);
            self.json |= is("application/json") || is("application/*") || is("*/*");
            self.events |= is("text/event-stream") || is("text/*") || is("*/*");
        }
    }
}

/// White space that may stand around a value (RFC 9110, section 5.6.3).
pub(super) fn trim(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}

impl<'a> HttpHead<'a> {
    /// Picks them from all headers, in the order they were sent. Names may be written in any case. A
    /// value that is not ASCII has to be handed over as something that is not either, so that it is
    /// refused where it counts.
    #[must_use]
    pub fn read(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut head = Self::default();
        for (name, value) in headers {
            let value = trim(value);
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            if is("accept") {
                head.accept.add(value);
                continue;
            }
            let field = if is("content-type") {
                &mut head.content_type
            } else if is(PROTOCOL_VERSION) {
                &mut head.version
            } else if is(METHOD) {
                &mut head.method
            } else if is(NAME) {
                &mut head.name
            } else if is(SESSION_ID) {
                &mut head.session_id
            } else if is(LAST_EVENT_ID) {
                &mut head.last_event_id
            } else {
                let prefix = name.get(..PARAM_PREFIX.len());
                let is_param = prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(PARAM_PREFIX));
                if is_param && head.params.len() < PARAM_LIMIT {
                    head.params.push((&name[PARAM_PREFIX.len()..], value));
                }
                continue;
            };
            field.add(value);
        }
        head
    }

    /// `Mcp-Session-Id`.
    #[must_use]
    pub const fn session_id(&self) -> Field<'a> {
        self.session_id
    }

    /// `Last-Event-ID`.
    #[must_use]
    pub const fn last_event_id(&self) -> Field<'a> {
        self.last_event_id
    }

    /// `MCP-Protocol-Version`.
    #[must_use]
    pub const fn version(&self) -> Field<'a> {
        self.version
    }

    /// Whether an event stream may be sent in answer to this.
    #[must_use]
    pub const fn takes_events(&self) -> bool {
        self.accept.events
    }

    pub(super) fn is_json(&self) -> bool {
        let kind = self.content_type.one().unwrap_or_default();
        let mut parts = kind.split(';').map(trim);
        parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
            && parts.all(|part| match part.split_once('=') {
                Some((name, charset)) if trim(name).eq_ignore_ascii_case("charset") => {
                    trim(charset).trim_matches('"').eq_ignore_ascii_case("utf-8")
                }
                _ => true,
            })
    }

    /// The header that mirrors an argument.
    pub(super) fn param(&self, name: &str) -> Field<'a> {
        let mut field = Field::Absent;
        for (_, value) in self.params.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)) {
            field.add(value);
        }
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_values_without_the_space_around_them() {
        let head = HttpHead::read([
            ("MCP-Protocol-Version", " 2026-07-28\t"),
            ("mcp-session-ID", "a"),
            ("Mcp-Session-Id", "a"),
            ("MCP-PARAM-Region", "us"),
            ("mcp-param-region", "eu"),
            ("Mcp-Param-", "x"),
            ("mcp-par\u{e9}m-x", "x"),
            ("Last-Event-Id", ""),
        ]);
        assert_eq!(head.version(), Field::One("2026-07-28"));
        assert_eq!(head.session_id(), Field::Many, "the same value twice is twice");
        assert_eq!(head.param("REGION"), Field::Many);
        assert_eq!(head.param("x"), Field::Absent);
        assert_eq!(head.last_event_id(), Field::One(""));
        assert_eq!(head.name.one(), None);
    }

    #[test]
    fn what_is_accepted_is_told_as_the_rfc_has_it() {
        let of = |values: &[&str]| {
            let head = HttpHead::read(values.iter().map(|value| ("Accept", *value)));
            (head.accept.json, head.accept.events)
        };
        for (values, expected) in [
            (&["application/json, text/event-stream"][..], (true, true)),
            (&["application/json", "text/event-stream"], (true, true)),
            (&["*/*"], (true, true)),
            (&["Application/JSON;q=0.5 ,TEXT/*; q=0.1"], (true, true)),
            (&["application/json"], (true, false)),
            (&["text/event-stream"], (false, true)),
            (&["application/json, text/event-stream; Q=0.00"], (true, false)),
            (&["application/jsonp, text/html"], (false, false)),
            (&[], (false, false)),
            (&[""], (false, false)),
        ] {
            assert_eq!(of(values), expected, "{values:?}");
        }
    }

    #[test]
    fn only_json_in_utf_8_is_json() {
        let of = |value: &str| HttpHead::read([("content-type", value)]).is_json();
        for good in
            ["application/json", "APPLICATION/JSON ; charset=UTF-8", "application/json;charset=\"utf-8\""]
        {
            assert!(of(good), "{good}");
        }
        for bad in [
            "",
            "text/json",
            "text/plain",
            "application/json-rpc",
            "application/json; charset=latin1",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=application/json",
            "application/json, text/plain",
        ] {
            assert!(!of(bad), "{bad}");
        }
        assert!(!HttpHead::read([("content-type", "application/json"); 2]).is_json());
    }
}
