//! Thousands of random calls, to the store and to the pure model: they must agree.

use std::collections::HashMap;
use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp, CellReply, CellState, Versioned};
use lockkeeper_core::line::Line;
use lockkeeper_core::store::{Held, Page, Standing, Store};
use lockkeeper_core::time::{Clock, Moment};
use lockkeeper_core::{Claim, ClaimId, ErrorKind, LockKind, Name, Patience, Result, Token};
use lockkeeper_sqlite::Sqlite;

use crate::common::*;

/// The model is asked a moment earlier than the store. What the two say of times may differ by that.
const CLOSE: Duration = Duration::from_secs(2);

struct Model {
    clock: Clock,
    lines: HashMap<Name, Line>,
    order: u64,
    /// The store's number for each of the model's.
    tokens: HashMap<ClaimId, (u64, Token)>,
    dice: fastrand::Rng,
    known: Vec<(Name, Claim)>,
}

impl Model {
    /// A moment at which nothing is about to end, so that both see the same claims.
    fn calm(&self, lock: &Name) -> Moment {
        loop {
            let now = self.clock.now();
            let ends = self.lines.get(lock).and_then(|line| line.view(lock, now)).into_iter().flat_map(|v| v.claims);
            if ends.map(|claim| claim.lease_left).all(|left| left > CLOSE) {
                return now;
            }
            self.clock.jump(CLOSE);
        }
    }

    fn pick(&mut self) -> (Name, Claim) {
        let again = self.dice.f32() < 0.45 && !self.known.is_empty();
        if again {
            let at = self.dice.usize(..self.known.len());
            let (lock, mut claim) = self.known[at].clone();
            match self.dice.u8(..12) {
                0 => claim.weight = self.dice.u32(1..=claim.capacity),
                1 => claim.note = vec![self.dice.u8(..)],
                2 => claim.patience = Patience::Now,
                _ => {}
            }
            return (lock, claim);
        }
        let lock = name(["a", "b", "b/c", "ä", "long/name/of/a/lock"][self.dice.usize(..5)]);
        let (kind, capacity) = match lock.as_str() {
            _ if self.dice.u8(..25) == 0 => (LockKind::Election, 1),
            "a" => (LockKind::Mutex, 1),
            "b" => (LockKind::ReadWrite, 1_000),
            _ => (LockKind::Semaphore, 4),
        };
        let weight = match kind {
            LockKind::ReadWrite => [1, 1, 1_000][self.dice.usize(..3)],
            _ => self.dice.u32(1..=capacity),
        };
        let mut claim = mutex(Duration::from_secs(self.dice.u64(1..=10) * 10));
        (claim.kind, claim.weight, claim.capacity) = (kind, weight, capacity);
        claim.delay = Duration::from_secs(self.dice.u64(0..2) * 5);
        if self.dice.u8(..4) == 0 {
            claim.patience = Patience::Now;
        }
        self.known.push((lock.clone(), claim.clone()));
        (lock, claim)
    }

    async fn enter(&mut self, store: &Sqlite) {
        let (lock, claim) = self.pick();
        let now = self.calm(&lock);
        self.order += 1;
        let wanted = self.lines.entry(lock.clone()).or_default().enter(&claim, now, self.order);
        let got = store.enter(&lock, &claim).await;
        match (wanted, got) {
            (Err(wanted), Err(got)) => assert_eq!((wanted.kind(), ErrorKind::Mismatch), (got.kind(), got.kind())),
            (Ok(wanted), Ok(got)) => self.compare(&lock, &claim, &wanted.answer, &got),
            other => panic!("{other:?}"),
        }
    }

