//! The server acts and its answer is lost: asking again brings the same hold, one token, and never a wrong "no".

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_conformance::rig::{Proxy, Server};
use lockkeeper_core::store::{Keep, Left, Renewal, Standing, Store};
use lockkeeper_core::{Claim, Effect, Error, ErrorKind, Keeper, LockKind, Name, Patience};
use lockkeeper_redis::Redis;

use crate::common::*;

const LEASE: Duration = Duration::from_secs(30);

/// A client whose answers can be lost, and one that sees what there is.
struct Scene {
    server: Server,
    proxy: Proxy,
    store: Arc<Redis>,
    other: Arc<Redis>,
}

impl Scene {
    async fn new(server: &str) -> Option<Scene> {
        let server = own(server)?;
        let proxy = Proxy::to(server.port()).unwrap();
        let (store, other) = (open(proxy.port()).await, open(server.port()).await);
        let scene = Scene { server, proxy, store, other };
        scene.teach().await;
        Some(scene)
    }

    /// The server knows all scripts, so that what is lost is an answer and not the question for the text.
    async fn teach(&self) {
        let (lock, fair) = (name("taught"), Claim { fair: true, ..mutex(LEASE) });
        take(&self.other, &lock, &fair).await;
        renew(&self.other, &lock, &fair).await;
        self.other.leave(&lock, fair.id, Keep::Nothing).await.unwrap();
        let (free, plain) = (name("taught/free"), mutex(LEASE));
        take(&self.other, &free, &plain).await;
        self.other.leave(&free, plain.id, Keep::Nothing).await.unwrap();
    }

    fn keeper(&self) -> Keeper {
        keeper(self.store.clone())
    }

    /// Exactly this one is in.
    async fn is_in_alone(&self, lock: &Name, claim: &Claim) {
        let line = line(&self.other, lock).await.expect("somebody is in");
        assert_eq!(line.claims.iter().map(|claim| claim.id).collect::<Vec<_>>(), [claim.id]);
        let rival = Claim { patience: Patience::Now, ..another(claim) };
        assert!(matches!(self.other.enter(lock, &rival).await.unwrap(), Standing::Refused { .. }));
    }

    async fn is_free(&self, lock: &Name) {
        assert_eq!(standing(&self.other, lock).await, (0, 0), "`{lock}`");
    }

    fn has_lost(&self) -> u64 {
        self.proxy.counts().dropped_bytes
    }
}

fn another(claim: &Claim) -> Claim {
    Claim { id: mutex(LEASE).id, weight: claim.capacity, ..claim.clone() }
}

