//! What one look at a history came to, before anybody asks whether it was promised.

use crate::judgement::{Finding, Outcome};
use crate::promises::{Asks, Expected};

/// How many pieces of evidence are shown.
const SHOWN: usize = 5;

/// What a check saw.
#[derive(Debug)]
pub(super) struct Look {
    came: Came,
    saw: String,
    evidence: Vec<String>,
}

/// What it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Well,
    Badly,
    /// Badly, and nobody had promised otherwise, whatever the table says.
    AsFeared,
    ToNothing,
}

impl Look {
    /// There was nothing to look at, and this is why.
    pub(super) fn nothing(why: impl Into<String>) -> Self {
        Look { came: Came::ToNothing, saw: why.into(), evidence: Vec::new() }
    }

    /// Well if there is no evidence against it.
    pub(super) fn at(saw: impl Into<String>, against: Against) -> Self {
        let came = if against.count == 0 { Came::Well } else { Came::Badly };
        Look { came, saw: saw.into(), evidence: against.shown() }
    }

    /// The same, but what is against it is told and not held against anybody.
    pub(super) fn excused(mut self) -> Self {
        if self.came == Came::Badly {
            self.came = Came::AsFeared;
        }
        self
    }

    /// What it is worth, by what was promised.
    pub(super) fn judged(self, check: &str, asks: Asks, expected: &Expected) -> Finding {
        let outcome = match self.came {
            Came::Well => Outcome::Passed,
            Came::ToNothing => Outcome::NotRun,
            Came::Badly if expected.keeps(asks) => Outcome::Failed,
            Came::Badly | Came::AsFeared => Outcome::Reported,
        };
        Finding { check: check.to_owned(), outcome, saw: self.saw, evidence: self.evidence }
    }
}

/// What speaks against a check: counted to the end, shown to a few.
#[derive(Debug, Default)]
pub(super) struct Against {
    count: u64,
    first: Vec<String>,
}

impl Against {
    /// One more; told only if it is among the first.
    pub(super) fn add(&mut self, tell: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(tell());
        }
    }

    /// How many.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    fn shown(mut self) -> Vec<String> {
        let more = self.count - self.first.len() as u64;
        if more > 0 {
            self.first.push(format!("and {more} more"));
        }
        self.first
    }
}
