//! Python's `json.dumps` for template values, which is what Hugging Face's `tojson` is.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// Deeper nesting than any real conversation has.
const MAX_DEPTH: usize = 200;

struct Style {
    ensure_ascii: bool,
    sort_keys: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
}

/// The filter `tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
pub fn tojson(value: Value, kwargs: Kwargs) -> Result<Value, Error> {
    let indent = match kwargs.get::<Option<Value>>("indent")? {
        None => None,
        Some(v) if v.is_none() || v.is_undefined() => None,
        Some(v) => Some(match v.as_str() {
            Some(text) => text.to_string(),
            None => {
                let n = i64::try_from(v)?;
                if n > 64 {
                    return Err(Error::new(ErrorKind::InvalidOperation, "indent is over 64"));
                }
                " ".repeat(n.max(0) as usize)
            }
        }),
    };
    let separators = kwargs.get::<Option<Value>>("separators")?.filter(|v| !v.is_none());
    let (item_separator, key_separator) = match separators {
        Some(pair) => (text_at(&pair, 0)?, text_at(&pair, 1)?),
        // As json.dumps: with an indent the line break stands for the space.
        None if indent.is_some() => (",".to_string(), ": ".to_string()),
        None => (", ".to_string(), ": ".to_string()),
    };
    let style = Style {
        ensure_ascii: kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
        sort_keys: kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        indent,
        item_separator,
        key_separator,
    };
    kwargs.assert_all_used()?;
    let mut out = String::new();
    write_value(&mut out, &value, &style, 0)?;
    Ok(Value::from(out))
}

fn text_at(pair: &Value, index: usize) -> Result<String, Error> {
    let item = pair.get_item_by_index(index)?;
    item.as_str().map(str::to_string).ok_or_else(|| {
        Error::new(ErrorKind::InvalidOperation, "separators must be two strings")
    })
}

fn write_value(out: &mut String, value: &Value, style: &Style, depth: usize) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, "tojson: nested too deeply"));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number_text(value)),
        ValueKind::String => write_string(out, value.as_str().unwrap_or_default(), style),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.map(|v| (None, v)).collect();
            write_items(out, '[', ']', items, style, depth)?;
        }
        ValueKind::Map => {
            let mut items = Vec::new();
            for key in value.try_iter()? {
                let item = value.get_item(&key)?;
                items.push((Some(key_text(&key)?), item));
            }
            if style.sort_keys {
                items.sort_by(|a, b| a.0.cmp(&b.0));
            }
            write_items(out, '{', '}', items, style, depth)?;
        }
        kind => {
            return Err(Error::new(
                ErrorKind::BadSerialization,
                format!("tojson: a value of kind {kind} is not JSON serializable"),
            ))
        }
    }
    Ok(())
}

fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_string()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
        ValueKind::Number => Ok(number_text(key)),
        kind => Err(Error::new(ErrorKind::BadSerialization, format!("tojson: a {kind} as key"))),
    }
}

fn write_items(
    out: &mut String,
    open: char,
    close: char,
    items: Vec<(Option<String>, Value)>,
    style: &Style,
    depth: usize,
) -> Result<(), Error> {
    out.push(open);
    let n = items.len();
    for (index, (key, value)) in items.into_iter().enumerate() {
        if index > 0 {
            out.push_str(&style.item_separator);
        }
        new_line(out, style, depth + 1);
        if let Some(key) = key {
            write_string(out, &key, style);
            out.push_str(&style.key_separator);
        }
        write_value(out, &value, style, depth + 1)?;
    }
    if n > 0 {
        new_line(out, style, depth);
    }
    out.push(close);
    Ok(())
}

fn new_line(out: &mut String, style: &Style, depth: usize) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn write_string(out: &mut String, text: &str, style: &Style) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            // Noncharacters are the marks around user text (see chat_template.cc) and go through.
            c if style.ensure_ascii && c > '~' && !('\u{FDD0}'..='\u{FDEF}').contains(&c) => {
                let mut units = [0u16; 2];
                for unit in c.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A number as Python's `repr` writes it.
pub fn number_text(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float_text)
}

/// Python's `repr(float)`: shortest digits, an exponent below 1e-4 and from 1e16 on.
pub fn float_text(x: f64) -> String {
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let exponent_form = format!("{x:e}");
    let (digits, exponent) = exponent_form.split_once('e').unwrap_or((&exponent_form, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{x}");
    if plain.contains('.') {
        plain
    } else {
        plain + ".0"
    }
}
