//! The in-memory store: the model made runnable. For tests, and for one process.
//!
//! One mutex around a map of [`Line`]s; every other store is held to what this one answers. Surprise: `close` does
//! nothing, because keepers that share a `Memory` would close it for each other.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::cell::{CellOp, CellReply, CellState, Versioned};
use crate::claim::{Claim, ClaimId};
use crate::limits::{LEASE_MAX, LEASE_MIN, PAGE_ROWS};
use crate::line::{Line, Step};
use crate::name::Name;
use crate::store::{
    Expiry, Held, Keep, Left, LockView, Order, Page, Profile, Renewal, Reply, Sharing, Standing, Store, StoreTime,
    Survives, Tokens, Waiter, Wake,
};
use crate::time::{Clock, Moment};
use crate::watchdog::let_others_in;

/// Use this in tests and inside one process; use `sqlite:` instead as soon as a second process takes part.
///
/// ```
/// use lockkeeper_core::{Keeper, stores::Memory};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let keeper = Keeper::with_store(Memory::shared());
/// let hold = keeper.mutex("orders/42").lock().await?;
/// hold.release().await
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Memory {
    profile: Profile,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    lines: BTreeMap<Name, Slot>,
    cells: HashMap<Name, CellState>,
    /// The last number handed out, for orders and versions alike.
    last: u64,
}

/// A line and those who wait for news of it.
#[derive(Debug, Default)]
struct Slot {
    line: Line,
    claims: HashMap<ClaimId, Arc<Notify>>,
    observers: Arc<Notify>,
}

impl Memory {
    /// An empty store on the system's clock.
    pub fn shared() -> Arc<Self> {
        Self::with_clock(Clock::system())
    }

    /// An empty store on a clock of its own.
    pub fn with_clock(clock: Clock) -> Arc<Self> {
        let profile = Profile {
            scheme: "memory",
            order: Order::Fifo,
            sharing: Sharing::Permits,
            tokens: Tokens::Monotone,
            expiry: Expiry::StoreClock,
            early: Duration::ZERO,
            late: Duration::ZERO,
            wake: Wake::Push,
            survives: Survives::Nothing,
            time: StoreTime::Store,
            lease_min: LEASE_MIN,
            lease_max: LEASE_MAX,
        };
        Arc::new(Self { profile, clock, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that `waiter` wants news of `lock`, and looks whether there already is some (C7).
    fn subscribe(&self, lock: &Name, waiter: Waiter<'_>) -> Option<Arc<Notify>> {
        let now = self.clock.now();
        let mut state = self.state();
        let slot = state.lines.get(lock);
        match waiter {
            Waiter::Claim { id, .. } => {
                let waits = slot.is_some_and(|slot| slot.line.get(id).is_some() && !slot.line.is_in(id, now));
                let slot = if waits { state.lines.get_mut(lock)? } else { return None };
                Some(slot.claims.entry(id).or_default().clone())
            }
            Waiter::Observer { seen } => {
                let fingerprint = slot.and_then(|slot| slot.line.view(lock, now)).map_or(0, |view| view.fingerprint());
                (fingerprint == seen).then(|| state.lines.entry(lock.clone()).or_default().observers.clone())
            }
        }
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Wakes every claim that came in and every observer of a change, and forgets a line nobody cares for.
    fn conclude<T>(&mut self, lock: &Name, step: Step<T>) -> T {
        if let Some(slot) = self.lines.get_mut(lock) {
            for id in step.admitted.iter().chain(&step.removed) {
                if let Some(waiting) = slot.claims.remove(id) {
                    waiting.notify_one();
                }
            }
            if step.changed() {
                slot.observers.notify_waiters();
            }
            self.forget_if_idle(lock, 1);
        }
        step.answer
    }

    /// Forgets a line without claims whose observers are known to no more than `handles` (one is the slot's own).
    fn forget_if_idle(&mut self, lock: &Name, handles: usize) {
        let idle = |slot: &Slot| {
            slot.line.is_empty() && slot.claims.is_empty() && Arc::strong_count(&slot.observers) <= handles
        };
        if self.lines.get(lock).is_some_and(idle) {
            self.lines.remove(lock);
        }
    }

    /// Cells whose time is over go, every so many changes.
    fn sweep_cells(&mut self, now: Moment) {
        if self.last.is_multiple_of(1_024) {
            self.cells.retain(|_, cell| !cell.is_over(now));
        }
    }
}

impl Store for Memory {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn enter<'a>(&'a self, lock: &'a Name, claim: &'a Claim) -> Reply<'a, Standing> {
        Box::pin(async move {
            let now = self.clock.now();
            let mut state = self.state();
            let order = state.next_number();
            let slot = state.lines.entry(lock.clone()).or_default();
            let step = slot.line.enter(claim, now, order)?;
            Ok(state.conclude(lock, step))
        })
    }

    fn wait<'a>(&'a self, lock: &'a Name, waiter: Waiter<'a>, at_most: Duration) -> Reply<'a, Option<Standing>> {
        Box::pin(async move {
            if let Waiter::Observer { .. } = waiter {
                // `notify_waiters` reaches only those who are enabled, so the look comes after enabling.
                let Some(news) = self.subscribe(lock, waiter) else { return Ok(None) };
                let mut notified = std::pin::pin!(news.notified());
                notified.as_mut().enable();
                if self.subscribe(lock, waiter).is_some() {
                    let _ = tokio::time::timeout(at_most, notified.as_mut()).await;
                }
                self.state().forget_if_idle(lock, 2);
            } else if let Some(news) = self.subscribe(lock, waiter) {
                let _ = tokio::time::timeout(at_most, news.notified()).await;
            }
            // The wake-up carries the hold, if that is what it is about.
            let Waiter::Claim { id, .. } = waiter else { return Ok(None) };
            Ok(self.state().lines.get(lock).and_then(|slot| slot.line.held(id, self.clock.now())))
        })
    }

