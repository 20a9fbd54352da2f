//! The requests of a client: one JSON object a line.

use std::fmt;

use netsim::wifi_description::WifiDescription;
use serde::de::DeserializeOwned;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::shape::ShapeChange;

/// What a client can ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Make a wire of two interfaces.
    Add(Add),
    /// Change a wire.
    Set(Set),
    /// Give the interfaces of a wire back.
    Remove(Remove),
    /// Report.
    Stats,
    /// End.
    Stop,
}

/// A new wire.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Add {
    /// Its name.
    pub wire: String,
    /// An interface.
    pub a: String,
    /// The other interface.
    pub b: String,
    /// What differs from [`crate::shape::Shape::default`].
    #[serde(default)]
    pub a_to_b: ShapeChange,
    /// Likewise.
    #[serde(default)]
    pub b_to_a: ShapeChange,
    /// A medium in place of shapes.
    #[serde(default)]
    pub wifi: Option<Box<Wireless>>,
}

/// A wire over Wi-Fi.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Wireless {
    /// The nodes at its ends, each of which is one station of a channel.
    pub stations: [String; 2],
    /// Seed of the medium, if this is the first wire on it.
    pub seed: u64,
    /// Bound of a station's queue for one direction; `None`: the model's.
    #[serde(default)]
    pub queue_packets: Option<u64>,
    /// What the simulator is told of such a link, too.
    pub link: WifiDescription,
}

/// A change of a wire.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// Its name.
    pub wire: String,
    /// What changes.
    #[serde(default)]
    pub a_to_b: ShapeChange,
    /// Likewise.
    #[serde(default)]
    pub b_to_a: ShapeChange,
    /// Take it up or down.
    #[serde(default)]
    pub up: Option<bool>,
}

/// The end of a wire.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// Its name.
    pub wire: String,
}

/// A command without parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParameters {}

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
    let mut keys: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| RequestError {
            sentence: format!("The line is not a JSON object: {error}."),
            field: None,
        })?;
    let command = keys.remove("cmd").unwrap_or(Value::Null);
    match command.as_str() {
        Some("add") => read(keys).and_then(checked).map(Request::Add),
        Some("set") => read(keys).map(Request::Set),
        Some("remove") => read(keys).map(Request::Remove),
        Some("stats") => read(keys).map(|NoParameters {}| Request::Stats),
        Some("stop") => read(keys).map(|NoParameters {}| Request::Stop),
        _ => {
            let sentence = format!(
                "There is no command {command}: the commands are add, set, remove, stats and stop."
            );
            Err(RequestError::of_field("cmd", sentence))
        }
    }
}

/// Refuses Wi-Fi that cannot be, or that has shapes.
fn checked(add: Add) -> Result<Add, RequestError> {
    let Some(wifi) = &add.wifi else {
        return Ok(add);
    };
    if [&add.a_to_b, &add.b_to_a]
        .iter()
        .any(|&shape| *shape != ShapeChange::default())
    {
        let sentence = "A wire over Wi-Fi has no shapes: leave `a_to_b` and `b_to_a` out.";
        return Err(RequestError::of_field("wifi", sentence));
    }
    match wifi.link.problem() {
        None => Ok(add),
        Some((key, reason)) => {
            let field = format!("wifi.link.{key}");
            Err(RequestError::of_field(
                &field,
                format!("`{field}`: {reason}."),
            ))
        }
    }
}

fn read<T: DeserializeOwned>(keys: Map<String, Value>) -> Result<T, RequestError> {
    serde_path_to_error::deserialize(Value::Object(keys)).map_err(|error| {
        let (field, problem) = (error.path().to_string(), error.inner());
        match field.as_str() {
            "." => RequestError {
                sentence: format!("The request has a {problem}."),
                field: None,
            },
            _ => RequestError::of_field(&field, format!("`{field}`: {problem}.")),
        }
    })
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
        let expected = Request::Add(Add {
            wire: "S0-S4".into(),
            a: "x".into(),
            b: "y".into(),
            a_to_b: ShapeChange::default(),
            b_to_a: shape,
            wifi: None,
        });
        assert_eq!(parse(line), Ok(expected));
    }

    #[test]
    fn errors_name_the_field() {
        let set = |shape: &str| error(&format!(r#"{{"cmd":"set","wire":"w","a_to_b":{shape}}}"#));
        assert_eq!(
            set(r#"{"loss":1}"#),
            (
                "a_to_b.loss".into(),
                "`a_to_b.loss`: must be a number from 0 to below 1, not 1.".into()
            )
        );
        assert_eq!(set(r#"{"rate_bps":0}"#).0, "a_to_b.rate_bps");
        assert_eq!(set(r#"{"delay_us":-1}"#).0, "a_to_b.delay_us");
        assert_eq!(set(r#"{"delay_us":null}"#).0, "a_to_b.delay_us");
        assert_eq!(set(r#"{"queue_packets":1.5}"#).0, "a_to_b.queue_packets");
        assert_eq!(set(r#"{"colour":1}"#).0, "a_to_b.colour");
        let air = |link: &str, more: &str| {
            let wifi = format!(r#"{{"stations":["A","B"],"seed":1,"link":{link}}}"#);
            error(&format!(
                r#"{{"cmd":"add","wire":"w","a":"x","b":"y","wifi":{wifi}{more}}}"#
            ))
        };
        let link = r#"{"standard":"802.11b","distance_m":5,"phy_rate_bps":11e6}"#;
        assert_eq!(air(link, r#","a_to_b":{"loss":0.5}"#).0, "wifi");
        let field = "wifi.link.phy_rate_bps";
        assert_eq!(air(&link.replace("11e6", "54e6"), "").0, field);
        assert_eq!(set("3").0, "a_to_b");
        assert_eq!(
            error(r#"{"cmd":"remove"}"#).1,
            "The request has a missing field `wire`."
        );
        assert_eq!(error(r#"{"cmd":"fly"}"#).0, "cmd");
        assert_eq!(error(r#"{"cmd":"stats","wire":"w"}"#).0, "wire");
        for line in ["nonsense", "[]", "3"] {
            assert!(error(line).1.starts_with("The line is not a JSON object: "));
        }
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
