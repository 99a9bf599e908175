//! What operators need to know of a keeper besides its single calls, through the `metrics` facade: how long locks take,
//! how many are held, how many are lost.
//!
//! The names stand in `docs/metrics.md`, and a test holds the two together. Surprise: the keys, labels included, are made
//! once per keeper and lent to the recorder, which is looked up each time. Without a recorder nothing is allocated and
//! nothing is remembered; one that is installed later sees all that happens from then on.

use std::time::Duration;

use metrics::{Key, Label, Level, Metadata};

use crate::claim::LockKind;
use crate::error::{ErrorKind, Result};

/// Where what is counted comes from.
pub(crate) static METADATA: Metadata<'static> = Metadata::new("lockkeeper", Level::INFO, None);

const KINDS: [LockKind; 5] =
    [LockKind::Mutex, LockKind::ReadWrite, LockKind::Semaphore, LockKind::Election, LockKind::Once];

/// A closed set of label values; the variant is the place of its word.
macro_rules! words {
    ($(#[$doc:meta])+ $set:ident: $($variant:ident = $word:literal),+) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $set {
            $($variant),+
        }

        impl $set {
            const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];
        }
    };
}

words! {
    /// How a `lock()` or `try_lock()` ended.
    Taking: Held = "held", Timeout = "timeout", Refused = "refused", Error = "error"
}

words! {
    /// Why a hold was lost.
    Losing: RanOut = "ran_out", Gone = "gone", Closed = "closed"
}

words! {
    /// How the renewal of one hold was answered.
    Renewing: Renewed = "renewed", Gone = "gone", Unanswered = "unanswered"
}

words! {
    /// How a hold was let go.
    Releasing: Released = "released", HandedOn = "handed_on", Dropped = "dropped", Lost = "lost",
    Unconfirmed = "unconfirmed"
}

impl Taking {
    /// The word for logs, the same as in metrics.
    pub(crate) fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// The outcome of an acquire, as it is counted.
    pub(crate) fn of<T>(outcome: &Result<Option<T>>) -> Self {
        match outcome {
            Ok(Some(_)) => Self::Held,
            Ok(None) => Self::Refused,
            Err(error) if error.kind() == ErrorKind::Timeout => Self::Timeout,
            Err(_) => Self::Error,
        }
    }
}

impl Losing {
    /// The word for logs, the same as in metrics.
    pub(crate) fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// The keys of one keeper.
pub(crate) struct Meters {
    acquire: [[Key; Taking::WORDS.len()]; KINDS.len()],
    holds: Key,
    lost: [Key; Losing::WORDS.len()],
    renewals: [Key; Renewing::WORDS.len()],
    releases: [Key; Releasing::WORDS.len()],
}

impl Meters {
    /// The meters of a keeper on a store of this scheme.
    pub(crate) fn of(store: &'static str) -> Self {
        let key = |name: &'static str, label: &'static str, value: &'static str| {
            Key::from_parts(name, vec![Label::new("store", store), Label::new(label, value)])
        };
        Self {
            acquire: KINDS.map(|kind| {
                let kind = Label::new("kind", kind.as_str());
                Taking::WORDS.map(|word| {
                    let labels = vec![Label::new("store", store), kind.clone(), Label::new("outcome", word)];
                    Key::from_parts("lockkeeper_acquire_seconds", labels)
                })
            }),
            holds: Key::from_parts("lockkeeper_holds", vec![Label::new("store", store)]),
            lost: Losing::WORDS.map(|word| key("lockkeeper_lost_total", "reason", word)),
            renewals: Renewing::WORDS.map(|word| key("lockkeeper_renewals_total", "outcome", word)),
            releases: Releasing::WORDS.map(|word| key("lockkeeper_release_total", "outcome", word)),
        }
    }

    pub(crate) fn took(&self, kind: LockKind, outcome: Taking, waited: Duration) {
        let Some(at) = KINDS.iter().position(|known| *known == kind) else { return };
        let key = &self.acquire[at][outcome as usize];
        metrics::with_recorder(|recorder| recorder.register_histogram(key, &METADATA).record(waited));
    }

    /// One hold more.
    pub(crate) fn begins(&self) {
        metrics::with_recorder(|recorder| recorder.register_gauge(&self.holds, &METADATA).increment(1.0));
    }

    /// One hold less.
    pub(crate) fn ends(&self) {
        metrics::with_recorder(|recorder| recorder.register_gauge(&self.holds, &METADATA).decrement(1.0));
    }

    pub(crate) fn lost(&self, why: Losing) {
        count(&self.lost[why as usize], 1);
    }

    pub(crate) fn renewed(&self, outcome: Renewing, holds: usize) {
        if holds > 0 {
            count(&self.renewals[outcome as usize], holds as u64);
        }
    }

    pub(crate) fn released(&self, outcome: Releasing) {
        count(&self.releases[outcome as usize], 1);
    }
}

fn count(key: &Key, by: u64) {
    metrics::with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(by));
}

impl std::fmt::Debug for Meters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meters")
    }
}
