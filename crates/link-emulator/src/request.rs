//! The requests of a client: one JSON object a line.

use std::fmt;

use serde_json::{Map, Value};

use crate::shape::{ShapeChange, MAX_DELAY_US, MAX_RATE_BPS};

/// What a client can ask for. Directions are given as [a to b, b to a].
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Make a wire of two interfaces.
    Add {
        /// Its name.
        wire: String,
        /// The interfaces a and b.
        interfaces: [String; 2],
        /// What differs from [`crate::shape::Shape::default`].
        shapes: [ShapeChange; 2],
    },
    /// Change a wire.
    Set {
        /// Its name.
        wire: String,
        /// What changes.
        shapes: [ShapeChange; 2],
        /// Take it up or down.
        up: Option<bool>,
    },
    /// Give the interfaces of a wire back.
    Remove {
        /// Its name.
        wire: String,
    },
    /// Report.
    Stats,
    /// End.
    Stop,
}

/// A request that cannot be carried out: a sentence, and the field it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError {
    /// What is wrong and what to do.
    pub sentence: String,
    /// The field, as a path such as `a_to_b.loss`.
    pub field: Option<String>,
}

impl RequestError {
    /// An error about one field.
    pub fn of_field(field: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            field: Some(field.into()),
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for RequestError {}

/// Reads one request.
///
/// # Errors
/// Text that is no JSON object, unknown commands and keys, missing keys, values of the wrong type or out of bounds.
pub fn parse(line: &str) -> Result<Request, RequestError> {
    let value: Value = serde_json::from_str(line).map_err(|error| RequestError {
        sentence: format!("The line is not JSON: {error}."),
        field: None,
    })?;
    let mut fields = Fields::of(value, String::new())?;
    let command: String = fields.required("cmd", "a string", text)?;
    let request = match command.as_str() {
        "add" => Request::Add {
            wire: fields.required("wire", "a name", name)?,
            interfaces: [
                fields.required("a", "a name", name)?,
                fields.required("b", "a name", name)?,
            ],
            shapes: [fields.shape("a_to_b")?, fields.shape("b_to_a")?],
        },
        "set" => Request::Set {
            wire: fields.required("wire", "a name", name)?,
            shapes: [fields.shape("a_to_b")?, fields.shape("b_to_a")?],
            up: fields.optional("up", "true or false", |value| value.as_bool())?,
        },
        "remove" => Request::Remove {
            wire: fields.required("wire", "a name", name)?,
        },
        "stats" => Request::Stats,
        "stop" => Request::Stop,
        other => {
            let sentence = format!(
                "There is no command {other:?}: the commands are add, set, remove, stats and stop."
            );
            return Err(RequestError::of_field("cmd", sentence));
        }
    };
    fields.finish()?;
    Ok(request)
}

/// The keys of one object that have not been read yet.
struct Fields {
    keys: Map<String, Value>,
    known: Vec<&'static str>,
    /// What goes before the keys in messages, such as `a_to_b.`.
    prefix: String,
}

impl Fields {
    fn of(value: Value, prefix: String) -> Result<Self, RequestError> {
        match value {
            Value::Object(keys) => Ok(Self {
                keys,
                known: Vec::new(),
                prefix,
            }),
            other => {
                let field = prefix.trim_end_matches('.').to_owned();
                let what = if field.is_empty() {
                    "A request".to_owned()
                } else {
                    format!("`{field}`")
                };
                let sentence = format!("{what} must be a JSON object, not {other}.");
                Err(RequestError {
                    sentence,
                    field: (!field.is_empty()).then_some(field),
                })
            }
        }
    }

    fn optional<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, RequestError> {
        self.known.push(key);
        let Some(value) = self.keys.remove(key) else {
            return Ok(None);
        };
        let field = format!("{}{key}", self.prefix);
        match read(&value) {
            Some(result) => Ok(Some(result)),
            None => {
                let sentence = format!("`{field}` must be {expected}, not {value}.");
                Err(RequestError::of_field(field, sentence))
            }
        }
    }

    fn required<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, RequestError> {
        self.optional(key, expected, read)?.ok_or_else(|| {
            let field = format!("{}{key}", self.prefix);
            let sentence = format!("`{field}` is missing: give {expected}.");
            RequestError::of_field(field, sentence)
        })
    }

    fn shape(&mut self, key: &'static str) -> Result<ShapeChange, RequestError> {
        let Some(value) = self.optional(key, "an object", |value| Some(value.clone()))? else {
            return Ok(ShapeChange::default());
        };
        let mut fields = Fields::of(value, format!("{key}."))?;
        let rate =
            format!("a number above 0 and at most {MAX_RATE_BPS:e} (bit/s), or null for no limit");
        let delay = format!("a number from 0 to {MAX_DELAY_US} (microseconds)");
        let queue = "a whole number from 0 up, or null for no limit";
        let change = ShapeChange {
            rate_bps: fields.optional("rate_bps", &rate, or_null(rate_bps))?,
            delay_ns: fields.optional("delay_us", &delay, microseconds)?,
            queue_packets: fields.optional("queue_packets", queue, or_null(Value::as_u64))?,
            queue_bytes: fields.optional("queue_bytes", queue, or_null(Value::as_u64))?,
            loss: fields.optional("loss", "a number from 0 to below 1", probability)?,
            jitter_ns: fields.optional("jitter_us", &delay, microseconds)?,
            seed: fields.optional("seed", "a whole number from 0 up", |value| value.as_u64())?,
        };
        fields.finish()?;
        Ok(change)
    }

    fn finish(self) -> Result<(), RequestError> {
        let Some(key) = self.keys.keys().next() else {
            return Ok(());
        };
        let field = format!("{}{key}", self.prefix);
        let sentence = format!(
            "There is no key `{field}` here: the keys are {}.",
            self.known.join(", ")
        );
        Err(RequestError::of_field(field, sentence))
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn name(value: &Value) -> Option<String> {
    text(value).filter(|name| !name.is_empty())
}

fn or_null<T>(read: impl FnOnce(&Value) -> Option<T>) -> impl FnOnce(&Value) -> Option<Option<T>> {
    move |value| {
        if value.is_null() {
            Some(None)
        } else {
            read(value).map(Some)
        }
    }
}

fn rate_bps(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .filter(|&rate| rate > 0.0 && rate <= MAX_RATE_BPS)
}

fn microseconds(value: &Value) -> Option<u64> {
    let us = value
        .as_f64()
        .filter(|us| (0.0..=MAX_DELAY_US).contains(us))?;
    Some((us * 1e3).round() as u64)
}

fn probability(value: &Value) -> Option<f64> {
    value.as_f64().filter(|loss| (0.0..1.0).contains(loss))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(line: &str) -> (String, String) {
        let error = parse(line).unwrap_err();
        (error.field.unwrap_or_default(), error.sentence)
    }

    #[test]
    fn reads_every_property() {
        let line = r#"{"cmd":"add","wire":"S0-S4","a":"x","b":"y","b_to_a":{"rate_bps":5e6,"delay_us":1000.5,
            "queue_packets":100,"queue_bytes":null,"loss":0.25,"jitter_us":2,"seed":7}}"#;
        let shape = ShapeChange {
            rate_bps: Some(Some(5e6)),
            delay_ns: Some(1_000_500),
            queue_packets: Some(Some(100)),
            queue_bytes: Some(None),
            loss: Some(0.25),
            jitter_ns: Some(2000),
            seed: Some(7),
        };
        let expected = Request::Add {
            wire: "S0-S4".into(),
            interfaces: ["x".into(), "y".into()],
            shapes: [ShapeChange::default(), shape],
        };
        assert_eq!(parse(line), Ok(expected));
    }

    #[test]
    fn errors_name_the_field() {
        let set = |shape: &str| error(&format!(r#"{{"cmd":"set","wire":"w","a_to_b":{shape}}}"#));
        assert_eq!(
            set(r#"{"loss":1}"#),
            (
                "a_to_b.loss".into(),
                "`a_to_b.loss` must be a number from 0 to below 1, not 1.".into()
            )
        );
        assert_eq!(set(r#"{"rate_bps":0}"#).0, "a_to_b.rate_bps");
        assert_eq!(set(r#"{"delay_us":-1}"#).0, "a_to_b.delay_us");
        assert_eq!(set(r#"{"delay_us":null}"#).0, "a_to_b.delay_us");
        assert_eq!(set(r#"{"queue_packets":1.5}"#).0, "a_to_b.queue_packets");
        assert_eq!(set(r#"{"colour":1}"#).0, "a_to_b.colour");
        assert_eq!(
            set("3"),
            (
                "a_to_b".into(),
                "`a_to_b` must be a JSON object, not 3.".into()
            )
        );
        assert_eq!(
            error(r#"{"cmd":"remove"}"#),
            ("wire".into(), "`wire` is missing: give a name.".into())
        );
        assert_eq!(error(r#"{"cmd":"fly"}"#).0, "cmd");
        assert_eq!(error(r#"{"cmd":"stats","wire":"w"}"#).0, "wire");
        assert!(error("nonsense").1.starts_with("The line is not JSON"));
        assert_eq!(error("[]").1, "A request must be a JSON object, not [].");
    }

    proptest! {
        #[test]
        fn any_line_gets_a_request_or_a_sentence(line: String) {
            if let Err(error) = parse(&line) {
                prop_assert!(error.sentence.ends_with('.'));
            }
        }
    }
}
