//! Thousands of random calls, to etcd and to the pure model: they must agree, however often the client is another one.
//!
//! Surprise: no time passes here. Leases are long, because the server has no clock that could be stepped; what their end
//! does is tried by the laws and in `leases`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::line::Line;
use lockkeeper_core::store::{Held, Keep, LockView, Page, Renewal, Standing, Store};
use lockkeeper_core::time::Moment;
use lockkeeper_core::{Claim, ClaimId, ErrorKind, LockKind, Name, Patience, Token};
use lockkeeper_etcd::{Etcd, Options};

use crate::common::*;

const NOW: Moment = Moment::from_nanos(1);
/// Much longer than the test.
const LONG: Duration = Duration::from_secs(600);

struct Model {
    prefix: String,
    lines: HashMap<Name, Line>,
    order: u64,
    /// The model's number and the server's, of each claim that was told one.
    tokens: HashMap<Name, HashMap<ClaimId, (u64, Token)>>,
    dice: fastrand::Rng,
    known: Vec<(Name, Claim)>,
    /// The claims of each client: only their own asks for them and renews them, but any may take them out.
    of_client: [Vec<ClaimId>; 2],
    /// Those that were last told that they hold.
    told: HashSet<ClaimId>,
}

impl Model {
    fn line(&mut self, lock: &Name) -> &mut Line {
        self.lines.entry(lock.clone()).or_default()
    }

    /// One of the claims of this client.
    fn known(&mut self, client: usize) -> Option<(Name, Claim)> {
        let own: Vec<_> = self.known.iter().filter(|(_, claim)| self.of_client[client].contains(&claim.id)).collect();
        self.dice.choice(own).cloned()
    }

    fn pick(&mut self, client: usize) -> (Name, Claim) {
        let again = self.known(client).filter(|_| self.dice.f32() < 0.5);
        if let Some((lock, mut claim)) = again {
            match self.dice.u8(..14) {
                0 => claim.weight = self.dice.u32(1..=claim.capacity),
                1 => claim.note = vec![self.dice.u8(..), b'\n', 0xff],
                2 => claim.patience = Patience::Now,
                3 => claim.patience = Patience::Present,
                _ => {}
            }
            return (lock, claim);
        }
        let short = ["a", "a*", "b", "b/c", "ä", "long/name/of/a/lock"][self.dice.usize(..6)];
        let lock = name(&format!("{}{short}", self.prefix));
        let (kind, capacity) = match short {
            _ if self.dice.u8(..25) == 0 => (LockKind::Election, 1),
            "a" | "a*" => (LockKind::Mutex, 1),
            "b" => (LockKind::ReadWrite, 1_000),
            _ => (LockKind::Semaphore, 4),
        };
        let weight = match kind {
            LockKind::ReadWrite => [1, 1, 1_000][self.dice.usize(..3)],
            _ => self.dice.u32(1..=capacity),
        };
        // On the lease that all share, and on one of its own.
        let lease = [LONG, LONG, LONG * 2][self.dice.usize(..3)];
        let mut claim = Claim { kind, weight, capacity, fair: self.dice.bool(), ..mutex(lease) };
        if self.dice.u8(..4) == 0 {
            claim.patience = Patience::Now;
        }
        self.known.push((lock.clone(), claim.clone()));
        self.of_client[client].push(claim.id);
        (lock, claim)
    }

    async fn enter(&mut self, store: &Etcd, client: usize) {
        let (lock, claim) = self.pick(client);
        self.order += 1;
        let order = self.order;
        let wanted = self.line(&lock).enter(&claim, NOW, order).map(|step| step.answer);
        let got = store.enter(&lock, &claim).await;
        match &got {
            Ok(Standing::Held { .. }) => self.told.insert(claim.id),
            _ => self.told.remove(&claim.id),
        };
        match (&wanted, &got) {
            (Err(wanted), Err(got)) => assert_eq!((wanted.kind(), ErrorKind::Mismatch), (got.kind(), got.kind())),
            (Ok(Standing::Held { .. }), Ok(Standing::Held { token: Some(token), lease })) => {
                assert!(*lease > LONG / 2 && *lease <= claim.store_lease(), "{lease:?}");
                self.compare(&lock, &claim, *token);
            }
            (Ok(Standing::Waiting { ahead, .. }), Ok(Standing::Waiting { ahead: got, .. })) => assert_eq!(ahead, got),
            (Ok(Standing::Refused { .. }), Ok(Standing::Refused { .. })) => {}
            // One that is not there, and must not come, has no kind to disagree with.
            (Err(_), Ok(Standing::Refused { .. })) if claim.patience == Patience::Present => {}
            other => panic!("`{lock}`, {claim:?}: {other:?}"),
        }
    }

