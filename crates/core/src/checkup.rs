//! What an operator is told of a store: facts, findings, and what may be trusted. Data only; stores fill it in.
//!
//! Surprise: "is this promised?" has three answers, as everything here. What could not be seen is not promised, and
//! [`Report::unmet`] counts it as missing.

mod trial;

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::store::{Order, Profile, Tokens, Wake};

pub use trial::{Trial, trial};

/// Everything that was found about one store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What sort of store it is, as its URLs begin.
    pub store: &'static str,
    /// Where it is; never a password.
    pub address: String,
    /// What there is.
    pub facts: Vec<Fact>,
    /// What that means for locks.
    pub findings: Vec<Finding>,
    /// What may be trusted.
    pub promises: Vec<Promised>,
}

/// Something that is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is about, in a word.
    pub topic: &'static str,
    /// What is so.
    pub value: String,
}

/// What something means for locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is about, in a word.
    pub topic: &'static str,
    /// How bad it is.
    pub level: Level,
    /// What was found.
    pub found: String,
    /// What that means; may be empty where it is good.
    pub means: String,
    /// What to do about it, where something can be done.
    pub change: Option<String>,
}

impl Finding {
    /// A finding without a word on what to change.
    pub fn new(topic: &'static str, level: Level, found: impl Into<String>, means: impl Into<String>) -> Self {
        Self { topic, level, found: found.into(), means: means.into(), change: None }
    }

    /// Something that is as it should be.
    pub fn good(topic: &'static str, found: impl Into<String>) -> Self {
        Self::new(topic, Level::Good, found, "")
    }

    /// The same with a word on what to change.
    #[must_use]
    pub fn with_change(mut self, change: impl Into<String>) -> Self {
        self.change = Some(change.into());
        self
    }
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// As it should be.
    Good,
    /// To be known.
    Note,
    /// Locks hold, but less than one might think.
    Warning,
    /// Two may hold one lock, or none can be taken.
    Danger,
}

impl Level {
    /// The level as a lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Danger => "danger",
        }
    }
}

/// What a store can promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Promise {
    /// A lock can be taken, renewed, handed over and released here, now, by this user.
    Usable,
    /// This is where locks are written, not a copy of it.
    WritablePrimary,
    /// Locks that were given survive a restart of the store.
    Restart,
    /// They survive a power loss.
    PowerLoss,
    /// They survive the loss of the store's machine.
    Failover,
    /// No lock is thrown away because memory is short.
    NoEviction,
    /// Every hold has a token that is greater than those before it.
    Tokens,
    /// Those who wait are told, and need not ask.
    Push,
    /// First come, first served, where that is asked for.
    Fair,
}

impl Promise {
    /// All of them, in the order they are shown in.
    pub const ALL: [Self; 9] = [
        Self::Usable,
        Self::WritablePrimary,
        Self::Restart,
        Self::PowerLoss,
        Self::Failover,
        Self::NoEviction,
        Self::Tokens,
        Self::Push,
        Self::Fair,
    ];

    /// The promise as people ask for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Usable => "usable",
            Self::WritablePrimary => "writable-primary",
            Self::Restart => "restart",
            Self::PowerLoss => "power-loss",
            Self::Failover => "failover",
            Self::NoEviction => "no-eviction",
            Self::Tokens => "tokens",
            Self::Push => "push",
            Self::Fair => "fair",
        }
    }
}

/// Is it promised?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// It could not be seen.
    Unknown,
}

impl Kept {
    /// The answer as a lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

impl From<bool> for Kept {
    fn from(kept: bool) -> Self {
        if kept { Self::Yes } else { Self::No }
    }
}

/// A promise and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promised {
    /// Which one.
    pub promise: Promise,
    /// Is it promised?
    pub kept: Kept,
    /// Why.
    pub why: String,
    /// What would make it so, where anything would.
    pub change: Option<String>,
}

/// What can be asked of a report before something is deployed on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// This must be promised.
    Promise(Promise),
    /// No finding may be a danger.
    NoDanger,
    /// No finding may be a warning or worse.
    NoWarning,
}

impl Requirement {
    /// How all of them are written.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Promise::ALL.into_iter().map(Promise::as_str).chain(["no-danger", "no-warning"])
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Promise(promise) => promise.as_str(),
            Self::NoDanger => "no-danger",
            Self::NoWarning => "no-warning",
        })
    }
}

impl FromStr for Requirement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "no-danger" => Ok(Self::NoDanger),
            "no-warning" => Ok(Self::NoWarning),
            _ => {
                let found = Promise::ALL.into_iter().find(|promise| promise.as_str() == text);
                found.map(Self::Promise).ok_or_else(|| {
                    Error::invalid("requirement", format!("there is no `{text}`"))
                        .with_hint(format!("one of {}", Self::names().collect::<Vec<_>>().join(", ")))
                })
            }
        }
    }
}

/// A requirement that is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// Which one.
    pub requirement: Requirement,
    /// Why it is not met.
    pub why: String,
    /// What to change, where anything helps.
    pub change: Option<String>,
}

impl Report {
    /// A report with nothing in it yet.
    pub fn new(store: &'static str, address: impl Into<String>) -> Self {
        Self { store, address: address.into(), facts: Vec::new(), findings: Vec::new(), promises: Vec::new() }
    }

    /// Adds a fact.
    pub fn fact(&mut self, topic: &'static str, value: impl Into<String>) {
        self.facts.push(Fact { topic, value: value.into() });
    }

