//! What can go wrong.
//!
//! ```text
//! Error
//! ├── Description   the run was described wrongly: where, and what to do
//! └── Protocol      the MSTCP core refused its own bytes: a defect of the simulator or the core
//! ```

use std::fmt;

/// Why a run cannot begin or go on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The description is not one.
    Description {
        /// The place in the description, as `flows[0].paths`.
        place: String,
        /// What is wrong there, and what would be right.
        reason: String,
    },
    /// The protocol core gave an error that a correct peer does not cause.
    Protocol(String),
}

impl Error {
    pub(crate) fn description(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Description {
            place: place.into(),
            reason: reason.into(),
        }
    }

    /// Refuse what does not hold.
    pub(crate) fn require(
        holds: bool,
        place: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), Self> {
        if holds {
            return Ok(());
        }
        Err(Self::description(place, reason))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Description { place, reason } if place.is_empty() => {
                write!(f, "the run: {reason}")
            }
            Self::Description { place, reason } => write!(f, "{place}: {reason}"),
            Self::Protocol(reason) => {
                write!(f, "the MSTCP core refused what it was given: {reason}")
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<mstcp_proto::Error> for Error {
    fn from(error: mstcp_proto::Error) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<mstcp_proto::LocalError> for Error {
    fn from(error: mstcp_proto::LocalError) -> Self {
        Self::Protocol(error.to_string())
    }
}
