//! What holds for which connections.
//!
//! The surprise: a rule is looked up when it is needed, not when a connection begins, because a connection can come under
//! it later, by what its client sends.

use std::time::{Duration, Instant};

use super::connection::Connection;

/// Which connections a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    /// Every one.
    All,
    /// Those with these numbers.
    These(Vec<u64>),
    /// Those whose client has sent the pattern of this place in the hub's list.
    Sent(usize),
}

impl Selector {
    pub(super) fn covers(&self, connection: &Connection) -> bool {
        match self {
            Selector::All => true,
            Selector::These(numbers) => numbers.contains(&connection.number),
            Selector::Sent(pattern) => connection.found.get(*pattern).is_some_and(|found| *found),
        }
    }
}

/// One sort of rule: the last that covers a connection counts.
#[derive(Debug)]
pub(super) struct Setting<T>(Vec<(Selector, T)>);

impl<T> Default for Setting<T> {
    fn default() -> Self {
        Setting(Vec::new())
    }
}

impl<T> Setting<T> {
    pub(super) fn set(&mut self, selector: &Selector, value: T) {
        // What is covered anew needs no earlier rule, so the list does not grow with repeated calls.
        self.0.retain(|(earlier, _)| *selector != Selector::All && earlier != selector);
        self.0.push((selector.clone(), value));
    }

    pub(super) fn of(&self, connection: &Connection) -> Option<&T> {
        self.0.iter().rev().find(|(selector, _)| selector.covers(connection)).map(|(_, value)| value)
    }

    pub(super) fn of_mut(&mut self, connection: &Connection) -> Option<&mut T> {
        self.0.iter_mut().rev().find(|(selector, _)| selector.covers(connection)).map(|(_, value)| value)
    }
}

/// Whether new connections are refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    Never,
    Always,
    Until(Instant),
}

/// What becomes of replies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Replies {
    Pass,
    Drop,
    /// Those to so many more requests.
    DropNext(usize),
}

/// All rules, by sort.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) is_frozen: Setting<bool>,
    pub(super) refusal: Setting<Refusal>,
    /// By [`Way`](super::Way).
    pub(super) delay: [Setting<Duration>; 2],
    pub(super) replies: Setting<Replies>,
}

impl Rules {
    pub(super) fn freezes(&self, connection: &Connection) -> bool {
        self.is_frozen.of(connection).is_some_and(|frozen| *frozen)
    }

    pub(super) fn refuses(&self, connection: &Connection) -> bool {
        match self.refusal.of(connection) {
            None | Some(Refusal::Never) => false,
            Some(Refusal::Always) => true,
            Some(Refusal::Until(end)) => Instant::now() < *end,
        }
    }

    pub(super) fn drops_replies(&self, connection: &Connection) -> bool {
        matches!(self.replies.of(connection), Some(Replies::Drop))
    }

    /// A request goes through: whether the replies to it are to be thrown away.
    pub(super) fn uses_up_a_drop(&mut self, connection: &Connection) -> bool {
        match self.replies.of_mut(connection) {
            Some(Replies::DropNext(left)) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}
