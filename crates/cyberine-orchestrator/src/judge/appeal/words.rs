//! A text as words, whatever they are dressed in, each with the place where it stands.

/// What stands before a word, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Break {
    /// Nothing that separates.
    None,
    /// A comma, a bracket, a quote, the end of a line.
    Soft,
    Colon,
    /// The end of a sentence, a point of a list, or what stands in code.
    Hard,
    /// An empty line, or the beginning of the text.
    Paragraph,
}

/// A word in lower case, of plain Latin letters where it looks like that.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) text: String,
    /// Where it stands in the text, in bytes.
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) before: Break,
    /// Whether `[` or `<` stands before it.
    pub(super) is_opened: bool,
}

/// The words of `text`, in order.
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let (mut before, mut is_opened, mut in_word, mut is_line_start) = (Break::Paragraph, false, false, true);
    let (mut previous, mut was_tag) = ('\n', false);
    let mut chars = text.char_indices().peekable();
    while let Some((at, seen)) = chars.next() {
        let c = fold(seen);
        if is_unseen(c) {
            continue;
        }
        // Text in marks that nobody sees is no part of the words beside it.
        if is_tag(seen) != std::mem::replace(&mut was_tag, is_tag(seen)) {
            (before, in_word) = (before.max(Break::Hard), false);
        }
        let end = at + seen.len_utf8();
        if c.is_alphanumeric() {
            match words.last_mut().filter(|_| in_word) {
                Some(word) => word.end = end,
                None => words.push(Word { text: String::new(), start: at, end, before, is_opened }),
            }
            if let Some(word) = words.last_mut() {
                word.text.extend(c.to_lowercase().map(fold));
            }
            (before, is_opened, in_word, is_line_start) = (Break::None, false, true, false);
        } else if !matches!(c, '*' | '_' | '`' | '\'' | '’') || is_line_start {
            let next = chars.peek().map_or('\n', |(_, next)| *next);
            before = before.max(strength(c, previous, next, is_line_start));
            is_opened |= matches!(c, '[' | '<');
            is_line_start = c == '\n' || (is_line_start && c.is_whitespace());
            in_word = false;
        }
        previous = c;
    }
    words
}

fn strength(c: char, previous: char, next: char, is_line_start: bool) -> Break {
    match c {
        '\n' if is_line_start => Break::Paragraph,
        '-' | '*' | '+' | '•' if is_line_start => Break::Hard,
        '_' | '`' | '\'' | '’' => Break::None,
        '(' if previous.is_alphanumeric() => Break::Hard,
        ',' | '，' | '、' | '"' | '“' | '”' | '„' | '«' | '»' | '(' | ')' | '—' | '–' | '\n' => {
            Break::Soft
        }
        ':' => Break::Colon,
        '.' if previous.is_alphanumeric() && next.is_alphanumeric() => Break::None,
        '/' | '-' if c == next || c == previous || next == '*' || previous == '*' => Break::Hard,
        '.' | '!' | '?' | ';' | '。' | '[' | ']' | '{' | '}' | '<' | '>' | '=' | '|' | '\\' | '#' | '$'
        | '&' | '%' | '@' | '^' | '~' => Break::Hard,
        _ => Break::None,
    }
}

const fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0020}'..='\u{e007e}')
}

/// Not seen by a reader, or a mark on the letter before.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{20d0}'..='\u{20ff}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// The plain Latin character that this one looks like, where there is one.
fn fold(c: char) -> char {
    let ascii = |offset: u32, from: char| {
        char::from_u32(u32::from(c).wrapping_sub(offset).wrapping_add(u32::from(from))).unwrap_or(c)
    };
    match c {
        '\u{ff01}'..='\u{ff5e}' => ascii(0xff01, '!'),
        '\u{24b6}'..='\u{24cf}' => ascii(0x24b6, 'A'),
        '\u{24d0}'..='\u{24e9}' => ascii(0x24d0, 'a'),
        '\u{e0020}'..='\u{e007e}' => ascii(0xe0020, ' '),
        '\u{1d400}'..='\u{1d6a3}' => {
            let place = (u32::from(c) - 0x1d400) % 52 % 26;
            char::from_u32(u32::from('a') + place).unwrap_or(c)
        }
        'à'..='å' | 'а' | 'А' | 'α' | 'Α' => 'a',
        'ç' | 'с' | 'С' => 'c',
        'ԁ' => 'd',
        'è'..='ë' | 'е' | 'Е' | 'ё' | 'Ε' => 'e',
        'ɡ' => 'g',
        'һ' | 'Н' | 'Η' => 'h',
        'ì'..='ï' | 'і' | 'І' | 'ı' | 'ι' | 'Ι' => 'i',
        'ј' | 'Ј' => 'j',
        'К' | 'к' | 'Κ' | 'κ' => 'k',
        'ӏ' | 'Ӏ' => 'l',
        'М' | 'м' | 'Μ' => 'm',
        'ñ' | 'Ν' | 'ո' => 'n',
        'ò'..='ö' | 'о' | 'О' | 'ο' | 'Ο' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' | 'Ѕ' => 's',
        'Т' | 'т' | 'Τ' | 'τ' => 't',
        'ù'..='ü' | 'υ' | 'ս' => 'u',
        'ν' => 'v',
        'ԝ' => 'w',
        'х' | 'Х' | 'χ' | 'Χ' => 'x',
        'у' | 'У' | 'Υ' => 'y',
        _ => c,
    }
}
