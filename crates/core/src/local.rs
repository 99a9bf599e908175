//! The local line: tasks of one keeper that wait for the same mutex wait here, and one of them stands in the store.
//!
//! A release hands the hold to the next task without asking the store, with the next token. Surprise: this is bounded.
//! After 20 ms or 64 hand-overs the store is asked whether another process waits; if so the hold goes back there and
//! the next task here stands in line behind it. A keeper that must not hand holds on still has its tasks wait here: one
//! claim in the store is enough for all, and turns then go from process to process. Only plain mutexes take part: unfair, renewed, unnamed owners, the
//! same lease, delay and note. Owners that are named, and those who already hold other names of a multi-lock, stand in
//! the store, so that circles of them can be seen there.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::acquire::{Request, Wait};
use crate::claim::{Claim, LockKind};
use crate::hold::{Hold, HoldState};
use crate::keeper::Shared;
use crate::name::Name;
use crate::time::Moment;

/// How long, and how often, a hold is handed on before the store is asked whether others wait.
const WINDOW: Duration = Duration::from_millis(20);
const WINDOW_COUNT: u32 = 64;

/// The local lines of one keeper.
pub(crate) struct LocalLines {
    lines: Mutex<HashMap<Name, LocalLine>>,
    /// May a hold go from task to task without the store?
    hands_on: bool,
}

/// One name that a task of this process holds or stands for.
struct LocalLine {
    lease: Duration,
    delay: Duration,
    note: Vec<u8>,
    /// Who holds it; nobody while one of us stands in the store.
    holder: Option<Arc<HoldState>>,
    waiting: VecDeque<Waiting>,
    next_ticket: u64,
    /// The hand-overs since the store was last asked.
    window_began: Moment,
    window_count: u32,
}

struct Waiting {
    ticket: u64,
    call: oneshot::Sender<Called>,
}

/// What a waiting task is told.
enum Called {
    /// Go and stand in the store.
    Stand,
    /// The lock is yours.
    Hold(Arc<HoldState>),
}

/// Where a request finds itself.
pub(crate) enum Place {
    /// It has nothing to do with the local line.
    Alone,
    /// It is the one to stand in the store.
    Turn(Turn),
    /// Others of this process are before it.
    Ticket(Ticket),
}

/// What came of a release.
pub(crate) enum Passed {
    /// The next task holds it.
    On,
    /// Nobody waits here: it goes back to the store.
    Nobody,
    /// It may only go on if nobody waits in the store.
    Ask,
}

impl LocalLines {
    pub(crate) fn new(hands_on: bool) -> Self {
        Self { lines: Mutex::default(), hands_on }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Name, LocalLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the line of a name, or begins one.
    pub(crate) fn join(&self, shared: &Arc<Shared>, request: &Request) -> Place {
        if !may_take_part(request) {
            return Place::Alone;
        }
        let claim = &request.claim;
        let mut lines = self.lines();
        if let Some(line) = lines.get_mut(&request.name) {
            if (line.lease, line.delay, &line.note) != (claim.lease, claim.delay, &claim.note) {
                return Place::Alone;
            }
            let (call, called) = oneshot::channel();
            let ticket = line.next_ticket;
            line.next_ticket += 1;
            line.waiting.push_back(Waiting { ticket, call });
            return Place::Ticket(Ticket { shared: shared.clone(), name: request.name.clone(), ticket, called });
        }
        lines.insert(request.name.clone(), LocalLine::new(claim));
        Place::Turn(Turn { shared: shared.clone(), name: request.name.clone(), spent: false })
    }

    /// Tries to hand a hold that is being released to the next task.
    pub(crate) fn pass_on(&self, shared: &Arc<Shared>, hold: &Arc<HoldState>, now: Moment) -> Passed {
        if !hold.local.load(Ordering::SeqCst) {
            return Passed::Nobody;
        }
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(&hold.name).filter(|line| line.is_held_by(hold)) else { return Passed::Nobody };
        if line.waiting.is_empty() {
            lines.remove(&hold.name);
            return Passed::Nobody;
        }
        let enough_left = now + hold.claim.lease / 2 < hold.deadline();
        let token = hold.next_token().filter(|_| self.hands_on && enough_left);
        if token.is_some() && (line.window_count >= WINDOW_COUNT || now.since(line.window_began) >= WINDOW) {
            return Passed::Ask;
        }
        if let Some(token) = token {
            line.window_count += 1;
            let next = Arc::new(hold.handed_on(token));
            shared.watchdog.swap(hold, &next);
            line.holder = Some(next.clone());
            while let Some(first) = line.waiting.pop_front() {
                // One that stopped waiting in this very moment does not take it: it is for the one behind.
                if first.call.send(Called::Hold(next.clone())).is_ok() {
                    return Passed::On;
                }
            }
            shared.watchdog.forget(&next);
        }
        if !line.call_to_stand() {
            lines.remove(&hold.name);
        }
        Passed::Nobody
    }

    /// The store was asked, and nobody waits there: another window begins.
    pub(crate) fn go_on(&self, hold: &HoldState, now: Moment) {
        if let Some(line) = self.lines().get_mut(&hold.name).filter(|line| line.is_held_by(hold)) {
            (line.window_began, line.window_count) = (now, 0);
        }
    }

    /// The hold goes back to the store, or is lost: the next task goes to stand there.
    pub(crate) fn give_up(&self, hold: &HoldState) {
        if !hold.local.load(Ordering::SeqCst) {
            return;
        }
        let mut lines = self.lines();
        let held = lines.get_mut(&hold.name).filter(|line| line.is_held_by(hold));
        if held.is_some_and(|line| !line.call_to_stand()) {
            lines.remove(&hold.name);
        }
    }

    /// Nobody waits here any more: all are sent to the store, which they will find closed.
    pub(crate) fn close(&self) {
        for mut line in std::mem::take(&mut *self.lines()).into_values() {
            while line.call_to_stand() {}
        }
    }
}

impl LocalLine {
    fn new(claim: &Claim) -> Self {
        Self {
            lease: claim.lease,
            delay: claim.delay,
            note: claim.note.clone(),
            holder: None,
            waiting: VecDeque::new(),
            next_ticket: 0,
            window_began: Moment::NEVER,
            window_count: 0,
        }
    }

