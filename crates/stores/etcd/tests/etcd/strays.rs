//! Questions that are heard late: after their claim has left, was refused, or was given up.
//!
//! A client knows two ways to the server. On the first everything takes four seconds from some moment on; after one second
//! it also asks by the second, and is answered there. What it asked by the first arrives when all is over, and must
//! not put anybody in the line.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_conformance::rig::{Counts, Proxy, Way};
use lockkeeper_core::store::{Keep, Left, Standing, Store};
use lockkeeper_core::{Claim, Effect, ErrorKind, Name};
use lockkeeper_etcd::{Etcd, Options};

use crate::common::*;

/// How late the slow way is: more than it takes to be answered by the other, to leave, and to look.
const LATE: Duration = Duration::from_secs(4);
/// How long somebody who arrived would be looked for. Without the mark they are there at once.
const LOOK: Duration = Duration::from_millis(500);

struct Scene {
    port: u16,
    slow: Proxy,
    quick: Proxy,
    store: Arc<Etcd>,
    other: Arc<Etcd>,
    lock: Name,
}

impl Scene {
    async fn new(options: impl FnOnce(&[u16]) -> Options) -> Option<Scene> {
        let port = shared()?;
        let (slow, quick) = (Proxy::to(port).unwrap(), Proxy::to(port).unwrap());
        let (store, other) = (open_by(slow.port(), &quick, options).await, open(&[port]).await);
        let scene = Scene { port, slow, quick, store, other, lock: fresh("strays") };
        // The lease that all claims share is there before anything is slow.
        let warm = mutex(SHARED);
        take(&scene.store, &scene.lock, &warm).await;
        leaves(&scene.store, &scene.lock, &warm).await;
        scene.slow.delay(Way::ToServer, LATE);
        Some(scene)
    }

    /// What went the slow way has been heard and answered, and nobody stands in the line by it.
    async fn nobody_comes(&self, before: Counts) {
        let slow = self.slow.only(lockkeeper_conformance::rig::Which::Nth(1));
        let arrives = move || slow.wait_for(LATE + SLACK, |counts| counts.to_client_bytes > before.to_client_bytes);
        assert!(tokio::task::spawn_blocking(arrives).await.unwrap(), "it arrives");
        let end = std::time::Instant::now() + LOOK;
        while std::time::Instant::now() < end {
            assert_eq!(keys_of(self.port, &self.lock).await, [], "a claim that has left stands in the line");
        }
        let next = at_once(SHARED);
        take(&self.other, &self.lock, &next).await;
        leaves(&self.other, &self.lock, &next).await;
    }

    /// What was sent so far on the slow way.
    fn counts(&self) -> Counts {
        self.slow.counts()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_has_left_does_not_come_late() {
    let Some(scene) = Scene::new(options).await else { return };
    let (before, claim) = (scene.counts(), mutex(SHARED));
    take(&scene.store, &scene.lock, &claim).await;
    assert_eq!(scene.counts().to_client_bytes, before.to_client_bytes, "it was answered the other way");
    leaves(&scene.store, &scene.lock, &claim).await;
    scene.nobody_comes(before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_refused_does_not_come_late() {
    let Some(scene) = Scene::new(options).await else { return };
    let holds = mutex(SHARED);
    take(&scene.other, &scene.lock, &holds).await;
    let before = scene.counts();
    let refused = scene.store.enter(&scene.lock, &at_once(SHARED)).await.unwrap();
    assert!(matches!(refused, Standing::Refused { .. }), "{refused:?}");
    assert_eq!(scene.counts().to_client_bytes, before.to_client_bytes, "it was answered the other way");
    // The line is empty when the question arrives that was asked for an empty line.
    leaves(&scene.other, &scene.lock, &holds).await;
    scene.nobody_comes(before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_dropped_does_not_come_late() {
    let Some(scene) = Scene::new(options).await else { return };
    let (before, claim) = (scene.counts(), mutex(SHARED));
    let dropped = tokio::time::timeout(LATE / 16, scene.store.enter(&scene.lock, &claim)).await;
    assert!(dropped.is_err(), "it was answered: {dropped:?}");
    let left = scene.store.leave(&scene.lock, claim.id, Keep::Nothing).await.unwrap();
    assert!(matches!(left, Left::NotHeld | Left::Unknown), "{left:?}");
    scene.nobody_comes(before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_was_dropped_does_not_come_late() {
    let Some(scene) = Scene::new(options).await else { return };
    let (before, keeper) = (scene.counts(), keeper(scene.store.clone()));
    let dropped = tokio::time::timeout(LATE / 16, keeper.mutex(scene.lock.as_str()).lock()).await;
    assert!(dropped.is_err(), "it was answered: {dropped:?}");
    scene.nobody_comes(before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_nobody_answered_in_time_does_not_come_late() {
    let impatient = |ports: &[u16]| Options { timeout: Duration::from_millis(1_500), ..options(ports) };
    let Some(scene) = Scene::new(impatient).await else { return };
    let (before, claim) = (scene.counts(), mutex(SHARED));
    scene.quick.delay(Way::ToServer, LATE);
    let error = scene.store.enter(&scene.lock, &claim).await.expect_err("both ways are slow");
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{error:?}");
    // What went this way arrives now, and stands until it leaves.
    scene.quick.delay(Way::ToServer, Duration::ZERO);
    soon("it leaves", async {
        while let Err(error) = scene.store.leave(&scene.lock, claim.id, Keep::Nothing).await {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        }
    })
    .await;
    scene.nobody_comes(before).await;
}

/// The mark is for one claim: the next one of the same client comes in, and so does the same name's waiter.
#[tokio::test(flavor = "multi_thread")]
async fn the_mark_of_one_claim_keeps_no_other_out() {
    let Some(scene) = Scene::new(options).await else { return };
    let (before, first, second) = (scene.counts(), mutex(SHARED), mutex(SHARED));
    let token = take(&scene.store, &scene.lock, &first).await;
    let waits = scene.other.enter(&scene.lock, &second).await.unwrap();
    assert!(matches!(waits, Standing::Waiting { ahead: 1, .. }), "{waits:?}");
    leaves(&scene.store, &scene.lock, &first).await;
    assert!(take(&scene.other, &scene.lock, &second).await > token);
    leaves(&scene.other, &scene.lock, &second).await;
    let third = mutex(SHARED);
    take(&scene.store, &scene.lock, &third).await;
    leaves(&scene.store, &scene.lock, &third).await;
    // Whoever left does not come back by asking again, either.
    let again = scene.store.enter(&scene.lock, &Claim { note: b"again".to_vec(), ..first }).await.unwrap();
    assert!(matches!(again, Standing::Refused { .. }), "{again:?}");
    scene.nobody_comes(before).await;
    // The mark hangs on the client's lease, and goes with it.
    let marks = format!("{{cell}}/{}", scene.lock);
    assert_ne!(keys_under(scene.port, &marks).await, []);
    scene.store.close().await.unwrap();
    assert_eq!(keys_under(scene.port, &marks).await, []);
}
