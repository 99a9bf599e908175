//! The seam: what a store must do, and what it promises. Kinds live above it, stores below it.
//!
//! A few methods, no defaults (a wrapper that forgets one must not compile), object-safe. Every lease that crosses
//! the seam is a duration; no client's wall-clock time ever does (C8).

use std::any::Any;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::cell::{CellOp, CellReply, Versioned};
use crate::claim::{Claim, ClaimId, LockKind, Owner, Token};
use crate::error::Result;
use crate::name::Name;

/// The answer of a store, on its way.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// A place where lines and cells live. The in-memory store is this trait's specification made runnable.
pub trait Store: Any + Debug + Send + Sync {
    /// What this store promises; no I/O.
    fn profile(&self) -> &Profile;

    /// Puts a claim in line, or asks again where it stands. Idempotent by claim id; one round trip when free.
    ///
    /// The same id again is a question and a heartbeat. With a smaller weight it is a downgrade that keeps its
    /// token, with another note a proclamation; with a larger weight it is a mismatch.
    fn enter<'a>(&'a self, lock: &'a Name, claim: &'a Claim) -> Reply<'a, Standing>;

    /// Waits until asking again is worth it, at most so long. A hint: it may return early with `None`, or with the
    /// standing itself where the wake-up carried it. Subscribes first, then looks, then waits (C7).
    fn wait<'a>(&'a self, lock: &'a Name, waiter: Waiter<'a>, at_most: Duration) -> Reply<'a, Option<Standing>>;

    /// Prolongs held claims, each to at least its own duration from now. Never creates, never shortens; answers
    /// in the order asked. Only the watchdog asks, from a thread and a runtime of its own: a connection that is driven by
    /// the runtime it was made in is made here for this alone, so that a blocked program keeps its holds (C3).
    fn renew<'a>(&'a self, held: &'a [Held]) -> Reply<'a, Vec<Renewal>>;

    /// Takes a claim out, held or waiting; if it was held, the name stays taken as `keep` says. Absent is an answer.
    fn leave<'a>(&'a self, lock: &'a Name, id: ClaimId, keep: Keep) -> Reply<'a, Left>;

    /// The lines, for people, by name in byte order. Changes nothing.
    fn inspect<'a>(&'a self, page: Page<'a>) -> Reply<'a, Vec<LockView>>;

    /// Reads a cell.
    fn read<'a>(&'a self, cell: &'a Name) -> Reply<'a, Option<Versioned>>;

    /// Applies one known operation to a cell, atomically.
    fn update<'a>(&'a self, cell: &'a Name, op: &'a CellOp) -> Reply<'a, CellReply>;

    /// Lets go of connections and threads. Later calls answer `Closed`.
    fn close<'a>(&'a self) -> Reply<'a, ()>;
}

/// A store, shared.
pub type SharedStore = Arc<dyn Store>;

/// Where a claim stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is in.
    Held {
        /// The fencing token, where the store has tokens.
        token: Option<Token>,
        /// What is left of the claim's time at the store, lock-delay included.
        lease: Duration,
    },
    /// It stands in line.
    Waiting {
        /// How many claims are ahead.
        ahead: u32,
        /// The one rival whose leaving is the only news, if there is one and the store waits by watching it.
        behind: Option<u64>,
        /// When the line may move by itself because a claim ahead runs out, if the store knows.
        moves_in: Option<Duration>,
    },
    /// It is not in, and nothing was left behind ([`Patience::Now`](crate::Patience::Now)).
    Refused {
        /// When asking again may be worth it, if the store knows.
        retry_after: Option<Duration>,
    },
}

/// Who waits in [`Store::wait`].
#[derive(Debug, Clone, Copy)]
pub enum Waiter<'a> {
    /// A claim in line.
    Claim {
        /// Its id.
        id: ClaimId,
        /// Where it was told it stands.
        seen: &'a Standing,
    },
    /// An observer, who wants any change of the line.
    Observer {
        /// The [fingerprint](LockView::fingerprint) of the line as last seen; zero for an empty line.
        seen: u64,
    },
}

/// One hold to be renewed.
#[derive(Debug, Clone)]
pub struct Held {
    /// The lock.
    pub lock: Name,
    /// The claim.
    pub id: ClaimId,
    /// How long from now it shall stand at least, lock-delay included.
    pub lease: Duration,
}

/// What became of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// It stands for this long from now, lock-delay included.
    Renewed {
        /// What is left at the store.
        lease: Duration,
    },
    /// The claim is not in: the hold is lost. (A call that failed is *unknown*, not gone.)
    Gone,
}

/// For how long a name stays taken when its holder leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Not at all.
    Nothing,
    /// For so long from now: what `at_least` needs.
    For(Duration),
    /// For what is left of the lease as it stands at the store at that moment: how a hold is broken safely. Nobody is
    /// in before the holder's own deadline, and its next renewal finds it gone.
    Lease,
}

