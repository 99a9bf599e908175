//! A store of your own: a map of lines behind one mutex, whose waiters look every few milliseconds.
//!
//! `Line` and `CellOp` know all the rules; a store keeps them somewhere and makes each step atomic. This file is also
//! part of the conformance suite: it keeps every law that a store without push wake-ups has to keep.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockkeeper::cell::{CellOp, CellReply, CellState, Versioned};
use lockkeeper::limits::{LEASE_MAX, LEASE_MIN};
use lockkeeper::store::{
    Claim, Expiry, Held, Keep, Left, Line, LockView, Order, Page, Profile, Renewal, Reply, Sharing, Standing, Store,
    StoreTime, Survives, Tokens, Waiter, Wake,
};
use lockkeeper::time::{Clock, Moment};
use lockkeeper::{ClaimId, Keeper, Name};

/// How often a waiter looks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What the store promises. What it does not promise is refused when it is asked for.
const PROFILE: Profile = Profile {
    scheme: "board",
    order: Order::Fifo,
    sharing: Sharing::Permits,
    tokens: Tokens::Monotone,
    expiry: Expiry::StoreClock,
    early: Duration::ZERO,
    late: Duration::ZERO,
    wake: Wake::Poll,
    survives: Survives::Nothing,
    time: StoreTime::Store,
    lease_min: LEASE_MIN,
    lease_max: LEASE_MAX,
};

/// A board on which everybody's claims are written.
#[derive(Debug, Default)]
pub struct Board {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    lines: BTreeMap<Name, Line>,
    cells: BTreeMap<Name, CellState>,
    /// The last number given out: for places in a line, tokens and versions.
    last: u64,
}

impl Board {
    /// The state, and the store's time, read while nobody else changes anything.
    fn state(&self) -> (MutexGuard<'_, State>, Moment) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state, self.clock.now())
    }

    /// Is asking again worth it?
    fn has_news(&self, lock: &Name, waiter: Waiter<'_>) -> bool {
        let (state, now) = self.state();
        let line = state.lines.get(lock);
        match waiter {
            Waiter::Claim { id, .. } => line.is_none_or(|line| line.get(id).is_none() || line.is_in(id, now)),
            Waiter::Observer { seen } => {
                line.and_then(|line| line.view(lock, now)).map_or(0, |view| view.fingerprint()) != seen
            }
        }
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn forget_if_empty(&mut self, lock: &Name) {
        if self.lines.get(lock).is_some_and(Line::is_empty) {
            self.lines.remove(lock);
        }
    }
}

impl Store for Board {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    fn enter<'a>(&'a self, lock: &'a Name, claim: &'a Claim) -> Reply<'a, Standing> {
        Box::pin(async move {
            let (mut state, now) = self.state();
            let order = state.next_number();
            let answer = state.lines.entry(lock.clone()).or_default().enter(claim, now, order);
            state.forget_if_empty(lock);
            answer.map(|step| step.answer)
        })
    }

    fn wait<'a>(&'a self, lock: &'a Name, waiter: Waiter<'a>, at_most: Duration) -> Reply<'a, Option<Standing>> {
        Box::pin(async move {
            let end = self.clock.now() + at_most;
            while !self.has_news(lock, waiter) && self.clock.now() < end {
                tokio::time::sleep(LOOK_EVERY.min(self.clock.now().until(end))).await;
            }
            Ok(None)
        })
    }

    fn renew<'a>(&'a self, held: &'a [Held]) -> Reply<'a, Vec<Renewal>> {
        Box::pin(async move {
            let (mut state, now) = self.state();
            let mut renew = |held: &Held| match state.lines.get_mut(&held.lock) {
                Some(line) => line.renew(held.id, held.lease, now).answer,
                None => Renewal::Gone,
            };
            Ok(held.iter().map(&mut renew).collect())
        })
    }

    fn leave<'a>(&'a self, lock: &'a Name, id: ClaimId, keep: Keep) -> Reply<'a, Left> {
        Box::pin(async move {
            let (mut state, now) = self.state();
            let Some(line) = state.lines.get_mut(lock) else { return Ok(Left::NotHeld) };
            let left = line.leave(id, keep, now).answer;
            state.forget_if_empty(lock);
            Ok(left)
        })
    }

    fn inspect<'a>(&'a self, page: Page<'a>) -> Reply<'a, Vec<LockView>> {
        Box::pin(async move {
            let (state, now) = self.state();
            let from = page.after.map_or(Bound::Unbounded, Bound::Excluded);
            let lines = state.lines.range((from, Bound::Unbounded));
            let asked = lines.filter(|(name, _)| page.only.is_none_or(|only| only == *name));
            Ok(asked.filter_map(|(name, line)| line.view(name, now)).take(page.limit).collect())
        })
    }

    fn read<'a>(&'a self, cell: &'a Name) -> Reply<'a, Option<Versioned>> {
        Box::pin(async move {
            let (state, now) = self.state();
            Ok(state.cells.get(cell).and_then(|cell| cell.read(now)))
        })
    }

    fn update<'a>(&'a self, cell: &'a Name, op: &'a CellOp) -> Reply<'a, CellReply> {
        Box::pin(async move {
            let (mut state, now) = self.state();
            let fresh = state.next_number();
            let (after, reply) = op.apply(state.cells.get(cell), now, fresh)?;
            match after {
                Some(after) => state.cells.insert(cell.clone(), after),
                None => state.cells.remove(cell),
            };
            Ok(reply)
        })
    }

    fn close<'a>(&'a self) -> Reply<'a, ()> {
        // Keepers share the board, and would close it for each other.
        Box::pin(async { Ok(()) })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> lockkeeper::Result<()> {
    let board = Arc::new(Board::default());
    let (one, two) = (Keeper::with_store(board.clone()), Keeper::with_store(board));

    let hold = one.mutex("report").lock().await?;
    let first = hold.token();
    assert!(two.mutex("report").try_lock().await?.is_none());
    println!("one holds the report, and two is kept out");

    let waiting = tokio::spawn(async move { two.mutex("report").wait(Duration::from_secs(5)).lock().await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    hold.release().await?;
    let hold = waiting.await.expect("the task did not panic")?;
    assert!(hold.token() > first);
    println!("two has its turn, with a greater token");
    hold.release().await
}
