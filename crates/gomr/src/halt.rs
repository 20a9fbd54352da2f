//! Ending a solve from outside: the crate has no clock, so who has one decides.

use std::fmt;
use std::sync::Arc;

/// Says whether a solve should end now; asked every few pivots.
pub type HaltTest = Arc<dyn Fn() -> bool + Send + Sync>;

/// The test in use, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Halt(pub Option<HaltTest>);

impl Halt {
    pub fn now(&self) -> bool {
        self.0.as_ref().is_some_and(|test| test())
    }
}

impl fmt::Debug for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Halt(..)" } else { "Halt" })
    }
}