impl From<Duration> for Keep {
    fn from(keep: Duration) -> Self {
        if keep.is_zero() { Self::Nothing } else { Self::For(keep) }
    }
}

/// What became of a claim that left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It was there and is out now.
    Released,
    /// It was not there.
    NotHeld,
    /// It is out now, but an earlier attempt went unanswered, so whether it was there until then is not known.
    Unknown,
}

/// Which lines to look at.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// Only this one.
    pub only: Option<&'a Name>,
    /// Only names after this one.
    pub after: Option<&'a Name>,
    /// At most so many lines.
    pub limit: usize,
}

impl<'a> Page<'a> {
    /// Just one lock.
    pub fn of(name: &'a Name) -> Self {
        Self { only: Some(name), after: None, limit: 1 }
    }

    /// The first `limit` locks.
    pub fn first(limit: usize) -> Self {
        Self { only: None, after: None, limit }
    }
}

/// A line as people see it; only lines with at least one claim are shown.
#[derive(Debug, Clone)]
pub struct LockView {
    /// The name of the lock.
    pub name: Name,
    /// Its kind.
    pub kind: LockKind,
    /// Its capacity.
    pub capacity: u32,
    /// The claims in order: holders first.
    pub claims: Vec<ClaimView>,
}

impl LockView {
    /// A number that changes when the line does: who stands where, who is in, and what they proclaim.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        for claim in &self.claims {
            (claim.id, claim.state, claim.weight, &claim.note).hash(&mut hash);
        }
        // Zero is kept for the empty line.
        hash.finish().max(1)
    }

    /// The claims that are in.
    pub fn holders(&self) -> impl Iterator<Item = &ClaimView> {
        self.claims.iter().filter(|claim| claim.state == ClaimState::Holding)
    }
}

/// A claim as people see it.
#[derive(Debug, Clone)]
pub struct ClaimView {
    /// Its id.
    pub id: ClaimId,
    /// Who made it.
    pub owner: Owner,
    /// How much of the capacity it takes.
    pub weight: u32,
    /// Is it in?
    pub state: ClaimState,
    /// Its token, where the store has tokens and knows it.
    pub token: Option<Token>,
    /// How long ago it came into the line, if the store knows.
    pub age: Option<Duration>,
    /// How long it has held, if it has and the store knows.
    pub held_for: Option<Duration>,
    /// How long it stands if it is not renewed.
    pub lease_left: Duration,
    /// Its note.
    pub note: Vec<u8>,
}

/// What a claim in a line is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimState {
    /// It is in.
    Holding,
    /// It waits.
    Waiting,
    /// Its holder has left or was broken; the name stays taken until it runs out.
    Leaving,
}

impl ClaimState {
    /// The state as a lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holding => "holding",
            Self::Waiting => "waiting",
            Self::Leaving => "leaving",
        }
    }
}

/// What a store promises. Laws are gated by it, and what is not promised is refused when it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// How its URLs begin.
    pub scheme: &'static str,
    /// Is the line served in order?
    pub order: Order,
    /// Which kinds can share?
    pub sharing: Sharing,
    /// What its tokens are worth.
    pub tokens: Tokens,
    /// What ends a claim whose client is gone.
    pub expiry: Expiry,
    /// How much sooner than told it may end a lease (memcached counts in seconds).
    pub early: Duration,
    /// How much later than told it may end one (etcd, ZooKeeper look only so often).
    pub late: Duration,
    /// Does it tell waiters?
    pub wake: Wake,
    /// What it takes to lose acknowledged locks.
    pub survives: Survives,
    /// Has it a clock that limiters can use?
    pub time: StoreTime,
    /// The shortest lease it accepts.
    pub lease_min: Duration,
    /// The longest lease it accepts.
    pub lease_max: Duration,
}

/// In which order a line is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// First come, first served.
    Fifo,
    /// A newcomer may get ahead.
    Barging,
}

/// Which claims can be in together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// None: mutexes only.
    ExclusiveOnly,
    /// Readers with readers, but not counted permits.
    Pairwise,
    /// Counted permits.
    Permits,
}

/// What tokens are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens {
    /// Rising for as long as the store keeps its data.
    Monotone,
    /// Rising also across a loss of data, by the store's clock.
    Floored,
    /// There are none.
    None,
}

/// What ends a claim whose client is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// The store's own clock.
    StoreClock,
    /// The end of a session.
    Session,
    /// Others, who have seen it unchanged for its whole lease.
    Observed,
}

/// How waiters hear of news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// They are told.
    Push,
    /// They ask.
    Poll,
}

/// What acknowledged locks survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survives {
    /// The loss of a minority of nodes.
    Quorum,
    /// The loss of the primary, with what was replicated.
    Replicated,
    /// A restart of the one node.
    PrimaryOnly,
    /// Nothing.
    Nothing,
}

/// Whether the store has a clock of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreTime {
    /// It has.
    Store,
    /// It has none.
    None,
}
