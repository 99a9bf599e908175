//! What `lock()` returns: a hold, with its deadline and its `lost` signal.
//!
//! Surprise: a hold believes no one but its own clock. It is lost at its deadline even if no answer ever comes, and
//! every call of it looks at the clock first, so a process that was stopped finds out before anything succeeds (C4).

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::claim::{Claim, ClaimId, Token};
use crate::error::{Effect, Error, ErrorKind, Result};
use crate::keeper::Shared;
use crate::name::Name;
use crate::store::{Keep, Left};
use crate::time::{Clock, Moment};
use crate::watchdog::Departure;

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
    pub(crate) id: ClaimId,
    pub(crate) token: Option<Token>,
    pub(crate) lease: Duration,
    pub(crate) delay: Duration,
    /// Nanoseconds on the keeper's clock; only ever moves forward.
    deadline: AtomicU64,
    phase: AtomicU8,
    lost: OnceLock<CancellationToken>,
    /// When to renew next (`NEVER`: not, or under way), and the key in the watchdog's schedule. Both are only
    /// changed under the schedule's lock.
    pub(crate) renew_at: AtomicU64,
    pub(crate) scheduled: AtomicU64,
}

impl HoldState {
    pub(crate) fn new(name: Name, claim: &Claim, token: Option<Token>, deadline: Moment) -> Self {
        Self {
            name,
            id: claim.id,
            token,
            lease: claim.lease,
            delay: claim.delay,
            deadline: AtomicU64::new(deadline.as_nanos()),
            phase: AtomicU8::new(HELD),
            lost: OnceLock::new(),
            renew_at: AtomicU64::new(Moment::NEVER.as_nanos()),
            scheduled: AtomicU64::new(Moment::NEVER.as_nanos()),
        }
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

    /// Is it held at `now`? Passing the deadline makes it lost, for good.
    pub(crate) fn is_held(&self, now: Moment) -> bool {
        if now >= self.deadline() {
            self.lose(RAN_OUT);
        }
        self.phase.load(Ordering::SeqCst) == HELD
    }

    /// The same without making it so: for places that must not wake anybody.
    pub(crate) fn has_ended(&self, now: Moment) -> bool {
        now >= self.deadline() || self.phase.load(Ordering::SeqCst) != HELD
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

    fn lose(&self, why: u8) {
        if self.phase.compare_exchange(HELD, why, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            tracing::warn!(name = %self.name, token = ?self.token.map(Token::as_u64), why = reason(why), "a hold was lost");
            if let Some(lost) = self.lost.get() {
                lost.cancel();
            }
        }
    }

    /// From held to leaving: from here on nothing renews it and it cannot become lost (C5).
    fn begin_to_leave(&self, now: Moment) -> Result<(), Lost> {
        self.is_held(now);
        match self.phase.compare_exchange(HELD, LEAVING, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Ok(()),
            Err(why) => Err(self.lost(why)),
        }
    }

    fn lost(&self, why: u8) -> Lost {
        Lost { name: self.name.clone(), token: self.token, reason: reason(why) }
    }

    fn why_lost(&self) -> Option<Lost> {
        match self.phase.load(Ordering::SeqCst) {
            HELD | LEAVING => None,
            why => Some(self.lost(why)),
        }
    }

    fn lost_token(&self) -> &CancellationToken {
        let token = self.lost.get_or_init(CancellationToken::new);
        // Lost between the look and the making: whoever lost it saw no token to cancel.
        if self.why_lost().is_some() {
            token.cancel();
        }
        token
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

/// A lock that is held, until it is released, dropped or lost.
///
/// Dropping it releases it in the background; [`release`](Self::release) does so now and says how that went.
#[must_use = "dropping a hold releases the lock"]
pub struct Hold {
    state: Arc<HoldState>,
    shared: Arc<Shared>,
    taken: Moment,
    at_least: Duration,
}

impl Hold {
    pub(crate) fn new(state: Arc<HoldState>, shared: Arc<Shared>, taken: Moment, at_least: Duration) -> Self {
        Self { state, shared, taken, at_least }
    }

    /// The name of the lock.
    pub fn name(&self) -> &Name {
        &self.state.name
    }

    /// The fencing token, to be sent to the resource with every access; `None` where the store has none.
    pub fn token(&self) -> Option<Token> {
        self.is_held();
        self.state.token
    }

    /// The claim behind the hold, as `show` lists it.
    pub fn claim_id(&self) -> ClaimId {
        self.state.id
    }

    /// Is the lock still ours, by our own clock? Once it has said no it never says yes again.
    ///
    /// True when it is said; a process that may be stopped right after needs a fence as well.
    pub fn is_held(&self) -> bool {
        self.state.is_held(self.now())
    }

    /// Until when the lock is ours if nothing renews it, on the keeper's clock.
    pub fn deadline(&self) -> Moment {
        self.state.deadline()
    }

    /// Waits until a renewal has moved the deadline past `seen`, and says where it is now.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it.
    pub fn deadline_after(&self, seen: Moment) -> impl Future<Output = Moment> + Send + use<> {
        let (state, shared) = (self.state.clone(), self.shared.clone());
        async move {
            loop {
                let mut renewed = pin!(shared.watchdog.renewed());
                renewed.as_mut().enable();
                if state.deadline() > seen {
                    return state.deadline();
                }
                renewed.await;
            }
        }
    }

    /// Completes when the hold is lost: before anyone else can hold, while this process runs, and after a stop
    /// before any call of the hold succeeds. A hold that was released is never lost.
    ///
    /// # Cancel safety
    /// It can be dropped and asked for again at any time.
    pub fn lost(&self) -> impl Future<Output = Lost> + Send + use<> {
        lost(self.state.clone(), self.shared.clock.clone())
    }

    /// The same signal as a token that is cancelled, for code that takes one.
    pub fn lost_token(&self) -> CancellationToken {
        self.is_held();
        self.state.lost_token().clone()
    }

    /// Runs a future for as long as the lock is held: if it is lost first, the future is dropped.
    ///
    /// ```
    /// # use lockkeeper_core::{Keeper, stores::Memory};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let keeper = Keeper::with_store(Memory::shared());
    /// let hold = keeper.mutex("report").lock().await?;
    /// let total = hold.run(async { 40 + 2 }).await?;
    /// assert_eq!(total, 42);
    /// hold.release().await
    /// # }).unwrap();
    /// ```
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        let (mut lost, mut work) = (pin!(self.lost()), pin!(work));
        poll_fn(|task| {
            // The signal first: after a stop, no step of the work is taken before it is looked at.
            if let Poll::Ready(lost) = lost.as_mut().poll(task) {
                return Poll::Ready(Err(lost));
            }
            work.as_mut().poll(task).map(Ok)
        })
        .await
    }

    /// Releases the lock, and says whether it was ours until now.
    ///
    /// # Cancel safety
    /// Dropping the future releases in the background, as dropping the hold does.
    ///
    /// # Errors
    /// `Lost` if it was no longer ours. An error whose [effect](Error::effect) is `Unknown` if the store did not
    /// answer: the release is then repeated in the background until the hold would have ended by itself.
    ///
    /// # Round trips
    /// One.
    pub async fn release(self) -> Result<()> {
        if let Err(lost) = self.state.begin_to_leave(self.now()) {
            // Dropping `self` tidies up at the store, where something may still stand.
            return Err(lost.into());
        }
        self.shared.watchdog.forget(&self.state);
        let mut unfinished = Unfinished { hold: &self, done: false };
        let left = self.shared.store.leave(&self.state.name, self.state.id, self.keep()).await;
        match left {
            Ok(Left::Released) => {
                unfinished.done = true;
                Ok(())
            }
            Ok(Left::NotHeld) => {
                unfinished.done = true;
                Err(self.state.lost(GONE).into())
            }
            // An earlier attempt went unanswered. Within the deadline only that attempt can have taken it out.
            Ok(Left::Unknown) => {
                unfinished.done = true;
                if self.now() < self.state.deadline() {
                    return Ok(());
                }
                Err(unconfirmed(&self.state.name))
            }
            Err(error) => Err(unconfirmed(&self.state.name).with_source(error)),
        }
    }

    fn keep(&self) -> Keep {
        self.now().until(self.taken + self.at_least).into()
    }

    fn now(&self) -> Moment {
        self.shared.clock.now()
    }

    fn depart(&self) {
        let until = self.state.deadline().max(self.now() + Duration::from_secs(1));
        let (name, id, keep) = (self.state.name.clone(), self.state.id, self.keep());
        self.shared.watchdog.depart(Departure { name, id, keep, until });
    }
}

fn unconfirmed(name: &Name) -> Error {
    Error::new(ErrorKind::Unavailable, format!("the release of `{name}` was not confirmed by the store"))
        .with_effect(Effect::Unknown)
        .with_hint("it is repeated in the background, and the lock frees itself when its lease ends")
}

/// A release that is under way; dropped unfinished, it goes on in the background.
struct Unfinished<'a> {
    hold: &'a Hold,
    done: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.hold.depart();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        match self.state.begin_to_leave(self.now()) {
            Ok(()) => {
                self.shared.watchdog.forget(&self.state);
                self.depart();
            }
            // Lost: what may still stand at the store is taken out; comparing the claim id, this can hurt no one.
            Err(_) if self.state.phase.load(Ordering::SeqCst) != LEAVING => {
                self.shared.watchdog.forget(&self.state);
                self.depart();
            }
            Err(_) => {}
        }
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hold")
            .field("name", &self.state.name)
            .field("token", &self.state.token)
            .field("held", &self.is_held())
            .finish()
    }
}

/// Looks at the clock on every poll, and is woken by the watchdog.
async fn lost(state: Arc<HoldState>, clock: Clock) -> Lost {
    let cancelled = state.lost_token().clone().cancelled_owned();
    let mut cancelled = pin!(cancelled);
    poll_fn(|task| {
        state.is_held(clock.now());
        match state.why_lost() {
            Some(why) => Poll::Ready(why),
            None => cancelled.as_mut().poll(task).map(|()| state.lost(RAN_OUT)),
        }
    })
    .await
}
