//! The server acts and its answer is lost: asking again finds what stands there, as it is now and on the lease it is on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::Proxy;
use lockkeeper_core::store::{Held, Keep, Left, Renewal, Standing, Store};
use lockkeeper_core::{Claim, Effect, ErrorKind, Name};
use lockkeeper_etcd::{Etcd, Options};

use crate::common::*;

/// A client whose answers can be lost, and one that sees what there is.
struct Scene {
    port: u16,
    proxy: Proxy,
    store: Arc<Etcd>,
    other: Arc<Etcd>,
    lock: Name,
}

impl Scene {
    /// The lease that claims of this length share is there already, and has just begun.
    async fn new(lease: Duration) -> Option<Scene> {
        let port = shared()?;
        let proxy = Proxy::to(port).unwrap();
        let options = Options { timeout: Duration::from_millis(700), lease, ..options(&[proxy.port()]) };
        let (store, other) = (Etcd::open(options).await.unwrap(), open(&[port]).await);
        let scene = Scene { port, proxy, store, other, lock: fresh("replies") };
        let warm = mutex(lease);
        take(&scene.store, &scene.lock, &warm).await;
        leaves(&scene.store, &scene.lock, &warm).await;
        Some(scene)
    }

    /// The claim is put and nobody is told.
    async fn enters_unheard(&self, claim: &Claim) {
        self.proxy.drop_replies(true);
        let error = self.store.enter(&self.lock, claim).await.expect_err("the answer was lost");
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{error:?}");
        self.hears_again(1).await;
    }

    /// Once the server has done what it was asked, and so many stand in the line.
    async fn hears_again(&self, stand: usize) {
        until("the server acts", || async { keys_of(self.port, &self.lock).await.len() == stand }).await;
        self.proxy.drop_replies(false);
        self.proxy.cut();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_put_unheard_is_one_hold() {
    let Some(scene) = Scene::new(SHARED).await else { return };
    for claim in [mutex(SHARED), at_once(SHARED)] {
        scene.enters_unheard(&claim).await;
        let token = take(&scene.store, &scene.lock, &claim).await;
        assert_eq!(take(&scene.store, &scene.lock, &claim).await, token, "one token");
        let keys = keys_of(scene.port, &scene.lock).await;
        assert_eq!(keys.iter().map(|kv| kv.created).collect::<Vec<_>>(), [token.as_u64() >> 10]);
        assert!(matches!(renew(&scene.store, &scene.lock, &claim).await, Renewal::Renewed { .. }));

        leaves(&scene.store, &scene.lock, &claim).await;
        assert_eq!(keys_of(scene.port, &scene.lock).await, []);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_has_left_unheard_leaves_once() {
    let Some(scene) = Scene::new(SHARED).await else { return };
    let (claim, next) = (mutex(SHARED), mutex(SHARED));
    let token = take(&scene.store, &scene.lock, &claim).await;
    scene.proxy.drop_replies(true);
    let error = scene.store.leave(&scene.lock, claim.id, Keep::Nothing).await.expect_err("the answer was lost");
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Unavailable, Effect::Unknown), "{error:?}");
    scene.hears_again(0).await;
    assert!(take(&scene.other, &scene.lock, &next).await > token);
    let left = scene.store.leave(&scene.lock, claim.id, Keep::Nothing).await.unwrap();
    assert!(matches!(left, Left::NotHeld | Left::Unknown), "{left:?}");
    leaves(&scene.other, &scene.lock, &next).await;
}

/// Somebody breaks it between the question and its repetition: it is not in, however it asks.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_put_unheard_and_broken_is_not_in() {
    let Some(scene) = Scene::new(SHARED).await else { return };
    let claim = mutex(SHARED);
    scene.enters_unheard(&claim).await;
    assert_eq!(scene.other.leave(&scene.lock, claim.id, Keep::Lease).await.unwrap(), Left::Released);
    let told = scene.store.enter(&scene.lock, &claim).await.unwrap();
    assert!(matches!(told, Standing::Refused { .. }), "{told:?}");
    scene.other.leave(&scene.lock, claim.id, Keep::Nothing).await.unwrap();
}

/// The question is repeated when the lease it was put on is over for us, but not yet for the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_put_unheard_is_told_the_lease_it_is_on() {
    let (lease, claim) = (Duration::from_secs(3), mutex(Duration::from_secs(3)));
    let mut put = Instant::now();
    let mut scene = None;
    // On a busy machine the lease may be due to be kept alive before the claim is put, and is asked for in vain.
    for _ in 0..5 {
        let Some(fresh) = Scene::new(lease).await else { return };
        put = Instant::now();
        fresh.proxy.drop_replies(true);
        fresh.store.enter(&fresh.lock, &claim).await.expect_err("the answer was lost");
        if keys_of(fresh.port, &fresh.lock).await.len() == 1 {
            scene = Some(fresh);
            break;
        }
    }
    let scene = scene.expect("it is put");
    scene.hears_again(1).await;
    tokio::time::sleep((lease + Duration::from_millis(50)).saturating_sub(put.elapsed())).await;
    let told = scene.store.enter(&scene.lock, &claim).await.unwrap();
    let Standing::Held { lease: told, .. } = told else { panic!("nobody else is there: {told:?}") };
    assert!(told > Duration::ZERO);
    // Whichever it is on now, what was told is of that one: a renewal finds it there.
    let held = [Held { lock: scene.lock.clone(), id: claim.id, lease }];
    let renewed = scene.store.renew(&held).await.unwrap();
    assert!(matches!(renewed[0], Renewal::Renewed { .. }), "{renewed:?}");
    leaves(&scene.store, &scene.lock, &claim).await;
}
