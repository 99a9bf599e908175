//! The one loop behind every `lock()`: enter, wait, ask again, give up.
//!
//! Surprise: there is nothing to cancel. Whatever the future was doing when it was dropped, a [`Pending`] takes the
//! claim out in the background (C6), and what it cannot reach ends with the claim's own lease.

use std::sync::Arc;
use std::time::Duration;

use tracing::Instrument;
use tracing::field::Empty;

use crate::claim::{Claim, ClaimId};
use crate::error::{Effect, Error, ErrorKind, Result};
use crate::hold::{Hold, HoldState, deadline};
use crate::keeper::Shared;
use crate::local::{Came, Place, Turn};
use crate::meters::Taking;
use crate::mutants::{self, Mutant};
use crate::name::Name;
use crate::store::{Keep, Order, Standing, Waiter};
use crate::time::Moment;
use crate::watchdog::Departure;

/// How long to wait for a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    No,
    For(Duration),
    Forever,
}

/// What a kind asks of the loop.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) name: Name,
    pub(crate) claim: Claim,
    pub(crate) wait: Wait,
    /// Try again and again instead of standing in line.
    pub(crate) spin: bool,
    /// Shall the watchdog renew the hold?
    pub(crate) renews: bool,
    /// The name stays taken for at least so long.
    pub(crate) at_least: Duration,
    /// May its owner come in again?
    pub(crate) reentrant: bool,
    /// May it wait among the tasks of this process?
    pub(crate) local: bool,
}

/// Takes the lock; `None` if it is not free and the request does not wait. Says in logs and metrics how that went.
pub(crate) async fn acquire(shared: &Arc<Shared>, request: Request) -> Result<Option<Hold>> {
    let (kind, started) = (request.claim.kind, shared.clock.now());
    let span = tracing::debug_span!(
        target: "lockkeeper", "lockkeeper.acquire",
        name = %request.name, %kind, outcome = Empty, waited_ms = Empty
    );
    let outcome = match span.is_disabled() {
        true => take(shared, request, started).await,
        false => Box::pin(take(shared, request, started).instrument(span.clone())).await,
    };
    let ended = match &outcome {
        Ok(Some(hold)) => hold.taken(),
        _ => shared.clock.now(),
    };
    let (word, waited) = (Taking::of(&outcome), ended.since(started));
    shared.watchdog.meters().took(kind, word, waited);
    span.record("outcome", word.word()).record("waited_ms", waited.as_millis() as u64);
    outcome
}

async fn take(shared: &Arc<Shared>, mut request: Request, started: Moment) -> Result<Option<Hold>> {
    check(shared, &request)?;
    shared.watchdog.ensure_started()?;
    let give_up = match request.wait {
        Wait::No => started,
        Wait::For(wait) => started + wait,
        Wait::Forever => Moment::NEVER,
    };
    let turn = match own_line(shared, &request, give_up).await? {
        Locally::Held(hold) => return Ok(Some(hold)),
        Locally::TimedOut => return Err(not_free(&request.name, shared.clock.now().since(started))),
        Locally::Stand(turn) => turn,
    };
    let mut attempt = Attempt {
        shared,
        give_up,
        turn,
        pending: Pending::new(shared, &request),
        backoff: Backoff::default(),
        erred: false,
    };
    loop {
        match attempt.step(&request).await? {
            Step::Held(hold) => return Ok(Some(hold)),
            Step::Refused => return Ok(None),
            Step::Again if mutants::on(Mutant::NewClaimOnRetry) => {
                attempt.pending.may_stand = false;
                request.claim.id = ClaimId::random()?;
                attempt.pending = Pending::new(shared, &request);
            }
            Step::Again => {}
            Step::Late => {
                // A grant that came after its own deadline is not a hold: it is left, and another claim asks (C2).
                request.claim.id = ClaimId::random()?;
                attempt.pending = Pending::new(shared, &request);
            }
        }
        if shared.clock.now() >= attempt.give_up {
            return attempt.give_up(&request, started).await;
        }
    }
}

/// What came of waiting among the tasks of this process.
enum Locally {
    Held(Hold),
    TimedOut,
    /// Ask the store: for all of us, or for itself alone.
    Stand(Option<Turn>),
}

