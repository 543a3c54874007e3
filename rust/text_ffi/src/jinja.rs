//! The Jinja environment of Hugging Face's chat templates: trim_blocks, lstrip_blocks, loop controls,
//! `{% generation %}`, `raise_exception`, `strftime_now`, `tojson`, Python's methods and printing.

use crate::json_dumps::{number_text, tojson};
use crate::python_str::{call_method, strip};
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value};
use std::fmt::Write;

/// Starts the detail of an error that the template raised itself.
pub const RAISED: &str = "\u{1}raised:";

pub const NAME: &str = "chat_template";

/// An environment that holds the template `source`.
pub fn environment(source: &str) -> Result<Environment<'static>, Error> {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_debug(false);
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_unknown_method_callback(call_method);
    env.set_formatter(print);
    env.set_recursion_limit(200);
    env.add_function("raise_exception", raise_exception);
    env.add_function("strftime_now", strftime_now);
    env.add_filter("tojson", tojson);
    env.add_filter("string", |value: Value| python_text(&value));
    env.add_filter("trim", trim);
    env.add_filter("replace", replace);
    env.add_test("sequence", |value: Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String)
    });
    env.add_test("iterable", |value: Value| {
        matches!(
            value.kind(),
            ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Iterable | ValueKind::Undefined
        )
    });
    env.add_template_owned(NAME, replace_generation_tags(source))?;
    Ok(env)
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
}

/// The local time, as transformers has it.
fn strftime_now(format: &str) -> Result<String, Error> {
    let mut text = String::new();
    write!(text, "{}", chrono::Local::now().format(format))
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, "strftime_now: bad format"))?;
    Ok(text)
}

fn trim(value: Value, chars: Option<String>) -> String {
    strip(&python_text(&value), chars.as_deref(), true, true)
}

fn replace(value: Value, old: String, new: String, count: Option<i64>) -> String {
    let text = python_text(&value);
    match count {
        Some(n) if n >= 0 => text.replacen(&old, &new, n as usize),
        _ => text.replace(&old, &new),
    }
}

fn print(out: &mut Output, _state: &State, value: &Value) -> Result<(), Error> {
    let written = match value.as_str() {
        Some(text) => out.write_str(text),
        None => out.write_str(&python_text(value)),
    };
    written.map_err(|_| Error::new(ErrorKind::WriteFailure, "output limit"))
}

/// Python's `str(value)`.
fn python_text(value: &Value) -> String {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let mut out = String::new();
            write_repr(&mut out, value, 0);
            out
        }
        ValueKind::Number => number_text(value),
        _ => value.to_string(),
    }
}

/// Python's `repr(value)`; what a template prints that prints a list or a dict as it is.
fn write_repr(out: &mut String, value: &Value, depth: usize) {
    if depth > 100 {
        out.push_str("...");
        return;
    }
    match value.kind() {
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
            out.push(quote);
            for c in text.chars() {
                match c {
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    '\\' => out.push_str("\\\\"),
                    c if c == quote => {
                        out.push('\\');
                        out.push(c);
                    }
                    c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                        let _ = write!(out, "\\x{:02x}", c as u32);
                    }
                    c => out.push(c),
                }
            }
            out.push(quote);
        }
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (index, item) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_repr(out, &item, depth + 1);
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write_repr(out, &key, depth + 1);
                out.push_str(": ");
                write_repr(out, &value.get_item(&key).unwrap_or_default(), depth + 1);
            }
            out.push('}');
        }
        ValueKind::Number => out.push_str(&number_text(value)),
        _ => out.push_str(&value.to_string()),
    }
}

/// Hugging Face marks the assistant's own tokens with `{% generation %}` for training. At inference
/// the body passes through; `with` has the same scope and keeps the tag's whitespace marks.
fn replace_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find('{') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = match rest.as_bytes().get(1) {
            Some(b'%') => rest.find("%}").map(|e| e + 2),
            Some(b'#') => rest.find("#}").map(|e| e + 2),
            _ => None,
        };
        let Some(end) = end else {
            out.push('{');
            rest = &rest[1..];
            continue;
        };
        let tag = &rest[..end];
        rest = &rest[end..];
        let name = tag.trim_matches(['{', '%', '}', '-', '+']).trim();
        out.push_str(&match name {
            "generation" => tag.replacen("generation", "with", 1),
            "endgeneration" => tag.replacen("endgeneration", "endwith", 1),
            _ => tag.to_string(),
        });
    }
    out.push_str(rest);
    out
}
