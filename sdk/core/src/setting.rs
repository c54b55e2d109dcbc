//! Settings in URIs: what their texts mean, with faults that name the setting.

use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use crate::error::{Error, Result};

/// One of some words.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) that lists them.
pub fn choice<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> Result<T> {
    choices.iter().find(|(word, _)| *word == value).map(|(_, choice)| *choice).ok_or_else(|| {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        Error::invalid(format!("{name}={value}: use one of {}", words.join(", ")))
    })
}

/// A number.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) that says what is expected.
pub fn number<T: FromStr>(name: &str, value: &str, expected: &str) -> Result<T> {
    value.parse().map_err(|_| Error::invalid(format!("{name}={value}: give {expected}")))
}

/// A duration as people write it, such as `500ms`.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument).
pub fn duration(name: &str, value: &str) -> Result<Duration> {
    humantime::parse_duration(value)
        .map_err(|_| Error::invalid(format!("{name}={value}: give a duration such as 5s or 500ms")))
}

/// Undoes percent-encoding.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if that isn't UTF-8.
pub fn decode(name: &str, text: &str) -> Result<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| Error::invalid(format!("{name} in the URI is not UTF-8 when decoded")))
}
