//! minijinja, set up strictly: an undefined name is an error, work and output have a limit.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression, UndefinedBehavior};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Instructions one template may use.
const FUEL: u64 = 1_000_000;
/// Bytes one text may become.
pub(crate) const MAX_TEXT: usize = 1024 * 1024;
/// Nesting of a value that a template made.
const MAX_DEPTH: usize = 64;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    // Without it errors know neither their place nor the name that is undefined.
    environment.set_debug(true);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    // `{#` is how a shell asks for a length, `${#NAME}`, so comments are written `{{# … #}}`. And a script keeps
    // its last line break, whether there is a template in it or not.
    let syntax = SyntaxConfig::builder()
        .comment_delimiters("{{#", "#}}")
        .keep_trailing_newline(true)
        .build()
        .unwrap_or_default();
    environment.set_syntax(syntax);
    environment.remove_global("namespace");
    environment.remove_global("debug");
    // Values inside text look like JSON: `true`, `null`, `["a"]`, the way every other tool reads them.
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Undefined | ValueKind::String => minijinja::escape_formatter(out, state, value),
        _ => {
            let json = value_to_json(value, usize::MAX)
                .map_err(|error| Error::new(ErrorKind::BadSerialization, error))?;
            out.write_str(&json.to_string()).map_err(Error::from)
        }
    });
    environment
});

pub(crate) fn environment() -> &'static Environment<'static> {
    &ENVIRONMENT
}

/// Whether a text holds anything for minijinja to do.
pub(crate) fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// How large a value may become.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub text: usize,
    /// Bytes of JSON, roughly.
    pub value: usize,
}

/// Expressions that were compiled before. Items of a loop are rendered from the same few.
#[derive(Default)]
pub(crate) struct Compiled(Mutex<HashMap<String, Arc<Expression<'static, 'static>>>>);

impl Compiled {
    fn expression(&self, text: &str) -> Result<Arc<Expression<'static, 'static>>, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(text) {
            return Ok(compiled.clone());
        }
        let compiled = ENVIRONMENT.compile_expression_owned(text.to_owned());
        let compiled = Arc::new(compiled.map_err(|error| sentence(&error))?);
        known.insert(text.to_owned(), compiled.clone());
        Ok(compiled)
    }
}

/// Renders one text. Exactly one `{{ expression }}` keeps its type; anything else becomes text.
pub(crate) fn render(
    text: &str,
    context: &Value,
    limits: Limits,
    compiled: &Compiled,
) -> Result<Json, String> {
    if !is_template(text) {
        return Ok(Json::String(text.to_owned()));
    }
    if let Some((expression, _)) = super::single_expression(text) {
        let compiled = compiled.expression(expression)?;
        let value = compiled.eval(context.clone()).map_err(|error| sentence(&error))?;
        if value.is_undefined() {
            return Err(format!("`{}` is undefined", crate::problem::quoted(expression.trim())));
        }
        return value_to_json(&value, limits.value);
    }
    let template = ENVIRONMENT.template_from_str(text).map_err(|error| sentence(&error))?;
    let mut output = Bounded { bytes: Vec::new(), limit: limits.text };
    match template.render_captured_to(context.clone(), &mut output) {
        Ok(_) => {}
        Err(_) if output.bytes.len() > output.limit => {
            return Err(format!("the text is longer than {} bytes", limits.text));
        }
        Err(error) => return Err(sentence(&error)),
    }
    String::from_utf8(output.bytes).map(Json::String).map_err(|_| "the text is not UTF-8".to_owned())
}

/// minijinja's error without the name of the template, which means nothing to a reader.
pub(crate) fn sentence(error: &Error) -> String {
    let text = match (error.kind(), error.detail()) {
        (ErrorKind::OutOfFuel, _) => "it takes too long to evaluate".to_owned(),
        (ErrorKind::UndefinedError, Some(detail)) => detail.to_owned(),
        (ErrorKind::UndefinedError, None) => match undefined_source(error) {
            Some(source) => format!("`{source}` is undefined"),
            None => "something in it is undefined".to_owned(),
        },
        (ErrorKind::SyntaxError, Some(detail)) => detail.to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    };
    text.chars().take(300).collect()
}

fn undefined_source(error: &Error) -> Option<String> {
    let source = error.template_source()?.get(error.range()?)?;
    Some(crate::problem::quoted(source.trim()))
}

/// JSON as a value of the template language.
pub(crate) fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(value_of).collect(),
        Json::Object(fields) => {
            Value::from_pairs(fields.iter().map(|(name, value)| (name.as_str(), value_of(value))))
        }
    }
}

/// The value as JSON; undefined parts, things that are not data, and too much of it are errors.
pub(crate) fn value_to_json(value: &Value, limit: usize) -> Result<Json, String> {
    let mut left = limit;
    convert(value, &mut left, MAX_DEPTH).map_err(|error| match error {
        Unfit::TooLarge => format!("the value is larger than {limit} bytes"),
        Unfit::Because(sentence) => sentence,
    })
}

enum Unfit {
    TooLarge,
    Because(String),
}

fn convert(value: &Value, left: &mut usize, depth: usize) -> Result<Json, Unfit> {
    let because = |sentence: &str| Unfit::Because(sentence.to_owned());
    if depth == 0 {
        return Err(because("the value is nested too deep"));
    }
    let cost = 2 + value.as_str().map_or(4, str::len);
    *left = left.checked_sub(cost).ok_or(Unfit::TooLarge)?;
    match value.kind() {
        ValueKind::Undefined => Err(because("a part of the value is undefined")),
        ValueKind::None => Ok(Json::Null),
        ValueKind::Bool => Ok(Json::Bool(value.is_true())),
        ValueKind::String => Ok(Json::String(value.as_str().unwrap_or_default().to_owned())),
        ValueKind::Number => {
            serde_json::to_value(value).map_err(|_| because("the number does not fit into JSON"))
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().map_err(|error| Unfit::Because(sentence(&error)))?;
            items.map(|item| convert(&item, left, depth - 1)).collect::<Result<_, _>>().map(Json::Array)
        }
        ValueKind::Map => {
            let keys = value.try_iter().map_err(|error| Unfit::Because(sentence(&error)))?;
            let mut object = serde_json::Map::new();
            for key in keys {
                let item = value.get_item(&key).map_err(|error| Unfit::Because(sentence(&error)))?;
                let name = key.to_string();
                *left = left.checked_sub(name.len() + 2).ok_or(Unfit::TooLarge)?;
                object.insert(name, convert(&item, left, depth - 1)?);
            }
            Ok(Json::Object(object))
        }
        kind => Err(Unfit::Because(format!("{kind} is not data"))),
    }
}

/// Keeps at most `limit` bytes and one write more, then refuses.
struct Bounded {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > self.limit {
            return Err(io::Error::other("too long"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
