//! What a hold and the watchdog share: the deadline, the phase, and the reason if it is lost.
//!
//! Surprise: the phase only ever moves on from held, once. A hold that is leaving cannot become lost, and one that is
//! lost cannot be held again.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::claim::{Claim, Token};
use crate::error::{Error, ErrorKind, Result};
use crate::meters::{Losing, Meters};
use crate::mutants::{self, Mutant};
use crate::name::Name;
use crate::time::Moment;

/// When a hold told `lease` by an answer to a question sent at `sent` ends for its holder (C2, C9).
///
/// Counted from *before* the request, so that no delay on the way can make it late; less one per cent and 2 ms for
/// clocks that run apart, less what the store may be early, less the lock-delay that is not the holder's to use.
pub(crate) fn deadline(sent: Moment, lease: Duration, delay: Duration, early: Duration) -> Moment {
    let usable = lease.saturating_sub(delay);
    sent + usable.saturating_sub(usable / 100 + Duration::from_millis(2) + early)
}

const HELD: u8 = 0;
const LEAVING: u8 = 1;
const RAN_OUT: u8 = 2;
const GONE: u8 = 3;
const CLOSED: u8 = 4;

/// What the hold and the watchdog share.
pub(crate) struct HoldState {
    pub(crate) name: Name,
    pub(crate) claim: Claim,
    pub(crate) token: Option<Token>,
    /// What the claim weighs now; a writer that became a reader weighs less than its claim did.
    pub(super) weight: AtomicU32,
    /// How many [`Hold`](super::Hold)s stand for it: more than one when its owner came in again.
    handles: AtomicU32,
    pub(crate) reentrant: AtomicBool,
    /// Can it be handed to another task of this process?
    pub(crate) local: AtomicBool,
    /// Nanoseconds on the keeper's clock; only ever moves forward.
    deadline: AtomicU64,
    phase: AtomicU8,
    lost: OnceLock<CancellationToken>,
    /// When to renew next (`NEVER`: not, or under way), and the key in the watchdog's schedule. Both are only
    /// changed under the schedule's lock.
    pub(crate) renew_at: AtomicU64,
    pub(crate) scheduled: AtomicU64,
    /// Where it is counted, from when it is watched.
    meters: OnceLock<Arc<Meters>>,
}

impl HoldState {
    pub(crate) fn new(name: Name, claim: &Claim, token: Option<Token>, deadline: Moment) -> Self {
        Self {
            name,
            weight: AtomicU32::new(claim.weight),
            claim: claim.clone(),
            token,
            handles: AtomicU32::new(1),
            reentrant: AtomicBool::new(false),
            local: AtomicBool::new(false),
            deadline: AtomicU64::new(deadline.as_nanos()),
            phase: AtomicU8::new(HELD),
            lost: OnceLock::new(),
            renew_at: AtomicU64::new(Moment::NEVER.as_nanos()),
            scheduled: AtomicU64::new(Moment::NEVER.as_nanos()),
            meters: OnceLock::new(),
        }
    }

    /// The token that the next holder in this process would get.
    pub(crate) fn next_token(&self) -> Option<Token> {
        if mutants::on(Mutant::HandOverSameToken) {
            return self.token;
        }
        self.token?.handed_on()
    }

    /// The same claim, held by the next task of this process.
    pub(crate) fn handed_on(&self, token: Token) -> Self {
        let next = Self::new(self.name.clone(), &self.claim, Some(token), self.deadline());
        next.local.store(true, Ordering::SeqCst);
        next.renew_at.store(self.renew_at.load(Ordering::Relaxed), Ordering::Relaxed);
        next
    }

    pub(crate) fn deadline(&self) -> Moment {
        Moment::from_nanos(self.deadline.load(Ordering::SeqCst))
    }

    /// A renewal was answered; a hold that is lost or leaving stays so.
    pub(crate) fn extend(&self, deadline: Moment) {
        self.deadline.fetch_max(deadline.as_nanos(), Ordering::SeqCst);
    }

    /// Plans the next renewal for when a third of the time granted at `sent` is over (C3).
    pub(crate) fn renew_after(&self, sent: Moment) {
        let third = sent.until(self.deadline()) / 3;
        self.renew_at.store((sent + third).as_nanos(), Ordering::Relaxed);
    }

    /// Is no renewal planned?
    pub(crate) fn has_no_renewal(&self) -> bool {
        self.renew_at.load(Ordering::Relaxed) == Moment::NEVER.as_nanos()
    }