    fn compare(&mut self, lock: &Name, claim: &Claim, token: Token) {
        let order = self.lines[lock].get(claim.id).unwrap().order;
        let tokens = self.tokens.entry(lock.clone()).or_default();
        let known = tokens.insert(claim.id, (order, token));
        if let Some((_, known)) = known.filter(|(known, _)| *known == order) {
            assert_eq!(known, token, "a claim keeps its token");
        }
        for (other, known) in tokens.values() {
            assert_eq!(other.cmp(&order), known.cmp(&token), "tokens are in the order of the line");
        }
    }

    async fn renew(&mut self, store: &Etcd, client: usize) {
        let mut held = Vec::new();
        for _ in 0..self.dice.usize(..6) {
            if let Some((lock, claim)) = self.known(client) {
                let lease = claim.lease * self.dice.u32(1..=2);
                held.push(Held { lock, id: claim.id, lease });
            }
        }
        held.sort_by_key(|hold: &Held| hold.id);
        held.dedup_by_key(|hold| hold.id);
        let got = store.renew(&held).await.unwrap();
        assert_eq!(got.len(), held.len());
        for (hold, got) in held.iter().zip(got) {
            let wanted = self.line(&hold.lock).renew(hold.id, hold.lease, NOW).answer;
            match (wanted, got) {
                (Renewal::Gone, Renewal::Gone) => {}
                // In by now, and not told so: nobody renews what it does not know to hold.
                (Renewal::Renewed { .. }, Renewal::Gone) if !self.told.contains(&hold.id) => {}
                (Renewal::Renewed { .. }, Renewal::Renewed { lease }) => assert!(lease >= hold.lease, "{lease:?}"),
                other => panic!("`{}`: {other:?}", hold.lock),
            }
        }
    }

    async fn leave(&mut self, store: &Etcd) {
        let Some((lock, claim)) = self.dice.choice(&self.known).cloned() else { return };
        let keep = [Keep::Nothing, Keep::Nothing, Keep::Nothing, Keep::Lease, Keep::For(LONG)][self.dice.usize(..5)];
        let wanted = self.line(&lock).leave(claim.id, keep, NOW).answer;
        assert_eq!(store.leave(&lock, claim.id, keep).await.unwrap(), wanted, "`{lock}`, {keep:?}");
        // A claim that has left is over: only its own client may ask again, and an acquire never does.
        self.known.retain(|(_, known)| known.id != claim.id || keep != Keep::Nothing);
    }

    async fn inspect(&mut self, store: &Etcd) {
        let mut names: Vec<_> = self.lines.keys().cloned().collect();
        names.sort();
        let wanted: Vec<_> = names.iter().filter_map(|lock| self.lines[lock].view(lock, NOW)).collect();
        let got = store.inspect(Page::first(100)).await.unwrap();
        let names = |views: &[LockView]| views.iter().map(|v| v.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&got), names(&wanted));
        for (wanted, got) in wanted.iter().zip(&got) {
            assert_eq!((wanted.kind, wanted.capacity), (got.kind, got.capacity), "{}", wanted.name);
            let brief = |view: &LockView| -> Vec<_> {
                let claims = view.claims.iter();
                claims.map(|c| (c.id, c.state.as_str(), c.weight, c.note.clone(), c.owner.clone())).collect()
            };
            assert_eq!(brief(wanted), brief(got), "{}", wanted.name);
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
    let Some(port) = shared() else { return };
    let seed = std::env::var("LOCKKEEPER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(fastrand::u64(..));
    eprintln!("replay with LOCKKEEPER_SEED={seed}");
    let prefix = format!("{}/", fresh("model"));
    let options = Options { lease: LONG, listed_under: prefix.clone(), ..options(&[port]) };
    let open = || async { Etcd::open(options.clone()).await.expect("the store opens") };
    let stores: [Arc<Etcd>; 2] = [open().await, open().await];
    let mut model = Model {
        prefix,
        lines: HashMap::new(),
        order: 0,
        tokens: HashMap::new(),
        dice: fastrand::Rng::with_seed(seed),
        known: Vec::new(),
        of_client: Default::default(),
        told: HashSet::new(),
    };
    for _ in 0..2_500 {
        let client = model.dice.usize(..2);
        let store = &stores[client];
        match model.dice.u8(..100) {
            0..55 => model.enter(store, client).await,
            55..80 => model.leave(store).await,
            80..95 => model.renew(store, client).await,
            _ => model.inspect(store).await,
        }
        if model.known.len() > 60 {
            model.known.remove(0);
        }
    }
    for (lock, line) in model.lines {
        for claim in line.view(&lock, NOW).map_or(Vec::new(), |view| view.claims) {
            stores[0].leave(&lock, claim.id, Keep::Nothing).await.unwrap();
        }
    }
    assert_eq!(keys_under(port, &model.prefix).await, []);
    for store in stores {
        store.close().await.unwrap();
    }
}
