//! What a command runs under: one hold, or several that count as one.
//!
//! Surprise: of several, the one that ends first is what matters. The guard watches the earliest deadline, and one
//! that is lost loses all.

use std::process::Command;

use lockkeeper::kinds::{Leadership, MultiHold, OnceHold};
use lockkeeper::time::Moment;
use lockkeeper::{Hold, Name, Result, Token};

use super::nest::Joined;

/// One hold, or several as one.
#[derive(Debug)]
pub enum Held {
    /// A mutex, a permit, a reader's or a writer's.
    One(Hold),
    /// Several names.
    Several(MultiHold),
    /// A term of office.
    Leading(Leadership),
    /// A key whose run is under way.
    Key(OnceHold),
    /// What an outer `run` holds.
    Outer(Joined),
}

impl Held {
    fn holds(&self) -> &[Hold] {
        match self {
            Self::One(hold) => std::slice::from_ref(hold),
            Self::Several(multi) => multi.holds(),
            Self::Leading(leadership) => std::slice::from_ref(leadership),
            Self::Key(key) => std::slice::from_ref(key),
            Self::Outer(_) => &[],
        }
    }

    /// Are all of them still ours, by our own clock?
    pub fn is_held(&self) -> bool {
        match self {
            Self::Outer(joined) => joined.why_lost().is_none(),
            _ => self.holds().iter().all(Hold::is_held),
        }
    }

    /// When the first of them ends if nothing renews it.
    pub fn deadline(&self) -> Moment {
        match self {
            Self::Outer(joined) => joined.deadline(),
            _ => self.earliest().map_or(Moment::NEVER, Hold::deadline),
        }
    }

    /// Waits until renewals have moved the earliest deadline past `seen`, and says where it is now.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub async fn deadline_after(&self, seen: Moment) -> Moment {
        if let Self::Outer(joined) = self {
            return joined.deadline_after(seen).await;
        }
        loop {
            let Some(first) = self.earliest() else { return std::future::pending().await };
            if first.deadline() > seen {
                return first.deadline();
            }
            first.deadline_after(seen).await;
        }
    }

    /// Completes when the first of them is lost, with the reason as people read it.
    ///
    /// # Cancel safety
    /// It can be dropped and asked for again at any time.
    pub async fn lost(&self) -> String {
        match self {
            Self::One(hold) => hold.lost().await.to_string(),
            Self::Several(multi) => multi.lost().await.to_string(),
            Self::Leading(leadership) => leadership.lost().await.to_string(),
            Self::Key(key) => key.lost().await.to_string(),
            Self::Outer(joined) => joined.lost().await,
        }
    }

    /// Releases all of them; `Lost` if one was no longer ours.
    pub async fn release(self) -> Result<()> {
        match self {
            Self::One(hold) => hold.release().await,
            Self::Several(multi) => multi.release().await,
            Self::Leading(leadership) => leadership.resign().await,
            Self::Key(key) => key.release().await,
            // Hanging up is all that is to be done.
            Self::Outer(_) => Ok(()),
        }
    }

    /// Releases it and records a result, where there is something to record it in.
    pub async fn record(self, result: &[u8]) -> Result<()> {
        match self {
            Self::Key(key) => key.record(result).await,
            other => other.release().await,
        }
    }

    /// The names, in order, with their tokens where the store has tokens.
    pub fn tokens(&self) -> Vec<Named> {
        if let Self::Outer(joined) = self {
            return joined.tokens();
        }
        self.holds().iter().map(|hold| (hold.name().clone(), hold.token())).collect()
    }

    fn earliest(&self) -> Option<&Hold> {
        self.holds().iter().min_by_key(|hold| hold.deadline())
    }
}

/// A name with its token, where the store has tokens.
pub type Named = (Name, Option<Token>);

/// Tells the command what it runs under. What an outer `run` has set is not left to be taken for this one's.
pub fn describe(command: &mut Command, held: &[Named]) {
    let tokens: Option<Vec<String>> = held.iter().map(|(_, token)| Some((*token)?.to_string())).collect();
    let names: Vec<String> = held.iter().map(|(name, _)| name.to_string()).collect();
    let (one, several) = if names.len() == 1 {
        ([names.first().cloned(), tokens.and_then(|mut tokens| tokens.pop())], [None, None])
    } else {
        let pair = |(name, token): (&String, String)| format!("{name}={token}");
        let pairs = tokens.map(|tokens| names.iter().zip(tokens).map(pair).collect::<Vec<_>>().join("\n"));
        ([None, None], [Some(names.join("\n")), pairs])
    };
    let variables = ["LOCKKEEPER_NAME", "LOCKKEEPER_TOKEN", "LOCKKEEPER_NAMES", "LOCKKEEPER_TOKENS"];
    for (variable, value) in variables.into_iter().zip(one.into_iter().chain(several)) {
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
}
