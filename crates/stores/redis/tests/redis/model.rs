//! Thousands of random calls, to the scripts and to the pure model: they must agree, whatever the clock does between them
//! and however often the client is another one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_conformance::rig::Server;
use lockkeeper_core::line::Line;
use lockkeeper_core::store::{Held, Keep, LockView, Page, Renewal, Standing, Store};
use lockkeeper_core::time::Moment;
use lockkeeper_core::{Claim, ClaimId, ErrorKind, LockKind, Name, Patience, Token};
use lockkeeper_redis::Redis;

use crate::common::*;

/// The model is asked a moment earlier than the server. What the two say of times may differ by that.
const CLOSE: Duration = Duration::from_secs(2);

struct Model {
    server: Server,
    /// How far the server's clock, and the model's, are ahead of when the test began.
    ahead: Duration,
    began: std::time::Instant,
    lines: HashMap<Name, Line>,
    order: u64,
    /// The model's number and the server's, of each claim that was told one.
    tokens: HashMap<Name, HashMap<ClaimId, (u64, Token)>>,
    dice: fastrand::Rng,
    known: Vec<(Name, Claim)>,
}

impl Model {
    fn now(&self) -> Moment {
        Moment::from_nanos(1) + self.began.elapsed() + self.ahead
    }

    /// A little more than asked for: leases are whole seconds, too, and the server counts in milliseconds, so one that was
    /// given less than that ago would have ended here and not there.
    fn jump(&mut self, by: Duration) {
        self.ahead += by + Duration::from_millis(10);
        self.server.step_clock(&format!("+{:.3}s", self.ahead.as_secs_f64())).expect("the clock steps");
    }

    /// A moment at which nothing is about to end, so that both see the same claims.
    fn calm(&mut self, lock: &Name) -> Moment {
        loop {
            let now = self.now();
            let ends = self.lines.get(lock).and_then(|line| line.view(lock, now)).into_iter().flat_map(|v| v.claims);
            if ends.map(|claim| claim.lease_left).all(|left| left > CLOSE) {
                return now;
            }
            self.jump(CLOSE);
        }
    }