    /// Adds a finding.
    pub fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Says whether something is promised; what was said of it before is forgotten.
    pub fn promise(&mut self, promise: Promise, kept: impl Into<Kept>, why: impl Into<String>, change: Option<String>) {
        self.promises.retain(|known| known.promise != promise);
        self.promises.push(Promised { promise, kept: kept.into(), why: why.into(), change });
    }

    /// Takes from a profile what it says of order, tokens and wake-ups.
    pub fn promise_of(&mut self, profile: &Profile) {
        let fifo = profile.order == Order::Fifo;
        let fair = if fifo { "claims that ask for it are served in order" } else { "a newcomer may get ahead" };
        self.promise(Promise::Fair, fifo, fair, None);
        let push = profile.wake == Wake::Push;
        self.promise(Promise::Push, push, if push { "waiters are told" } else { "waiters have to ask" }, None);
        let (tokens, why) = match profile.tokens {
            Tokens::Monotone => (true, "tokens rise for as long as the store keeps its data"),
            Tokens::Floored => (true, "tokens rise, by the store's clock also across a loss of data"),
            Tokens::None => (false, "this store has no tokens"),
        };
        self.promise(Promise::Tokens, tokens, why, None);
    }

    /// What became of a promise; one that nobody said anything of is unknown.
    pub fn kept(&self, promise: Promise) -> Kept {
        self.promised(promise).map_or(Kept::Unknown, |promised| promised.kept)
    }

    fn promised(&self, promise: Promise) -> Option<&Promised> {
        self.promises.iter().find(|promised| promised.promise == promise)
    }

    /// Puts the worst findings first, and promises in the order of [`Promise::ALL`].
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        self.promises.sort_by_key(|promised| Promise::ALL.iter().position(|known| *known == promised.promise));
        self
    }

    /// The level of the worst finding.
    pub fn worst(&self) -> Level {
        self.findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Good)
    }

    /// Which of the requirements are not met. What is not known is not met.
    pub fn unmet(&self, requirements: &[Requirement]) -> Vec<Unmet> {
        let mut unmet = Vec::new();
        for requirement in requirements {
            match requirement {
                Requirement::Promise(promise) => unmet.extend(self.unkept(*promise)),
                Requirement::NoDanger => unmet.extend(self.too_bad(*requirement, Level::Danger)),
                Requirement::NoWarning => unmet.extend(self.too_bad(*requirement, Level::Warning)),
            }
        }
        unmet
    }

    fn unkept(&self, promise: Promise) -> Option<Unmet> {
        let requirement = Requirement::Promise(promise);
        match self.promised(promise) {
            Some(promised) if promised.kept == Kept::Yes => None,
            Some(promised) => Some(Unmet { requirement, why: promised.why.clone(), change: promised.change.clone() }),
            None => Some(Unmet { requirement, why: "nothing is known of it on this store".to_owned(), change: None }),
        }
    }

    fn too_bad(&self, requirement: Requirement, level: Level) -> Option<Unmet> {
        let bad: Vec<&Finding> = self.findings.iter().filter(|finding| finding.level >= level).collect();
        let first = bad.first()?;
        let more = match bad.len() - 1 {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let why = format!("{}: {}: {}{more}", first.level.as_str(), first.topic, first.found);
        Some(Unmet { requirement, why, change: first.change.clone() })
    }

    /// What may be trusted, in a few sentences.
    pub fn trust(&self) -> String {
        if self.kept(Promise::Usable) == Kept::No {
            let why = self.promised(Promise::Usable).map_or("", |promised| promised.why.as_str());
            return format!("Locks cannot be used here: {why}.");
        }
        let faults = [
            (Promise::Restart, "a restart"),
            (Promise::PowerLoss, "a power loss"),
            (Promise::Failover, "the loss of its machine"),
        ];
        let those = |kept: Kept| -> Vec<&str> {
            faults.iter().filter(|(promise, _)| self.kept(*promise) == kept).map(|(_, words)| *words).collect()
        };
        let (survives, not, unseen) = (those(Kept::Yes), those(Kept::No), those(Kept::Unknown));
        let mut sentences = Vec::new();
        match (survives.is_empty(), not.is_empty()) {
            (false, false) => sentences.push(format!("Locks here survive {}, not {}.", all(&survives), any(&not))),
            (false, true) => sentences.push(format!("Locks here survive {}.", all(&survives))),
            (true, false) => sentences.push(format!("Locks here do not survive {}.", any(&not))),
            (true, true) => {}
        }
        if !unseen.is_empty() {
            sentences.push(format!("Whether they survive {} could not be seen: do not count on it.", any(&unseen)));
        }
        match self.kept(Promise::NoEviction) {
            Kept::Yes => {}
            Kept::No => sentences.push("Any of them may be thrown away when memory is short.".to_owned()),
            Kept::Unknown => {
                sentences.push("Whether they are thrown away when memory is short could not be seen.".to_owned());
            }
        }
        sentences.push(match self.kept(Promise::Tokens) {
            Kept::Yes => {
                "Use tokens and fences for work that must be right even then, or when a holder is paused.".into()
            }
            _ => "There are no tokens to fence with: use these locks to save work, not to keep data right.".into(),
        });
        sentences.join(" ")
    }
}

/// `a`, `a and b`, `a, b and c`.
fn all(words: &[&str]) -> String {
    listed(words, "and")
}

/// `a`, `a or b`, `a, b or c`.
fn any(words: &[&str]) -> String {
    listed(words, "or")
}

fn listed(words: &[&str], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