    fn is_held_by(&self, hold: &HoldState) -> bool {
        self.holder.as_ref().is_some_and(|holder| std::ptr::eq(Arc::as_ptr(holder), hold))
    }

    /// Sends the first task that still waits to stand in the store; false if there is none, and the line is over.
    fn call_to_stand(&mut self) -> bool {
        self.holder = None;
        while let Some(first) = self.waiting.pop_front() {
            if first.call.send(Called::Stand).is_ok() {
                return true;
            }
        }
        false
    }
}

/// The task that stands in the store for all of this process. Dropped without a hold, it is the next one's turn.
pub(crate) struct Turn {
    shared: Arc<Shared>,
    name: Name,
    spent: bool,
}

impl Turn {
    /// The one that stood is in: from here on the hold can be handed on.
    pub(crate) fn holds(mut self, hold: &Arc<HoldState>, now: Moment) {
        self.spent = true;
        let mut lines = self.shared.local.lines();
        if let Some(line) = lines.get_mut(&self.name) {
            hold.local.store(true, Ordering::SeqCst);
            line.holder = Some(hold.clone());
            (line.window_began, line.window_count) = (now, 0);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.spent {
            return;
        }
        let mut lines = self.shared.local.lines();
        if lines.get_mut(&self.name).is_some_and(|line| line.holder.is_none() && !line.call_to_stand()) {
            lines.remove(&self.name);
        }
    }
}

/// A place in the local line. Dropped, it is given up, and what was already handed to it goes on to the next.
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    name: Name,
    ticket: u64,
    called: oneshot::Receiver<Called>,
}

/// What a ticket was good for.
pub(crate) enum Came {
    /// The lock.
    Hold(Hold),
    /// The turn to stand in the store.
    Turn(Turn),
}

impl Ticket {
    /// Waits to be called, at most so long; `None` if it was not.
    pub(crate) async fn wait(mut self, at_most: Option<Duration>) -> Option<Came> {
        let called = match at_most {
            Some(at_most) => tokio::time::timeout(at_most, &mut self.called).await.ok()?,
            None => (&mut self.called).await,
        };
        called.ok().map(|called| self.came(called))
    }

    fn came(&self, called: Called) -> Came {
        let (shared, name) = (self.shared.clone(), self.name.clone());
        match called {
            Called::Stand => Came::Turn(Turn { shared, name, spent: false }),
            Called::Hold(state) => {
                let now = shared.clock.now();
                Came::Hold(Hold::new(state, shared, now, Duration::ZERO))
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut lines = self.shared.local.lines();
        if let Some(line) = lines.get_mut(&self.name) {
            line.waiting.retain(|waiting| waiting.ticket != self.ticket);
        }
        drop(lines);
        // Called in this very moment: dropping what came passes it on.
        if let Ok(called) = self.called.try_recv() {
            drop(self.came(called));
        }
    }
}

fn may_take_part(request: &Request) -> bool {
    let claim = &request.claim;
    request.local
        && claim.kind == LockKind::Mutex
        && !claim.fair
        && !request.spin
        && !request.reentrant
        && request.renews
        && request.at_least.is_zero()
        && request.wait != Wait::No
}
