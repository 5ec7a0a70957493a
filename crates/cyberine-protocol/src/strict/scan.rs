//! One pass over a JSON text with a stack of its own (RFC 8259).

use std::borrow::Cow;

use super::{StrictError, duplicate, plain_end};

/// A container that is open.
enum Frame {
    Array,
    /// Its keys are those of [`Scanner::keys`] from this index on.
    Object(usize),
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    frames: Vec<Frame>,
    keys: Vec<Cow<'a, str>>,
    nesting: usize,
}

/// Where the scanner stands between two tokens.
enum Next {
    Value,
    AfterValue,
}

/// Walks the whole text.
pub(super) fn scan(text: &str, nesting: usize) -> Result<(), StrictError> {
    let mut scanner =
        Scanner { text, at: 0, frames: Vec::with_capacity(8), keys: Vec::with_capacity(32), nesting };
    let mut next = Next::Value;
    loop {
        next = match next {
            Next::Value => scanner.value()?,
            Next::AfterValue if scanner.frames.is_empty() => return scanner.end(),
            Next::AfterValue => scanner.after_value()?,
        };
    }
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    const fn expected(&self, expected: &'static str) -> StrictError {
        StrictError::Syntax { at: self.at, expected }
    }

    fn end(&mut self) -> Result<(), StrictError> {
        self.skip_space().map_or(Ok(()), |_| Err(self.expected("the end of the line")))
    }

    fn value(&mut self) -> Result<Next, StrictError> {
        match self.skip_space() {
            Some(b'{') => {
                self.open(Frame::Object(self.keys.len()))?;
                if self.skip_space() == Some(b'}') { Ok(Next::AfterValue) } else { self.key() }
            }
            Some(b'[') => {
                self.open(Frame::Array)?;
                Ok(if self.skip_space() == Some(b']') { Next::AfterValue } else { Next::Value })
            }
            Some(b'"') => self.string().map(|_| Next::AfterValue),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => Err(self.expected("a value")),
        }
    }

    fn open(&mut self, frame: Frame) -> Result<(), StrictError> {
        if self.frames.len() >= self.nesting {
            return Err(StrictError::TooDeep { limit: self.nesting });
        }
        self.frames.push(frame);
        self.at += 1;
        Ok(())
    }

    /// A comma or the end of the innermost container, which is open.
    fn after_value(&mut self) -> Result<Next, StrictError> {
        match (self.skip_space(), self.frames.last()) {
            (Some(b','), Some(Frame::Object(_))) => {
                self.at += 1;
                self.skip_space();
                self.key()
            }
            (Some(b','), _) => {
                self.at += 1;
                Ok(Next::Value)
            }
            (Some(b'}'), Some(&Frame::Object(first))) => {
                refuse_duplicates(&mut self.keys[first..])?;
                self.keys.truncate(first);
                self.close();
                Ok(Next::AfterValue)
            }
            (Some(b']'), Some(Frame::Array)) => {
                self.close();
                Ok(Next::AfterValue)
            }
            (_, Some(Frame::Object(_))) => Err(self.expected("`,` or `}`")),
            _ => Err(self.expected("`,` or `]`")),
        }
    }

    fn close(&mut self) {
        self.frames.pop();
        self.at += 1;
    }

    fn key(&mut self) -> Result<Next, StrictError> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key in quotes"));
        }
        let start = self.at;
        let escaped = self.string()?;
        let token = &self.text[start..self.at];
        let key = if escaped {
            let text = serde_json::from_str(token).map_err(|_| self.expected("a key in quotes"))?;
            Cow::Owned(text)
        } else {
            Cow::Borrowed(&token[1..token.len() - 1])
        };
        self.keys.push(key);
        if self.skip_space() != Some(b':') {
            return Err(self.expected("`:`"));
        }
        self.at += 1;
        Ok(Next::Value)
    }

    /// A string, whose quote is next. Tells whether it has escapes.
    fn string(&mut self) -> Result<bool, StrictError> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at = plain_end(self.text.as_bytes(), self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.expected("control characters as escapes")),
                None => return Err(self.expected("the end of a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), StrictError> {
        let start = self.at;
        self.at += 2;
        match self.text.as_bytes().get(start + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') => {
                let lone = StrictError::LoneSurrogate { at: start };
                match self.hex()? {
                    0xd800..=0xdbff => {
                        if !self.text.as_bytes()[self.at..].starts_with(b"\\u") {
                            return Err(lone);
                        }
                        self.at += 2;
                        if matches!(self.hex()?, 0xdc00..=0xdfff) { Ok(()) } else { Err(lone) }
                    }
                    0xdc00..=0xdfff => Err(lone),
                    _ => Ok(()),
                }
            }
            _ => {
                self.at = start;
                Err(self.expected("an escape"))
            }
        }
    }

    fn hex(&mut self) -> Result<u32, StrictError> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            value = value * 16 + digit.ok_or_else(|| self.expected("four hexadecimal digits"))?;
            self.at += 1;
        }
        Ok(value)
    }

    fn word(&mut self, word: &'static str) -> Result<Next, StrictError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(Next::AfterValue)
    }

    fn number(&mut self) -> Result<Next, StrictError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if exponent {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let token = &self.text[start..self.at];
        // Without an exponent it takes 309 digits to leave the range of a double.
        if (exponent || token.len() > 300) && serde_json::from_str::<f64>(token).is_err() {
            return Err(StrictError::NumberOutOfRange { at: start });
        }
        Ok(Next::AfterValue)
    }

    fn digits(&mut self) -> Result<(), StrictError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.expected("a digit")) } else { Ok(()) }
    }
}

fn refuse_duplicates(keys: &mut [Cow<'_, str>]) -> Result<(), StrictError> {
    // Most objects are small, and keys of different lengths differ at once.
    if keys.len() <= 12 {
        for (index, key) in keys.iter().enumerate() {
            if keys[..index].contains(key) {
                return Err(duplicate(key));
            }
        }
        return Ok(());
    }
    keys.sort_unstable();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map_or(Ok(()), |pair| Err(duplicate(&pair[0])))
}