    fn pick(&mut self) -> (Name, Claim) {
        let again = self.dice.f32() < 0.45 && !self.known.is_empty();
        if again {
            let at = self.dice.usize(..self.known.len());
            let (lock, mut claim) = self.known[at].clone();
            match self.dice.u8(..14) {
                0 => claim.weight = self.dice.u32(1..=claim.capacity),
                1 => claim.note = vec![self.dice.u8(..)],
                2 => claim.patience = Patience::Now,
                3 => claim.patience = Patience::Present,
                _ => {}
            }
            return (lock, claim);
        }
        let lock = name(["a", "a*", "b", "b/c", "ä", "long/name/of/a/lock"][self.dice.usize(..6)]);
        let (kind, capacity) = match lock.as_str() {
            _ if self.dice.u8(..25) == 0 => (LockKind::Election, 1),
            "a" | "a*" => (LockKind::Mutex, 1),
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
        claim.fair = self.dice.bool();
        if self.dice.u8(..4) == 0 {
            claim.patience = Patience::Now;
        }
        self.known.push((lock.clone(), claim.clone()));
        (lock, claim)
    }

    async fn enter(&mut self, store: &Redis) {
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
                let tokens = self.tokens.entry(lock.clone()).or_default();
                let known = tokens.insert(claim.id, (order, *got));
                if let Some((_, known)) = known.filter(|(known, _)| *known == order) {
                    // A fast-lane hold's number is known to its own client alone until it is renewed: another client
                    // that asks with its id, which only this test does, gets a later one.
                    assert!(
                        *got >= known && (*got == known || claim.kind == LockKind::Mutex),
                        "a claim keeps its token"
                    );
                }
                for (other, token) in tokens.values() {
                    assert_eq!(other.cmp(&order), token.cmp(got), "tokens are in the order of the line");
                }
            }
            (Standing::Waiting { ahead, moves_in, .. }, Standing::Waiting { ahead: got, moves_in: got_in, .. }) => {
                assert_eq!(ahead, got);
                // Of those that wait ahead only the first is looked at.
                assert!(got_in.unwrap() + CLOSE > moves_in.unwrap(), "{lock}: {wanted:?} {got_in:?}");
            }
            (Standing::Refused { retry_after }, Standing::Refused { retry_after: got }) => {
                assert_eq!(retry_after.is_some(), got.is_some());
                assert!(got.unwrap_or_default() + CLOSE > retry_after.unwrap_or_default());
            }
            other => panic!("{other:?}"),
        }
    }

    async fn renew(&mut self, store: &Redis) {
        let mut held = Vec::new();
        for _ in 0..self.dice.usize(..6) {
            if let Some((lock, claim)) = self.dice.choice(&self.known).cloned() {
                held.push(Held { lock, id: claim.id, lease: Duration::from_secs(self.dice.u64(1..=12) * 10) });
            }
        }
        for hold in &held {
            self.calm(&hold.lock);
        }
        let now = self.now();
        let got = store.renew(&held).await.unwrap();
        assert_eq!(got.len(), held.len());
        for (hold, got) in held.iter().zip(got) {
            let wanted = self.lines.entry(hold.lock.clone()).or_default().renew(hold.id, hold.lease, now).answer;
            match (wanted, got) {
                (Renewal::Gone, Renewal::Gone) => {}
                (Renewal::Renewed { lease: wanted }, Renewal::Renewed { lease }) => {
                    assert!(wanted.abs_diff(lease) < CLOSE, "{wanted:?} {lease:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    async fn leave(&mut self, store: &Redis) {
        let Some((lock, claim)) = self.dice.choice(&self.known).cloned() else { return };
        let now = self.calm(&lock);
        let long = Duration::from_secs(20);
        let keep = [Keep::Nothing, Keep::Nothing, Keep::Lease, Keep::For(long)][self.dice.usize(..4)];
        let wanted = self.lines.entry(lock.clone()).or_default().leave(claim.id, keep, now).answer;
        assert_eq!(store.leave(&lock, claim.id, keep).await.unwrap(), wanted);
        if self.dice.bool() {
            self.known.retain(|(_, known)| known.id != claim.id);
        }
    }

    async fn inspect(&mut self, store: &Redis) {
        let mut names: Vec<_> = self.lines.keys().cloned().collect();
        names.sort();
        for lock in &names {
            self.calm(lock);
        }
        let now = self.now();
        let wanted: Vec<_> = names.iter().filter_map(|lock| self.lines[lock].view(lock, now)).collect();
        let got = store.inspect(Page::first(100)).await.unwrap();
        let names = |views: &[LockView]| views.iter().map(|v| v.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&got), names(&wanted));
        for (wanted, got) in wanted.iter().zip(&got) {
            assert_eq!((wanted.kind, wanted.capacity), (got.kind, got.capacity), "{}", wanted.name);
            let brief = |view: &LockView| -> Vec<_> {
                let claims = view.claims.iter();
                let mut all: Vec<_> = claims.map(|c| (c.id, c.state.as_str(), c.weight, c.note.clone())).collect();
                let inside = all.iter().take_while(|claim| claim.1 != "waiting").count();
                // Those who are in have no order among them.
                all[..inside].sort();
                all
            };
            assert_eq!(brief(wanted), brief(got), "{}", wanted.name);
            let model_kind = wanted.kind;
            for wanted in &wanted.claims {
                let got = got.claims.iter().find(|got| got.id == wanted.id).unwrap();
                assert_eq!(wanted.owner, got.owner);
                assert!(wanted.lease_left.abs_diff(got.lease_left) < CLOSE, "{wanted:?} {got:?}");
                // How old a fast-lane hold is stands in its number, which another client may not know.
                let (age, shown) = (wanted.age.unwrap(), got.age.unwrap());
                let unknown = model_kind == LockKind::Mutex && shown < age;
                assert!(age.abs_diff(shown) < CLOSE || unknown, "{wanted:?} {got:?}");
            }
        }
        let mut paged = store.inspect(Page::first(2)).await.unwrap();
        while let Some(last) = paged.last().map(|view| view.name.clone()) {
            let next = store.inspect(Page { only: None, after: Some(&last), limit: 2 }).await.unwrap();
            if next.is_empty() {
                break;
            }
            paged.extend(next);
        }
        assert_eq!(names(&paged), names(&got));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_calls_agree_with_the_line() {
    let Some(server) = own("redis-stepped") else { return };
    let seed = std::env::var("LOCKKEEPER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(fastrand::u64(..));
    eprintln!("replay with LOCKKEEPER_SEED={seed}");
    let port = server.port();
    let mut stores: Vec<Arc<Redis>> = vec![open(port).await, open(port).await];
    let mut model = Model {
        server,
        ahead: Duration::ZERO,
        began: std::time::Instant::now(),
        lines: HashMap::new(),
        order: 0,
        tokens: HashMap::new(),
        dice: fastrand::Rng::with_seed(seed),
        known: Vec::new(),
    };
    for step in 0..6_000 {
        let at = model.dice.usize(..2);
        if model.dice.u16(..100) == 0 {
            // Another client goes on where this one stopped, with the same claims.
            stores[at].close().await.unwrap();
            stores[at] = open(port).await;
        }
        if step % 1_000 == 999 {
            // The server may forget its scripts at any time.
            let mut raw = raw(port).await;
            redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut raw).await.unwrap();
        }
        let store = &stores[at].clone();
        match model.dice.u8(..100) {
            0..55 => model.enter(store).await,
            55..75 => model.leave(store).await,
            75..90 => model.renew(store).await,
            90..97 => model.inspect(store).await,
            _ => {
                let by = Duration::from_secs(model.dice.u64(..30));
                model.jump(by);
            }
        }
        if model.known.len() > 60 {
            model.known.remove(0);
        }
    }
    // Whatever was done, nothing stays once all claims are over and a day has passed.
    model.jump(Duration::from_secs(200_000));
    let mut raw = raw(port).await;
    let left: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut raw).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
}