    fn renew<'a>(&'a self, held: &'a [Held]) -> Reply<'a, Vec<Renewal>> {
        Box::pin(async move {
            let mut renewals = Vec::with_capacity(held.len());
            // In pieces, so that a large batch does not keep everybody else waiting.
            for (nth, piece) in held.chunks(1_024).enumerate() {
                if nth > 0 {
                    let_others_in();
                }
                let now = self.clock.now();
                let mut state = self.state();
                renewals.extend(piece.iter().map(|held| {
                    let Some(slot) = state.lines.get_mut(&held.lock) else { return Renewal::Gone };
                    let step = slot.line.renew(held.id, held.lease, now);
                    state.conclude(&held.lock, step)
                }));
            }
            Ok(renewals)
        })
    }

    fn leave<'a>(&'a self, lock: &'a Name, id: ClaimId, keep: Keep) -> Reply<'a, Left> {
        Box::pin(async move {
            let now = self.clock.now();
            let mut state = self.state();
            let Some(slot) = state.lines.get_mut(lock) else { return Ok(Left::NotHeld) };
            slot.claims.remove(&id);
            let step = slot.line.leave(id, keep, now);
            Ok(state.conclude(lock, step))
        })
    }

    fn inspect<'a>(&'a self, page: Page<'a>) -> Reply<'a, Vec<LockView>> {
        Box::pin(async move {
            let now = self.clock.now();
            let state = self.state();
            if let Some(name) = page.only {
                return Ok(state.lines.get(name).and_then(|slot| slot.line.view(name, now)).into_iter().collect());
            }
            let from = page.after.map_or(Bound::Unbounded, Bound::Excluded);
            let lines = state.lines.range((from, Bound::Unbounded));
            Ok(lines.filter_map(|(name, slot)| slot.line.view(name, now)).take(page.limit.min(PAGE_ROWS)).collect())
        })
    }

    fn read<'a>(&'a self, cell: &'a Name) -> Reply<'a, Option<Versioned>> {
        Box::pin(async move { Ok(self.state().cells.get(cell).and_then(|cell| cell.read(self.clock.now()))) })
    }

    fn update<'a>(&'a self, cell: &'a Name, op: &'a CellOp) -> Reply<'a, CellReply> {
        Box::pin(async move {
            let now = self.clock.now();
            let mut state = self.state();
            let fresh = state.next_number();
            state.sweep_cells(now);
            let (after, reply) = op.apply(state.cells.get(cell), now, fresh)?;
            match after {
                Some(after) => state.cells.insert(cell.clone(), after),
                None => state.cells.remove(cell),
            };
            Ok(reply)
        })
    }

    fn close<'a>(&'a self) -> Reply<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}