    fn compare(&mut self, lock: &Name, claim: &Claim, wanted: &Standing, got: &Standing) {
        match (wanted, got) {
            (Standing::Held { lease: wanted, .. }, Standing::Held { token: Some(got), lease }) => {
                assert!(wanted.abs_diff(*lease) < CLOSE, "{wanted:?} {lease:?}");
                let order = self.lines[lock].get(claim.id).unwrap().order;
                let known = self.tokens.insert(claim.id, (order, *got));
                if let Some((_, known)) = known.filter(|(known, _)| *known == order) {
                    assert_eq!(known, *got, "a claim keeps its token");
                }
                for (other, token) in self.tokens.values() {
                    assert_eq!(other.cmp(&order), token.cmp(got), "tokens are in the order of the line");
                }
            }
            (
                Standing::Waiting { ahead, behind, moves_in },
                Standing::Waiting { ahead: got_ahead, behind: got_behind, moves_in: got_in },
            ) => {
                assert_eq!((ahead, behind.is_some()), (got_ahead, got_behind.is_some()));
                assert!(moves_in.unwrap().abs_diff(got_in.unwrap()) < CLOSE);
            }
            (Standing::Refused { retry_after }, Standing::Refused { retry_after: got }) => {
                assert!(retry_after.unwrap().abs_diff(got.unwrap()) < CLOSE);
            }
            other => panic!("{other:?}"),
        }
    }

    async fn renew(&mut self, store: &Sqlite) {
        let mut held = Vec::new();
        for _ in 0..self.dice.usize(..6) {
            if let Some((lock, claim)) = self.dice.choice(&self.known).cloned() {
                held.push(Held { lock, id: claim.id, lease: Duration::from_secs(self.dice.u64(1..=12) * 10) });
            }
        }
        held.iter().for_each(|hold| _ = self.calm(&hold.lock));
        let now = self.clock.now();
        let got = store.renew(&held).await.unwrap();
        assert_eq!(got.len(), held.len());
        for (hold, got) in held.iter().zip(got) {
            let wanted = self.lines.entry(hold.lock.clone()).or_default().renew(hold.id, hold.lease, now).answer;
            use lockkeeper_core::store::Renewal::*;
            match (wanted, got) {
                (Gone, Gone) => {}
                (Renewed { lease: wanted }, Renewed { lease }) => assert!(wanted.abs_diff(lease) < CLOSE),
                other => panic!("{other:?}"),
            }
        }
    }

    async fn leave(&mut self, store: &Sqlite) {
        let Some((lock, claim)) = self.dice.choice(&self.known).cloned() else { return };
        let now = self.calm(&lock);
        let keep = Duration::from_secs([0, 0, 0, 20][self.dice.usize(..4)]);
        let wanted = self.lines.entry(lock.clone()).or_default().leave(claim.id, keep, now).answer;
        assert_eq!(store.leave(&lock, claim.id, keep).await.unwrap(), wanted);
        if self.dice.bool() {
            self.known.retain(|(_, known)| known.id != claim.id);
        }
    }

