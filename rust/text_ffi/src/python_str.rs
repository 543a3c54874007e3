//! Python's methods of str and list that chat templates call, where minijinja's own set lacks them or
//! answers differently (whitespace, character against byte offsets, empty strings).

use minijinja::value::{from_args, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

/// What Python's `str.strip()` takes away: Unicode whitespace and the four separators below 0x20.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// The callback for methods that minijinja does not know.
pub fn call_method(state: &State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let own = match value.kind() {
        ValueKind::String => string_method(value.as_str().unwrap_or_default(), name, args)?,
        ValueKind::Seq | ValueKind::Iterable if name == "index" => Some(list_index(value, args)?),
        _ => None,
    };
    match own {
        Some(result) => Ok(result),
        None => minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args),
    }
}

fn list_index(value: &Value, args: &[Value]) -> Result<Value, Error> {
    let (wanted,): (&Value,) = from_args(args)?;
    match value.try_iter()?.position(|item| item == *wanted) {
        Some(index) => Ok(Value::from(index)),
        None => Err(Error::new(ErrorKind::InvalidOperation, format!("{wanted} is not in list"))),
    }
}

/// `strip`, `lstrip` and `rstrip` with Python's default set of characters.
pub fn strip(text: &str, chars: Option<&str>, left: bool, right: bool) -> String {
    let drop = |c: char| chars.map_or_else(|| is_space(c), |set| set.contains(c));
    let mut rest = text;
    if left {
        rest = rest.trim_start_matches(drop);
    }
    if right {
        rest = rest.trim_end_matches(drop);
    }
    rest.to_string()
}

fn string_method(text: &str, name: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    let result = match name {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<&str>,) = from_args(args)?;
            Value::from(strip(text, chars, name != "rstrip", name != "lstrip"))
        }
        "isspace" => Value::from(all(is_space)),
        "isdigit" | "isnumeric" | "isdecimal" => Value::from(all(char::is_numeric)),
        "isalnum" => Value::from(all(char::is_alphanumeric)),
        "isalpha" => Value::from(all(char::is_alphabetic)),
        "isupper" | "islower" => {
            let upper = text.chars().any(char::is_uppercase);
            let lower = text.chars().any(char::is_lowercase);
            Value::from(if name == "isupper" { upper && !lower } else { lower && !upper })
        }
        "find" | "rfind" | "index" | "rindex" => {
            let (wanted,): (&str,) = from_args(args)?;
            let at = if name.starts_with('r') { text.rfind(wanted) } else { text.find(wanted) };
            match at {
                Some(byte) => Value::from(text[..byte].chars().count()),
                None if name.ends_with("find") => Value::from(-1),
                None => return Err(Error::new(ErrorKind::InvalidOperation, "substring not found")),
            }
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "partition" | "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            Value::from(partition(text, separator, name == "rpartition"))
        }
        "split" | "rsplit" => Value::from(split(text, args, name == "rsplit")?),
        "splitlines" => {
            let (keep_ends,): (Option<bool>,) = from_args(args)?;
            Value::from(split_lines(text, keep_ends.unwrap_or(false)))
        }
        "count" => {
            let (wanted,): (&str,) = from_args(args)?;
            Value::from(text.matches(wanted).count())
        }
        _ => return Ok(None),
    };
    Ok(Some(result))
}

fn partition(text: &str, separator: &str, from_right: bool) -> Vec<String> {
    let cut = if from_right { text.rsplit_once(separator) } else { text.split_once(separator) };
    match cut {
        Some((left, right)) => vec![left.into(), separator.into(), right.into()],
        None if from_right => vec![String::new(), String::new(), text.into()],
        None => vec![text.into(), String::new(), String::new()],
    }
}

fn split(text: &str, args: &[Value], from_right: bool) -> Result<Vec<String>, Error> {
    let (separator, limit): (Option<&str>, Option<i64>) = from_args(args)?;
    let limit = limit.filter(|n| *n >= 0).map_or(usize::MAX, |n| n as usize + 1);
    let mut parts: Vec<String> = match separator {
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        Some(s) if from_right => text.rsplitn(limit, s).map(str::to_string).collect(),
        Some(s) => text.splitn(limit, s).map(str::to_string).collect(),
        None => return Ok(split_words(text, limit, from_right)),
    };
    if from_right {
        parts.reverse();
    }
    Ok(parts)
}

/// Splits at runs of whitespace, none of which starts or ends the result.
fn split_words(text: &str, limit: usize, from_right: bool) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.trim_matches(is_space);
    while !rest.is_empty() {
        let cut = if from_right { rest.rfind(is_space) } else { rest.find(is_space) };
        match cut {
            Some(at) if parts.len() + 1 < limit => {
                let space = rest[at..].chars().next().map_or(1, char::len_utf8);
                let (left, right) = (&rest[..at], &rest[at + space..]);
                parts.push(if from_right { right.to_string() } else { left.to_string() });
                rest = if from_right {
                    left.trim_end_matches(is_space)
                } else {
                    right.trim_start_matches(is_space)
                };
            }
            _ => {
                parts.push(rest.to_string());
                break;
            }
        }
    }
    if from_right {
        parts.reverse();
    }
    parts
}

fn split_lines(text: &str, keep_ends: bool) -> Vec<String> {
    let is_break = |c: char| {
        matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_break) {
        let two = rest[at..].starts_with("\r\n");
        let end = at + if two { 2 } else { rest[at..].chars().next().map_or(1, char::len_utf8) };
        lines.push(rest[..if keep_ends { end } else { at }].to_string());
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        lines.push(rest.to_string());
    }
    lines
}