    /// Is it held at `now`? Passing the deadline makes it lost, for good.
    pub(crate) fn is_held(&self, now: Moment) -> bool {
        if now >= self.deadline() && !mutants::on(Mutant::LostOnlyFromServer) {
            self.lose(RAN_OUT);
        }
        self.phase.load(Ordering::SeqCst) == HELD
    }

    /// The same without making it so: for places that must not wake anybody.
    pub(crate) fn has_ended(&self, now: Moment) -> bool {
        let phase = self.phase.load(Ordering::SeqCst);
        if mutants::on(Mutant::LostOnlyFromServer) {
            return phase != HELD;
        }
        if mutants::on(Mutant::WatchdogNotCancelled) && phase == LEAVING {
            return false;
        }
        now >= self.deadline() || phase != HELD
    }

    pub(crate) fn ran_out(&self) {
        self.lose(RAN_OUT);
    }

    pub(crate) fn gone(&self) {
        self.lose(GONE);
    }

    pub(crate) fn closed(&self) {
        self.lose(CLOSED);
    }

    /// From now on it counts as a hold, until it is lost or leaves.
    pub(crate) fn count_in(&self, meters: &Arc<Meters>) {
        if self.meters.set(meters.clone()).is_ok() {
            meters.begins();
        }
    }

    fn count_out(&self, lost: Option<Losing>) {
        let Some(meters) = self.meters.get() else { return };
        meters.ends();
        if let Some(why) = lost {
            meters.lost(why);
        }
    }

    fn lose(&self, why: u8) {
        if self.phase.compare_exchange(HELD, why, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            let (losing, token) = (losing(why), self.token.map(Token::as_u64));
            self.count_out(Some(losing));
            tracing::warn!(target: "lockkeeper", name = %self.name, token, reason = losing.word(), "a hold was lost");
            if let Some(lost) = self.lost.get() {
                lost.cancel();
            }
        }
    }

    /// From held to leaving: from here on nothing renews it and it cannot become lost (C5).
    pub(super) fn begin_to_leave(&self, now: Moment) -> Result<(), Lost> {
        self.is_held(now);
        match self.phase.compare_exchange(HELD, LEAVING, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {
                self.count_out(None);
                Ok(())
            }
            Err(why) => Err(self.lost(why)),
        }
    }

    /// Has it set out to leave?
    pub(super) fn is_leaving(&self) -> bool {
        self.phase.load(Ordering::SeqCst) == LEAVING
    }

    pub(crate) fn weight(&self) -> u32 {
        self.weight.load(Ordering::SeqCst)
    }

    /// The count of [`Hold`](super::Hold)s that stand for it; changed by [`Reentry`](crate::reentry::Reentry) alone.
    pub(crate) fn handles(&self) -> &AtomicU32 {
        &self.handles
    }

    fn lost(&self, why: u8) -> Lost {
        Lost { name: self.name.clone(), token: self.token, reason: reason(why) }
    }

    /// Set out to leave, and found that the store no longer has it.
    pub(super) fn found_gone(&self) -> Lost {
        self.lost(GONE)
    }

    /// Why it is lost, for one that is known not to be held.
    pub(super) fn lost_reason(&self) -> Lost {
        self.why_lost().unwrap_or_else(|| self.lost(RAN_OUT))
    }

    pub(super) fn why_lost(&self) -> Option<Lost> {
        match self.phase.load(Ordering::SeqCst) {
            HELD | LEAVING => None,
            why => Some(self.lost(why)),
        }
    }

    pub(super) fn lost_token(&self) -> &CancellationToken {
        let token = self.lost.get_or_init(CancellationToken::new);
        // Lost between the look and the making: whoever lost it saw no token to cancel.
        if self.why_lost().is_some() {
            token.cancel();
        }
        token
    }
}

fn losing(why: u8) -> Losing {
    match why {
        GONE => Losing::Gone,
        CLOSED => Losing::Closed,
        _ => Losing::RanOut,
    }
}

fn reason(why: u8) -> &'static str {
    match why {
        GONE => "the store no longer has it (it ran out there, or was broken)",
        CLOSED => "its keeper was closed",
        _ => "its time ran out before it could be renewed",
    }
}

/// Why a hold is gone; an error, ready to be returned.
#[derive(Debug, Clone)]
pub struct Lost {
    name: Name,
    token: Option<Token>,
    reason: &'static str,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the hold on `{}` was lost: {}", self.name, self.reason)
    }
}

impl std::error::Error for Lost {}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        let hint = match lost.token {
            Some(_) => {
                "stop the work; another may hold the lock now. A fence checked with the token keeps late writes out"
            }
            None => "stop the work; another may hold the lock now",
        };
        Self::new(ErrorKind::Lost, lost.to_string()).with_hint(hint)
    }
}
