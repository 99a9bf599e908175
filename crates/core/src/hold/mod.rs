//! What `lock()` returns: a hold, with its deadline and its `lost` signal.
//!
//! Surprise: a hold believes no one but its own clock. It is lost at its deadline even if no answer ever comes, and
//! every call of it looks at the clock first, so a process that was stopped finds out before anything succeeds (C4).

mod state;

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

pub use state::Lost;
pub(crate) use state::{HoldState, deadline};

use crate::claim::{Claim, ClaimId, LockKind, Patience, Token};
use crate::error::{Effect, Error, ErrorKind, Result};
use crate::keeper::Shared;
use crate::local::Passed;
use crate::meters::Releasing;
use crate::mutants::{self, Mutant};
use crate::name::Name;
use crate::store::{Keep, Left, Page, Standing};
use crate::time::{Clock, Moment};
use crate::watchdog::Departure;

/// A lock that is held, until it is released, dropped or lost.
///
/// Dropping it releases it in the background; [`release`](Self::release) does so now and says how that went.
#[must_use = "dropping a hold releases the lock"]
pub struct Hold {
    state: Arc<HoldState>,
    shared: Arc<Shared>,
    taken: Moment,
    at_least: Duration,
    part: Part,
}

/// A hold's part in its claim, which several share when their owner came in again.
enum Part {
    /// It is one of those that stand for the claim.
    In,
    /// It was the last one, and takes the claim out.
    Last,
    /// It is out; others stand for the claim.
    Out,
}

impl Hold {
    pub(crate) fn new(state: Arc<HoldState>, shared: Arc<Shared>, taken: Moment, at_least: Duration) -> Self {
        Self { state, shared, taken, at_least, part: Part::In }
    }

    /// When it was taken.
    pub(crate) fn taken(&self) -> Moment {
        self.taken
    }

    /// The name of the lock.
    pub fn name(&self) -> &Name {
        &self.state.name
    }

    /// Is it shared with others of its kind, as a reader's is?
    pub(crate) fn is_shared(&self) -> bool {
        self.state.weight() < self.state.claim.capacity
    }

    /// Is it a permit, of which several are in without an order?
    pub(crate) fn is_permit(&self) -> bool {
        self.state.claim.kind == LockKind::Semaphore && self.state.claim.capacity > 1
    }

    /// The fencing token, to be sent to the resource with every access; `None` where the store has none.
    pub fn token(&self) -> Option<Token> {
        self.is_held();
        self.state.token
    }

