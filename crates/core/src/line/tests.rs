//! What a line must always do: checked over every small world, over long random ones, and rule by rule.
//!
//! `world` makes one call and checks all that must hold of any call; `oracle` is a second, naive telling of the
//! model that keeps its ended claims and recomputes everything. Surprise: one tick is three seconds, so that the
//! waiting lease (three thirds of the lease, six seconds at most) is a whole number of ticks too.

use std::time::Duration;

use crate::claim::{Claim, ClaimId, LockKind, Owner, Patience};
use crate::time::Moment;

mod exhaustive;
mod oracle;
mod random;
mod rules;
mod world;

/// So many ticks.
fn ticks(count: u64) -> Duration {
    Duration::from_secs(3 * count)
}

/// The moment so many ticks after the start.
fn at(count: u64) -> Moment {
    Moment::from_nanos(0) + ticks(count)
}

fn id(who: u8) -> ClaimId {
    ClaimId::from_bytes([who; 16])
}

/// One of `who`'s questions: what differs between the claims of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ask {
    who: u8,
    kind: LockKind,
    weight: u32,
    capacity: u32,
    lease: u64,
    delay: u64,
    patience: Patience,
    note: u8,
}

impl Ask {
    /// `weight` of `capacity`, in line, for two ticks and a delay of one.
    fn new(who: u8, weight: u32, capacity: u32) -> Self {
        let (kind, patience) = (LockKind::Semaphore, Patience::Queue);
        Self { who, kind, weight, capacity, lease: 2, delay: 1, patience, note: 0 }
    }

    fn now(self) -> Self {
        Self { patience: Patience::Now, ..self }
    }

    fn claim(&self) -> Claim {
        Claim {
            id: id(self.who),
            owner: Owner::stored(u128::from(self.who), "host", 1, ""),
            kind: self.kind,
            weight: self.weight,
            capacity: self.capacity,
            lease: ticks(self.lease),
            delay: ticks(self.delay),
            fair: true,
            patience: self.patience,
            note: vec![self.note],
        }
    }
}

/// One call, or time that goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Enter(Ask),
    Renew { who: u8, lease: u64 },
    Leave { who: u8, keep: u64 },
    Pass { ticks: u64 },
}