fn unknown<T: std::fmt::Debug>(answer: Result<T, Error>) {
    let error = answer.expect_err("the answer was lost");
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{error:?}");
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_asks_again_and_is_one_hold() {
    let Some(scene) = Scene::new("redis").await else { return };
    let fair = Claim { fair: true, ..mutex(LEASE) };
    let cases = [
        ("by the fast lane", "SET", at_once(LEASE)),
        ("by the fast lane, to wait", "SET", mutex(LEASE)),
        ("by script", "EVALSHA", fair),
        ("a reader", "EVALSHA", of_kind(LockKind::ReadWrite, 1, 1_000, LEASE)),
        ("permits", "EVALSHA", of_kind(LockKind::Semaphore, 2, 3, LEASE)),
    ];
    for (at, (what, words, claim)) in cases.into_iter().enumerate() {
        let (lock, before) = (name(&format!("enter/{at}")), scene.has_lost());
        scene.proxy.lose_reply_to(words);
        unknown(scene.store.enter(&lock, &claim).await);
        assert!(scene.has_lost() > before, "{what}");
        // The server acted, and nobody was told.
        scene.is_in_alone(&lock, &claim).await;
        let told = take(&scene.store, &lock, &claim).await;
        assert_eq!(take(&scene.store, &lock, &claim).await, told, "{what}: one token");
        scene.is_in_alone(&lock, &claim).await;

        scene.proxy.lose_reply_to("EVALSHA");
        unknown(scene.store.leave(&lock, claim.id, Keep::Nothing).await);
        scene.is_free(&lock).await;
        let next = another(&claim);
        assert!(take(&scene.other, &lock, &next).await > told, "{what}");
        assert_eq!(scene.store.leave(&lock, claim.id, Keep::Nothing).await.unwrap(), Left::NotHeld, "{what}");
        scene.is_in_alone(&lock, &next).await;
    }
}

#[tokio::test]
async fn one_that_was_put_in_line_unheard_stands_there_once() {
    let Some(scene) = Scene::new("redis").await else { return };
    let (lock, holds, waits) = (name("line"), mutex(LEASE), mutex(LEASE));
    take(&scene.other, &lock, &holds).await;
    // It is refused by the fast lane, then put in line by the script.
    scene.proxy.lose_reply_to("EVALSHA");
    unknown(scene.store.enter(&lock, &waits).await);
    for _ in 0..3 {
        assert!(matches!(scene.store.enter(&lock, &waits).await.unwrap(), Standing::Waiting { ahead: 1, .. }));
        assert_eq!(standing(&scene.other, &lock).await, (1, 1));
    }
    // It gives up, and nobody hears that either.
    scene.proxy.lose_reply_to("EVALSHA");
    unknown(scene.store.leave(&lock, waits.id, Keep::Nothing).await);
    assert_eq!(standing(&scene.other, &lock).await, (1, 0));
    assert_eq!(scene.other.leave(&lock, holds.id, Keep::Nothing).await.unwrap(), Left::Released);
    scene.is_free(&lock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keeper_makes_one_hold_of_it_and_a_release_is_never_told_not_held() {
    let Some(scene) = Scene::new("redis").await else { return };
    let (keeper, watcher) = (scene.keeper(), keeper(scene.other.clone()));
    for round in 0..4 {
        let (x, lost) = (format!("x/{round}"), scene.has_lost());
        let lock = keeper.mutex(&x).lease(LEASE).at_least(Duration::from_millis(u64::from(round == 3) * 50));
        scene.proxy.lose_reply_to("SET");
        let hold = match round % 2 {
            0 => soon("it is free", lock.lock()).await.unwrap(),
            _ => soon("it is free", lock.try_lock()).await.unwrap().expect("it is free"),
        };
        assert!(scene.has_lost() > lost);
        assert!(watcher.mutex(&x).try_lock().await.unwrap().is_none());
        assert_eq!(standing(&scene.other, &name(&x)).await, (1, 0));

        // In every other round somebody waits, and is in before the release is repeated.
        let waits = watcher.mutex(&x).lease(LEASE);
        let waits = (round % 2 == 1).then(|| tokio::spawn(async move { waits.lock().await.unwrap() }));
        if waits.is_some() {
            until_waiting(&scene.other, &name(&x), 1).await;
        }
        let (lost, token) = (scene.has_lost(), hold.token());
        scene.proxy.lose_reply_to("EVALSHA");
        hold.release().await.expect("it was ours, and is released");
        assert!(scene.has_lost() > lost);
        if let Some(waits) = waits {
            let next = soon("it is handed over", waits).await.unwrap();
            assert!(next.token() > token && next.is_held());
            next.release().await.expect("the repeated release left it alone");
        }
        scene.is_free(&name(&x)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_whose_answer_was_lost_is_made_again() {
    let Some(scene) = Scene::new("redis").await else { return };
    let (keeper, lease) = (scene.keeper(), Duration::from_secs(3));
    let fast = keeper.mutex("fast").lease(lease).lock().await.unwrap();
    let fair = keeper.mutex("fair").lease(lease).fair().lock().await.unwrap();
    let (seen_fast, seen_fair) = (fast.deadline(), fair.deadline());
    let lost = scene.has_lost();
    // Nothing but renewals is under way. The first one may be asked for its text; the second is known.
    soon("it is renewed", fast.deadline_after(seen_fast)).await;
    scene.proxy.lose_reply_to("EVALSHA");
    let seen = (fast.deadline(), fair.deadline());
    soon("it is renewed", fast.deadline_after(seen.0)).await;
    soon("it is renewed", fair.deadline_after(seen.1.max(seen_fair))).await;
    assert!(scene.has_lost() > lost);
    assert!(fast.is_held() && fair.is_held());
    fast.release().await.expect("it is ours");
    fair.release().await.expect("it is ours");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_that_loses_answers_loses_nothing_else() {
    let Some(scene) = Scene::new("redis").await else { return };
    let keeper = scene.keeper();
    for round in 0..6 {
        scene.proxy.lose_reply_to(["SET", "EVALSHA"][round % 2]);
        let tasks: Vec<_> = (0..100)
            .map(|at| {
                let lock = keeper.mutex(&format!("crowd/{at}")).lease(LEASE);
                tokio::spawn(async move {
                    let hold = lock.lock().await.expect("it is free");
                    hold.release().await.expect("it was ours, and is released");
                })
            })
            .collect();
        for task in tasks {
            soon("it ends", task).await.unwrap();
        }
        let left: Vec<String> = say(&mut raw(scene.server.port()).await, "KEYS", &["*crowd*"]).await;
        assert!(left.is_empty(), "{left:?}");
    }
    assert!(scene.has_lost() > 0);
}

/// The clock went back, so the number comes by a script of its own; its answer is lost, and it stands.
#[tokio::test]
async fn a_number_whose_answer_was_lost_is_told_once() {
    let Some(scene) = Scene::new("redis-stepped").await else { return };
    let (lock, first, second) = (name("x"), at_once(LEASE), at_once(LEASE));
    let before = take(&scene.store, &lock, &first).await;
    scene.server.step_clock("-1h").unwrap();
    assert_eq!(scene.store.leave(&lock, first.id, Keep::Nothing).await.unwrap(), Left::Released);
    // The first time it is asked for its text.
    let warm = at_once(LEASE);
    let mut last = take(&scene.store, &lock, &warm).await;
    assert!(last > before);
    assert_eq!(scene.store.leave(&lock, warm.id, Keep::Nothing).await.unwrap(), Left::Released);
    scene.proxy.lose_reply_to("EVALSHA");
    unknown(scene.store.enter(&lock, &second).await);
    scene.is_in_alone(&lock, &second).await;
    let told = take(&scene.store, &lock, &second).await;
    assert!(told > last);
    last = told;
    assert_eq!(take(&scene.store, &lock, &second).await, told);
    assert!(matches!(renew(&scene.store, &lock, &second).await, Renewal::Renewed { .. }));
    assert_eq!(scene.store.leave(&lock, second.id, Keep::Nothing).await.unwrap(), Left::Released);
    assert!(take(&scene.other, &lock, &at_once(LEASE)).await > last);
}