    /// The claim behind the hold, as `show` lists it.
    pub fn claim_id(&self) -> ClaimId {
        self.state.claim.id
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
    pub async fn release(mut self) -> Result<()> {
        if !self.shared.reentry.part(&self.state) {
            // The owner came in more than once, and the last one out releases.
            self.part = Part::Out;
            return if self.is_held() { Ok(()) } else { Err(self.state.lost_reason().into()) };
        }
        self.part = Part::Last;
        let now = self.now();
        if let Err(lost) = self.state.begin_to_leave(now) {
            self.count(Releasing::Lost);
            // Dropping `self` tidies up at the store, where something may still stand.
            return Err(lost.into());
        }
        if !mutants::on(Mutant::WatchdogNotCancelled) {
            self.shared.watchdog.forget(&self.state);
        }
        let mut unfinished = Unfinished { hold: &self, done: false };
        if self.pass_on(now).await {
            unfinished.done = true;
            self.count(Releasing::HandedOn);
            return Ok(());
        }
        let left = self.shared.store.leave(&self.state.name, self.state.claim.id, self.keep()).await;
        if mutants::on(Mutant::WatchdogNotCancelled) {
            unfinished.done = true;
            if left.is_ok() {
                self.shared.watchdog.forget(&self.state);
            }
            self.shared.local.give_up(&self.state);
        }
        match left {
            Ok(Left::Released) => {
                unfinished.done = true;
                self.count(Releasing::Released);
                Ok(())
            }
            Ok(Left::NotHeld) => {
                unfinished.done = true;
                self.count(Releasing::Lost);
                Err(self.state.found_gone().into())
            }
            // An earlier attempt went unanswered. Within the deadline only that attempt can have taken it out.
            Ok(Left::Unknown) => {
                unfinished.done = true;
                if self.now() < self.state.deadline() {
                    self.count(Releasing::Released);
                    return Ok(());
                }
                self.count(Releasing::Unconfirmed);
                Err(unconfirmed(&self.state.name))
            }
            Err(error) => Err(unconfirmed(&self.state.name).with_source(error)),
        }
    }

    /// Asks again with a smaller weight: a writer becomes a reader and keeps its token.
    pub(crate) async fn shrink(self, weight: u32) -> Result<Self> {
        self.ask(Claim { weight, ..self.state.claim.clone() }).await?;
        self.state.weight.store(weight, Ordering::SeqCst);
        Ok(self)
    }

    /// Asks again with another note: what a leader proclaims.
    pub(crate) async fn proclaim(&self, note: Vec<u8>) -> Result<()> {
        crate::limits::note(&note)?;
        self.ask(Claim { note, ..self.state.claim.clone() }).await
    }

    /// Changes the claim at the store, asking until there is an answer or the hold has ended.
    async fn ask(&self, claim: Claim) -> Result<()> {
        // What is not there any more is lost, not taken anew (C4).
        let claim = Claim { patience: Patience::Present, ..claim };
        loop {
            let sent = self.now();
            if !self.state.is_held(sent) {
                return Err(self.state.lost_reason().into());
            }
            match self.shared.store.enter(&self.state.name, &claim).await {
                Ok(Standing::Held { token, lease }) if token == self.state.token => {
                    let early = self.shared.store.profile().early;
                    self.state.extend(deadline(sent, lease, claim.delay, early));
                    return Ok(());
                }
                Ok(_) => {
                    self.state.gone();
                    return Err(self.state.lost_reason().into());
                }
                Err(error) if error.is_transient() => tokio::time::sleep(Duration::from_millis(5)).await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Hands the lock to the next task of this process, if there is one and no other process is kept waiting for it.
    async fn pass_on(&self, mut now: Moment) -> bool {
        loop {
            match self.shared.local.pass_on(&self.shared, &self.state, now) {
                Passed::On => return true,
                Passed::Nobody => return false,
                Passed::Ask => {}
            }
            // Not knowing is as if somebody waited.
            let line = self.shared.store.inspect(Page::of(&self.state.name)).await;
            if !line.is_ok_and(|line| line.iter().all(|line| line.claims.len() <= 1)) {
                self.shared.local.give_up(&self.state);
                return false;
            }
            now = self.now();
            self.shared.local.go_on(&self.state, now);
        }
    }

    fn count(&self, outcome: Releasing) {
        self.shared.watchdog.meters().released(outcome);
    }

    fn keep(&self) -> Keep {
        if self.at_least.is_zero() {
            return Keep::Nothing;
        }
        self.now().until(self.taken + self.at_least).into()
    }

    fn now(&self) -> Moment {
        self.shared.clock.now()
    }

    fn depart(&self) {
        self.shared.local.give_up(&self.state);
        let until = self.state.deadline().max(self.now() + Duration::from_secs(1));
        let (name, id, keep) = (self.state.name.clone(), self.state.claim.id, self.keep());
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
            self.hold.count(Releasing::Unconfirmed);
            self.hold.depart();
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        match self.part {
            Part::Out => return,
            Part::Last if self.state.is_leaving() => return,
            Part::In if !self.shared.reentry.part(&self.state) => return,
            Part::In | Part::Last => {}
        }
        match self.state.begin_to_leave(self.now()) {
            Ok(()) => {
                self.count(Releasing::Dropped);
                self.shared.watchdog.forget(&self.state);
                if !matches!(self.shared.local.pass_on(&self.shared, &self.state, self.now()), Passed::On) {
                    self.depart();
                }
            }
            // Lost: what may still stand at the store is taken out; comparing the claim id, this can hurt no one.
            Err(_) if self.state.why_lost().is_some() => {
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
            None => cancelled.as_mut().poll(task).map(|()| state.lost_reason()),
        }
    })
    .await
}