    async fn inspect(&mut self, store: &Sqlite) {
        let mut names: Vec<_> = self.lines.keys().cloned().collect();
        names.sort_by(|a, b| a.as_str().as_bytes().cmp(b.as_str().as_bytes()));
        names.iter().for_each(|lock| _ = self.calm(lock));
        let now = self.clock.now();
        let wanted: Vec<_> = names.iter().filter_map(|lock| self.lines[lock].view(lock, now)).collect();
        let got = store.inspect(Page::first(100)).await.unwrap();
        assert_eq!(got.len(), wanted.len());
        for (wanted, got) in wanted.iter().zip(&got) {
            assert_eq!((&wanted.name, wanted.kind, wanted.capacity), (&got.name, got.kind, got.capacity));
            assert_eq!(wanted.fingerprint(), got.fingerprint());
            for (wanted, got) in wanted.claims.iter().zip(&got.claims) {
                assert_eq!((&wanted.owner, wanted.held_for.is_some()), (&got.owner, got.held_for.is_some()));
                assert!(wanted.lease_left.abs_diff(got.lease_left) < CLOSE);
                assert!(wanted.age.unwrap().abs_diff(got.age.unwrap()) < CLOSE);
            }
        }
        // In pages of two it is the same.
        let mut paged = store.inspect(Page::first(2)).await.unwrap();
        while let Some(last) = paged.last().map(|view| view.name.clone()) {
            let next = store.inspect(Page { only: None, after: Some(&last), limit: 2 }).await.unwrap();
            if next.is_empty() {
                break;
            }
            paged.extend(next);
        }
        let names =
            |views: &[lockkeeper_core::store::LockView]| views.iter().map(|v| v.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&paged), names(&got));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_calls_agree_with_the_line() {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let clock = Clock::adjustable();
    let bench = Bench::new();
    let stores = [bench.open_with(&clock).await, bench.open_with(&clock).await];
    let mut model = Model {
        clock: clock.clone(),
        lines: HashMap::new(),
        order: 0,
        tokens: HashMap::new(),
        dice: fastrand::Rng::with_seed(seed),
        known: Vec::new(),
    };
    for _ in 0..6_000 {
        // Two stores on one file are one store.
        let store = &stores[model.dice.usize(..2)];
        match model.dice.u8(..100) {
            0..55 => model.enter(store).await,
            55..75 => model.leave(store).await,
            75..90 => model.renew(store).await,
            90..97 => model.inspect(store).await,
            _ => clock.jump(Duration::from_secs(model.dice.u64(..30))),
        }
        if model.known.len() > 60 {
            model.known.remove(0);
        }
    }
}

/// A reply without its versions, which are other numbers in the model.
fn bare(reply: Result<CellReply>) -> String {
    let hide = |current: Option<Versioned>| current.map(|current| current.value);
    match reply {
        Err(error) => format!("{:?}", error.kind()),
        Ok(CellReply::Done { version }) => format!("done {}", version > 0),
        Ok(CellReply::Number { value, version }) => format!("number {value} {}", version > 0),
        Ok(CellReply::Conflict { current }) => format!("conflict {:?}", hide(current)),
        Ok(CellReply::Entered { current }) => format!("entered {:?}", hide(current)),
        Ok(CellReply::Admitted { remaining, full_in }) => format!("admitted {remaining} {}", full_in.as_secs() / 600),
        Ok(CellReply::Limited { remaining, retry_after }) => format!("limited {remaining} {}", retry_after.is_some()),
        Ok(other) => format!("{other:?}"),
    }
}

fn random_op(dice: &mut fastrand::Rng, version: u64) -> CellOp {
    let if_version = [None, Some(0), Some(version), Some(version)][dice.usize(..4)];
    let token = Token::from_u64(dice.u64(..20));
    let per = Duration::from_secs(86_400);
    let (take, limit) = (dice.u64(1..4), 5);
    let action = match dice.u8(..12) {
        0 | 1 => CellAction::Put { value: vec![dice.u8(..); dice.usize(..300)], if_version },
        2 => CellAction::Remove { if_version },
        3 => CellAction::Remove { if_version: None },
        4 | 5 => CellAction::Add { by: dice.i64(-10..10) },
        6 => CellAction::Take { by: dice.u64(..10), floor: dice.i64(-5..5) },
        7 => CellAction::Max { at_least: dice.i64(-10..10) },
        8 => CellAction::Window { take, limit, per },
        9 => CellAction::Gcra { take, limit, per },
        10 => CellAction::FenceEnter { token, shared: dice.bool() },
        _ => CellAction::FencedPut { token, value: dice.bool().then(|| vec![1]) },
    };
    CellOp { action, keep: (dice.u8(..3) == 0).then(|| Duration::from_secs(1_000)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_operations_agree_with_the_cell() {
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut dice = fastrand::Rng::with_seed(seed);
    let clock = Clock::adjustable();
    let bench = Bench::new();
    let store = bench.open_with(&clock).await;
    let mut cells: HashMap<Name, Option<CellState>> = HashMap::new();
    for fresh in 1..6_000 {
        let cell = name(&format!("cell/{}", dice.u8(..12)));
        if dice.u8(..20) == 0 {
            clock.jump(Duration::from_secs(700));
        }
        let state = cells.entry(cell.clone()).or_default();
        let now = clock.now();
        let wanted = state.as_ref().and_then(|state| state.read(now));
        let got = store.read(&cell).await.unwrap();
        assert_eq!(wanted.as_ref().map(|v| &v.value), got.as_ref().map(|v| &v.value));
        // The same operation with each one's own version of the version.
        let dice_now = dice.fork().get_seed();
        let of = |version| random_op(&mut fastrand::Rng::with_seed(dice_now), version);
        let (model_op, store_op) = (of(wanted.map_or(9, |v| v.version)), of(got.map_or(9, |v| v.version)));
        let wanted = model_op.apply(state.as_ref(), now, fresh);
        if let Ok((after, _)) = &wanted {
            state.clone_from(after);
        }
        let got = store.update(&cell, &store_op).await;
        assert_eq!(bare(wanted.map(|(_, reply)| reply)), bare(got), "{model_op:?} {state:?}");
    }
}
