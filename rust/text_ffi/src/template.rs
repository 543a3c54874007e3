//! Chat templates as handles: compile once, render many times, each within its limits.

use crate::abi::{report, Bytes, Failure, Text, CORRUPT, INVALID, LIMIT};
use crate::budget::{run_limited, Limits, Overrun};
use crate::jinja::{environment, NAME, RAISED};
use minijinja::{Environment, Error, ErrorKind, Value};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// Larger than any chat template in use by two orders of magnitude.
const MAX_SOURCE_BYTES: usize = 1 << 20;

pub struct Template {
    env: Arc<Environment<'static>>,
    /// Set once a rendering had to be given up; another one would lose another thread.
    disabled: AtomicBool,
}

/// Limits of one rendering; the header has the same layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RenderLimits {
    fuel: u64,
    max_output_bytes: usize,
    max_seconds: f64,
}

impl RenderLimits {
    /// Memory on the way to the output: the values of the context and what templates make of them.
    fn budget(&self, context_bytes: usize) -> Limits {
        let bytes = 4 * self.max_output_bytes as u64 + 64 * context_bytes as u64;
        Limits { bytes, time: Duration::from_secs_f64(self.max_seconds.clamp(0.001, 3600.0)) }
    }
}

/// Takes output up to a limit.
struct CappedOutput {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for CappedOutput {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + data.len() > self.limit {
            return Err(std::io::Error::other("output limit"));
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// One line about an error of the template engine.
fn describe(error: &Error) -> Failure {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(e) = cause {
        if let Some(detail) = e.downcast_ref::<Error>().and_then(|e| e.detail()) {
            if let Some(message) = detail.strip_prefix(RAISED) {
                return Failure::new(INVALID, format!("refuses the conversation: {message}"));
            }
        }
        cause = e.source();
    }
    match error.kind() {
        ErrorKind::OutOfFuel => Failure::new(LIMIT, "runs too many steps"),
        ErrorKind::WriteFailure => Failure::new(LIMIT, "writes too much"),
        _ => Failure::new(INVALID, format!("fails: {error}")),
    }
}

fn compile(source: String, limits: RenderLimits) -> Result<Template, Failure> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err(Failure::new(LIMIT, format!("is longer than {MAX_SOURCE_BYTES} bytes")));
    }
    let budget = limits.budget(source.len());
    let made = run_limited(budget, move || {
        environment(&source).map_err(|e| Failure::new(CORRUPT, format!("does not parse: {e}")))
    });
    match made {
        Ok(env) => Ok(Template { env: Arc::new(env), disabled: AtomicBool::new(false) }),
        Err(Overrun::Failed(failure) | Overrun::GivenUp(failure)) => Err(failure),
    }
}

fn render(template: &Template, context: String, limits: RenderLimits) -> Result<Vec<u8>, Failure> {
    if template.disabled.load(Ordering::Acquire) {
        return Err(Failure::new(LIMIT, "ran over its limits before and is not run again"));
    }
    let env = template.env.clone();
    let budget = limits.budget(context.len());
    let work = move || {
        let json: serde_json::Value = serde_json::from_str(&context)
            .map_err(|e| Failure::new(INVALID, format!("bad context: {e}")))?;
        let values = Value::from_serialize(&json);
        drop(json);
        let mut env = (*env).clone();
        env.set_fuel(Some(limits.fuel));
        let mut output = CappedOutput { bytes: Vec::new(), limit: limits.max_output_bytes };
        env.get_template(NAME)
            .and_then(|t| t.render_captured_to(values, &mut output).map(drop))
            .map_err(|e| describe(&e))?;
        Ok(output.bytes)
    };
    run_limited(budget, work).map_err(|overrun| match overrun {
        Overrun::Failed(failure) => failure,
        Overrun::GivenUp(failure) => {
            template.disabled.store(true, Ordering::Release);
            failure
        }
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tt_template_new(
    source: Bytes,
    limits: RenderLimits,
    out: *mut *mut Template,
    error: *mut Text,
) -> i32 {
    report(error, || {
        let made = compile(source.as_str("the template")?.to_string(), limits)?;
        *out = Box::into_raw(Box::new(made));
        Ok(())
    })
}

/// # Safety
/// See the header.
#[no_mangle]
pub unsafe extern "C" fn tt_template_render(
    template: *const Template,
    context: Bytes,
    limits: RenderLimits,
    out: *mut Text,
    error: *mut Text,
) -> i32 {
    report(error, || {
        (*out).set(render(&*template, context.as_str("the context")?.to_string(), limits)?);
        Ok(())
    })
}

/// # Safety
/// `template` comes from `tt_template_new` and is not used again.
#[no_mangle]
pub unsafe extern "C" fn tt_template_free(template: *mut Template) {
    if !template.is_null() {
        drop(Box::from_raw(template));
    }
}
