//! The connection that carries the subscription is cut or goes silent. Nothing is free meanwhile, holds are renewed on a
//! connection of their own, and afterwards news are pushed again.

use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::{Connections, Counts, Proxy, Server, Which};
use lockkeeper_core::{Hold, Keeper};

use super::cannot_know;
use crate::common::*;

/// With a lease like this a waiting claim asks every two seconds.
const LEASE: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_secs(2);
/// What a busy machine may add.
const SLACK: Duration = Duration::from_secs(1);

/// Ann goes straight to the server, Ben by a proxy.
struct Scene {
    server: Server,
    proxy: Proxy,
    ann: Keeper,
    ben: Keeper,
}

impl Scene {
    async fn new() -> Option<Scene> {
        let server = own("redis")?;
        let proxy = Proxy::to(server.port()).unwrap();
        let (ann, ben) = (quick_keeper(server.port()).await, quick_keeper(proxy.port()).await);
        Some(Scene { server, proxy, ann, ben })
    }

    /// Those of Ben's connections that news come by.
    fn subscription(&self) -> Connections {
        self.proxy.only(Which::Sent("SUBSCRIBE"))
    }

    /// Ann holds and Ben stands in line.
    async fn one_holds_one_waits(&self) -> (Hold, tokio::task::JoinHandle<Hold>) {
        let holds = soon("it is free", self.ann.mutex("x").lease(LEASE).lock()).await.unwrap();
        let waits = self.ben.mutex("x").lease(LEASE);
        let waits = tokio::spawn(async move { waits.lock().await.unwrap() });
        until_waiting(&*open(self.server.port()).await, &name("x"), 1).await;
        (holds, waits)
    }

    /// The next hand-over is a pushed one: Ben asks nothing between standing in line and holding.
    async fn is_pushed_again(&self) {
        let (holds, waits) = self.one_holds_one_waits().await;
        let asked = self.subscription().counts().to_server_bytes;
        let before = holds.token();
        holds.release().await.expect("it is ours");
        let next = soon("it is handed over", waits).await.unwrap();
        assert_eq!(self.subscription().counts().to_server_bytes, asked, "it came by asking, not by a push");
        assert!(next.token() > before);
        next.release().await.expect("it is ours");
    }
}

/// Waits for something to be seen at the proxy.
async fn seen(connections: &Connections, what: &str, wanted: impl Fn(&Counts) -> bool + Send + 'static) {
    let connections = connections.clone();
    let looked = tokio::task::spawn_blocking(move || connections.wait_for(Duration::from_secs(10), wanted));
    assert!(looked.await.unwrap(), "{what}: not within 10 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_cut_for_ten_seconds_comes_back() {
    let Some(scene) = Scene::new().await else { return };
    scene.is_pushed_again().await;
    let (holds, waits) = scene.one_holds_one_waits().await;
    let short = scene.ben.mutex("y").lease(Duration::from_secs(3)).lock().await.unwrap();
    let subscription = scene.subscription();
    let cut = Instant::now();
    subscription.cut_for(Duration::from_secs(10));
    seen(&subscription, "it tries to come back", |counts| counts.refused > 0).await;
    cannot_know(&scene.ben, "never-taken").await;
    // Whoever it is granted to does not hear of it.
    holds.release().await.expect("it is ours");

    let next = within(Duration::from_secs(10) + INTERVAL + SLACK, "it gets in", waits).await.unwrap();
    assert!(cut.elapsed() >= Duration::from_secs(9), "nobody could have told it: {:?}", cut.elapsed());
    assert!(short.is_held(), "renewals have a connection of their own");
    short.release().await.expect("it is ours");
    next.release().await.expect("it is ours");
    scene.is_pushed_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_went_silent_is_noticed_and_made_again() {
    let Some(scene) = Scene::new().await else { return };
    // Only the one there is: it stays up and says nothing more, as when the other end has vanished.
    let (holds, waits) = scene.one_holds_one_waits().await;
    scene.proxy.only(Which::Open).freeze();
    holds.release().await.expect("it is ours");
    let next = within(INTERVAL + Duration::from_millis(500) + SLACK, "it gets in", waits).await.unwrap();
    next.release().await.expect("it is ours");
    scene.is_pushed_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_all_is_silent_nothing_is_free_and_afterwards_all_goes_on() {
    let Some(scene) = Scene::new().await else { return };
    let (holds, waits) = scene.one_holds_one_waits().await;
    let subscription = scene.subscription();
    let before = subscription.counts().accepted;
    subscription.freeze();
    holds.release().await.expect("it is ours");
    seen(&subscription, "it tries again", move |counts| counts.accepted >= before + 3).await;
    cannot_know(&scene.ben, "never-taken").await;
    assert!(!waits.is_finished());

    subscription.thaw();
    let next = within(INTERVAL + SLACK, "it gets in", waits).await.unwrap();
    next.release().await.expect("it is ours");
    scene.is_pushed_again().await;
}
