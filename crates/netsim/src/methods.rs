//! User-defined methods: congestion controls, schedulers and responses to reordering that a run names and the caller makes.

use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, Deserializer, IntoDeserializer};

use crate::bundle::mptcp::scheduler::Scheduler;
use crate::tcp::congestion::CongestionControl;
use crate::tcp::recovery::SpuriousResponse;

/// A method: one of this crate, or `MODULE:NAME` of somebody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named<T> {
    /// Of this crate.
    BuiltIn(T),
    /// Made by the caller's [`Methods`].
    Own(String),
}

impl<T> Named<T> {
    /// The method of this crate, if it is one.
    pub fn built_in(&self) -> Option<&T> {
        match self {
            Self::BuiltIn(method) => Some(method),
            Self::Own(_) => None,
        }
    }
}

/// Whether a name is of a method that the caller makes.
pub fn is_own(name: &str) -> bool {
    name.contains(':')
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if is_own(&name) {
            return Ok(Self::Own(name));
        }
        let name: StrDeserializer<'_, D::Error> = name.as_str().into_deserializer();
        T::deserialize(name).map(Self::BuiltIn)
    }
}

/// Makes the methods that a description names as `MODULE:NAME`; an error is a sentence that says why it is none.
pub trait Methods {
    /// A congestion control for each of `count` connections that may know of each other: the subflows of one side.
    fn congestion_controls(
        &self,
        name: &str,
        count: usize,
    ) -> Result<Vec<Box<dyn CongestionControl>>, String>;

    /// A scheduler for one direction of an MPTCP connection.
    fn scheduler(&self, name: &str) -> Result<Box<dyn Scheduler>, String>;

    /// A response to reordering for one side of a connection.
    fn response(&self, name: &str) -> Result<Box<dyn SpuriousResponse>, String>;
}

/// No methods but those of this crate.
#[derive(Debug, Clone, Copy)]
pub struct BuiltInOnly;

impl BuiltInOnly {
    fn refuse<T>(name: &str) -> Result<T, String> {
        Err(format!(
            "{name} is a method of one's own, and nobody is here to make it"
        ))
    }
}

impl Methods for BuiltInOnly {
    fn congestion_controls(
        &self,
        name: &str,
        _: usize,
    ) -> Result<Vec<Box<dyn CongestionControl>>, String> {
        Self::refuse(name)
    }

    fn scheduler(&self, name: &str) -> Result<Box<dyn Scheduler>, String> {
        Self::refuse(name)
    }

    fn response(&self, name: &str) -> Result<Box<dyn SpuriousResponse>, String> {
        Self::refuse(name)
    }
}