async fn own_line(shared: &Arc<Shared>, request: &Request, give_up: Moment) -> Result<Locally> {
    loop {
        let ticket = match shared.local.join(shared, request) {
            Place::Alone => return Ok(Locally::Stand(None)),
            Place::Turn(turn) => return Ok(Locally::Stand(Some(turn))),
            Place::Ticket(ticket) => ticket,
        };
        let at_most = (give_up != Moment::NEVER).then(|| shared.clock.now().until(give_up));
        match ticket.wait(at_most).await {
            Some(Came::Hold(hold)) if hold.is_held() => return Ok(Locally::Held(hold)),
            // Handed on in its last moment; dropping it takes it out, and this one joins again.
            Some(Came::Hold(_)) => {}
            Some(Came::Turn(turn)) => {
                shared.watchdog.ensure_started()?;
                return Ok(Locally::Stand(Some(turn)));
            }
            None => return Ok(Locally::TimedOut),
        }
    }
}

fn check(shared: &Shared, request: &Request) -> Result<()> {
    let profile = shared.store.profile();
    request.claim.check(profile.lease_min, profile.lease_max)?;
    if request.claim.fair && profile.order != Order::Fifo {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "the store `{}` does not serve its lines in order, so a fair lock cannot be made on it",
                profile.scheme
            ),
        )
        .with_hint("leave out `fair`, or use a store that keeps the order"));
    }
    Ok(())
}

/// What one question came to.
enum Step {
    Held(Hold),
    Refused,
    Late,
    Again,
}

/// One acquire under way.
struct Attempt<'a> {
    shared: &'a Arc<Shared>,
    give_up: Moment,
    /// Held by the one task that stands in the store for others of this process too.
    turn: Option<Turn>,
    pending: Pending,
    backoff: Backoff,
    /// Has a question gone wrong?
    erred: bool,
}

