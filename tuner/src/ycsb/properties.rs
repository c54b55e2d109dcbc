//! Properties as Java writes and reads them, and as YCSB's command line adds to them.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use crate::failure::{Failure, Result};

/// Properties by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Reads a file, in UTF-8, or in Latin-1 as Java did before.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let fault = |error| Failure::input(format!("can't read the properties file {}: {error}", path.display()));
        let bytes = std::fs::read(path).map_err(fault)?;
        let text =
            String::from_utf8(bytes).unwrap_or_else(|error| error.into_bytes().into_iter().map(char::from).collect());
        Self::parse(&text).map_err(|why| Failure::input(format!("{}: {why}", path.display())))
    }

    /// Reads the syntax of `java.util.Properties`: comments with `#` or `!`, lines that go on behind a backslash, `=`, `:` or
    /// blanks between name and value, escapes. Blanks at the end of a value are trimmed, which Java doesn't.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut properties = Self::default();
        for line in logical_lines(text) {
            let (name, value) = split(&line);
            properties.set(&unescape(name)?, &unescape(trim_end(value))?);
        }
        Ok(properties)
    }

    /// Sets a property; the last one counts.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// Takes over all of `other`'s.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// A property's value.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// A number, or the default where the property is absent.
    pub(crate) fn number<T: FromStr>(&self, name: &str, default: T) -> Result<T> {
        let Some(text) = self.get(name) else { return Ok(default) };
        text.trim().parse().map_err(|_| {
            let wanted = if std::any::type_name::<T>() == "f64" { "number" } else { "whole number of 0 or more" };
            Failure::input(format!("{name}={text} is no {wanted}"))
        })
    }

    /// As Java reads it: `true` in any case is true, all else is false.
    pub(crate) fn flag(&self, name: &str, default: bool) -> bool {
        self.get(name).map_or(default, |text| text.trim().eq_ignore_ascii_case("true"))
    }

    /// One of these words, the first where the property is absent.
    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)], default: T) -> Result<T> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let found = words.iter().find(|(word, _)| *word == text.trim());
        found.map(|(_, value)| *value).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            Failure::input(format!("{name}={text} is unknown; use {}", known.join(", ")))
        })
    }
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\u{c}')
}

/// Lines without comments, those that go on put together.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open: Option<String> = None;
    for natural in text.split(['\n', '\r']) {
        let line = natural.trim_start_matches(is_blank);
        if open.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let mut whole = open.take().unwrap_or_default();
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            whole.push_str(line.get(..line.len() - 1).unwrap_or_default());
            open = Some(whole);
        } else {
            whole.push_str(line);
            lines.push(whole);
        }
    }
    lines.extend(open);
    lines
}

/// Name and value, still escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    for (place, letter) in line.char_indices() {
        let ends = !escaped && (is_blank(letter) || matches!(letter, '=' | ':'));
        if ends {
            let (name, rest) = line.split_at(place);
            let rest = rest.trim_start_matches(is_blank);
            let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
            return (name, rest.trim_start_matches(is_blank));
        }
        escaped = letter == '\\' && !escaped;
    }
    (line, "")
}

/// Without the blanks at the end, but for one that is escaped.
fn trim_end(value: &str) -> &str {
    let trimmed = value.trim_end_matches(is_blank);
    let backslashes = trimmed.len() - trimmed.trim_end_matches('\\').len();
    let kept = if backslashes % 2 == 1 { trimmed.len() + 1 } else { trimmed.len() };
    value.get(..kept).unwrap_or(value)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut units = Vec::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let mut unit = |letter: char| units.extend(letter.encode_utf16(&mut [0; 2]).iter());
        if letter != '\\' {
            unit(letter);
            continue;
        }
        match letters.next() {
            Some('t') => unit('\t'),
            Some('n') => unit('\n'),
            Some('r') => unit('\r'),
            Some('f') => unit('\u{c}'),
            Some('u') => {
                let digits: String = letters.by_ref().take(4).collect();
                let code = u16::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                units.push(
                    code.ok_or_else(|| format!("malformed escape \\u{digits}; it takes four hexadecimal digits"))?,
                );
            }
            Some(other) => unit(other),
            None => {}
        }
    }
    Ok(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        Properties::parse(text).unwrap().0.into_iter().collect()
    }

    fn one(text: &str) -> (String, String) {
        read(text).remove(0)
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn separators_are_equals_signs_colons_and_blanks() {
        for text in ["a=1", "a:1", "a 1", "a = 1", "  a\t:\t1", "a   1", "a=1  ", "a=1\t"] {
            assert_eq!(one(text), pair("a", "1"), "{text:?}");
        }
        assert_eq!(one("a = = 1"), pair("a", "= 1"));
        assert_eq!((one("a"), one("a=")), (pair("a", ""), pair("a", "")));
    }

    #[test]
    fn lines_go_on_behind_a_backslash_and_comments_do_not() {
        assert_eq!(read("a=1,\\\n   2,\\\r   3\nb=4\\\\\nc=5"), [pair("a", "1,2,3"), pair("b", "4\\"), pair("c", "5")]);
        assert_eq!(read("# a=1 \\\nb=2\n ! c=3\n\n"), [pair("b", "2")]);
        assert_eq!(read("a=1\\\n# no comment"), [pair("a", "1# no comment")]);
    }

    #[test]
    fn escapes_stand_for_what_they_name() {
        assert_eq!(one(r"a\ b\:c\=d=x\ty\n\u00e9\ud834\udd1e\q"), pair("a b:c=d", "x\ty\né𝄞q"));
        assert_eq!(one("a=1\\ "), pair("a", "1 "));
        assert!(Properties::parse(r"a=\u12").unwrap_err().contains("four"));
    }

    #[test]
    fn numbers_may_be_large_and_what_is_none_is_told() {
        let properties = Properties::parse("recordcount=9000000000 \nx=many").unwrap();
        assert_eq!(properties.number("recordcount", 0_u64).unwrap(), 9_000_000_000);
        assert_eq!(properties.number("absent", 7_u64).unwrap(), 7);
        assert!(properties.number("x", 0_u64).unwrap_err().to_string().contains("x=many"));
    }
}
