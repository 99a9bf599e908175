//! What went wrong, and what to type next.
//!
//! The surprise: the hint is part of the value, so that whoever prints it cannot forget it.

use std::error::Error;
use std::fmt;

/// A failure of the rig or of a task: the cause, and often a hint.
#[derive(Clone, PartialEq, Eq)]
pub struct Trouble {
    what: String,
    hint: Option<String>,
}

impl Trouble {
    /// A failure without a hint. Lower case, cause first.
    pub fn new(what: impl Into<String>) -> Self {
        Trouble { what: what.into(), hint: None }
    }

    /// The same failure with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The same as for people: `expect` in a test prints this.
impl fmt::Debug for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Trouble {}