impl Attempt<'_> {
    async fn step(&mut self, request: &Request) -> Result<Step> {
        // Noted before the question is sent: the deadline counts from here (C2).
        let sent = self.shared.clock.now();
        let may_have_stood = std::mem::replace(&mut self.pending.may_stand, true);
        let answer = self.shared.store.enter(&request.name, &request.claim).await;
        let sent = if mutants::on(Mutant::DeadlineAfterReply) { self.shared.clock.now() } else { sent };
        match answer {
            Ok(Standing::Held { token, lease }) => self.held(request, sent, token, lease),
            Ok(seen @ Standing::Waiting { .. }) => {
                self.backoff = Backoff::default();
                self.wait(request, sent, &seen).await
            }
            Ok(Standing::Refused { retry_after }) => {
                self.pending.may_stand = may_have_stood;
                if request.wait == Wait::No {
                    return Ok(Step::Refused);
                }
                self.pause(if request.spin { None } else { retry_after }).await;
                Ok(Step::Again)
            }
            Err(error) => {
                self.erred = true;
                self.pending.may_stand = may_have_stood || error.effect() == Effect::Unknown;
                // Unknown is not no: the same claim asks again for as long as there is time (C1, C12).
                let out_of_time = self.shared.clock.now() >= self.give_up;
                if !error.is_transient() || out_of_time {
                    return Err(error);
                }
                self.pause(None).await;
                Ok(Step::Again)
            }
        }
    }

    fn held(&mut self, request: &Request, sent: Moment, token: Option<crate::Token>, lease: Duration) -> Result<Step> {
        let claim = &request.claim;
        let ends = deadline(sent, lease, claim.delay, self.shared.store.profile().early);
        let now = self.shared.clock.now();
        if now >= ends {
            if request.wait == Wait::No {
                return Err(Error::unanswered(format!(
                    "the store answered for `{}` after the lease had ended",
                    request.name
                ))
                .with_hint("use a longer lease, or see why the store is slow"));
            }
            return Ok(Step::Late);
        }
        let state = Arc::new(HoldState::new(request.name.clone(), claim, token, ends));
        if !self.shared.watchdog.watch(&state, sent, request.renews) {
            return Err(Error::new(ErrorKind::Closed, "the keeper has been closed"));
        }
        self.pending.may_stand = false;
        if let Some(turn) = self.turn.take() {
            turn.holds(&state, now);
        }
        if request.reentrant {
            self.shared.reentry.remember(&state);
        }
        if mutants::on(Mutant::RetryIsReentry) && self.erred {
            self.shared.reentry.remember(&state);
            state.handles().fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        Ok(Step::Held(Hold::new(state, self.shared.clone(), now, request.at_least)))
    }

    /// Waits until asking again is worth it: for news, for the next heartbeat, or until a claim ahead runs out (C7).
    async fn wait(&mut self, request: &Request, asked: Moment, seen: &Standing) -> Result<Step> {
        let mut at_most = request.claim.ask_every().mul_f64(0.8 + fastrand::f64() / 5.0);
        if let Standing::Waiting { moves_in: Some(moves_in), .. } = seen {
            at_most = at_most.min(*moves_in + Duration::from_millis(1));
        }
        let left = self.shared.clock.now().until(self.give_up);
        at_most = if mutants::on(Mutant::NewsOnly) { left } else { at_most.min(left) };
        let waiter = Waiter::Claim { id: request.claim.id, seen };
        match self.shared.store.wait(&request.name, waiter, at_most).await {
            Ok(Some(Standing::Held { token, lease })) if self.suffices(request, asked, lease) => {
                self.held(request, asked, token, lease)
            }
            Ok(_) => Ok(Step::Again),
            Err(error) if error.is_transient() => {
                self.pause(None).await;
                Ok(Step::Again)
            }
            Err(error) => Err(error),
        }
    }

    /// Is a hold that came with the wake-up enough, without another question? Then it has what was left of the waiting
    /// lease and is renewed at once; where nothing renews it, or a delay is to be added to it, the store is asked.
    ///
    /// The last question was answered `Waiting`, so it was sent before the grant was made: counting from it can only
    /// be too early.
    fn suffices(&self, request: &Request, asked: Moment, lease: Duration) -> bool {
        let ends = deadline(asked, lease, Duration::ZERO, self.shared.store.profile().early);
        request.renews && request.claim.delay.is_zero() && ends > self.shared.clock.now() + lease / 4
    }

    /// A pause before the next question, never beyond the end of the wait.
    async fn pause(&mut self, retry_after: Option<Duration>) {
        let pause = self.backoff.next().max(retry_after.unwrap_or_default().min(Duration::from_secs(1)));
        tokio::time::sleep(pause.min(self.shared.clock.now().until(self.give_up))).await;
    }

    /// The wait is over: leave the line, then say so.
    async fn give_up(mut self, request: &Request, started: Moment) -> Result<Option<Hold>> {
        if self.pending.may_stand
            && self.shared.store.leave(&request.name, request.claim.id, Keep::Nothing).await.is_ok()
        {
            self.pending.may_stand = false;
        }
        Err(not_free(&request.name, self.shared.clock.now().since(started)))
    }
}

fn not_free(name: &Name, waited: Duration) -> Error {
    Error::new(ErrorKind::Timeout, format!("`{name}` was not free within {waited:.1?}"))
        .with_hint("see who holds it with `inspect`, or wait longer")
}

/// Growing, jittered pauses from 1 ms to 128 ms.
#[derive(Default)]
struct Backoff {
    tries: u32,
}

impl Backoff {
    fn next(&mut self) -> Duration {
        let pause = Duration::from_millis(1 << self.tries.min(7));
        self.tries += 1;
        pause.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

/// A claim that may stand at the store without being a hold yet. Dropped so, it is taken out in the background.
struct Pending {
    shared: Arc<Shared>,
    name: Name,
    id: ClaimId,
    lease: Duration,
    may_stand: bool,
}

impl Pending {
    fn new(shared: &Arc<Shared>, request: &Request) -> Self {
        let claim = &request.claim;
        let (name, lease) = (request.name.clone(), claim.store_lease());
        Self { shared: shared.clone(), name, id: claim.id, lease, may_stand: false }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.may_stand {
            let until = self.shared.clock.now() + self.lease;
            let (name, id) = (self.name.clone(), self.id);
            self.shared.watchdog.depart(Departure { name, id, keep: Keep::Nothing, until });
        }
    }
}
