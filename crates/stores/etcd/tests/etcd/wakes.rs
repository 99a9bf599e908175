//! News that do not come: the history was compacted, the stream was cut, or it went silent. Whoever waits gets in all the
//! same, at most an interval late, and afterwards news come by push again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::{Proxy, Which};
use lockkeeper_core::cell::{CellAction, CellOp};
use lockkeeper_core::store::Store;
use lockkeeper_core::{Hold, Keeper, Name};
use lockkeeper_etcd::{Etcd, Options};

use crate::common::*;

/// Ann goes straight to the server, Ben by a proxy.
struct Scene {
    proxy: Proxy,
    looks: Arc<Etcd>,
    ann: Keeper,
    ben: Keeper,
    lock: Name,
}

impl Scene {
    async fn new() -> Option<Scene> {
        let port = shared()?;
        let proxy = Proxy::to(port).unwrap();
        let by_proxy = Options { timeout: Duration::from_secs(1), ..options(&[proxy.port()]) };
        let ben = keeper(Etcd::open(by_proxy).await.unwrap());
        let (looks, ann) = (open(&[port]).await, keeper_at(&[port]).await);
        Some(Scene { proxy, looks, ann, ben, lock: fresh("wakes") })
    }

    /// Ann holds and Ben stands in line.
    async fn one_holds_one_waits(&self) -> (Hold, tokio::task::JoinHandle<Hold>) {
        let holds = soon("it is free", self.ann.mutex(self.lock.as_str()).lock()).await.unwrap();
        let waits = waits(&self.ben, &self.lock, SHARED);
        until_waiting(&self.looks, &self.lock, 1).await;
        (holds, waits)
    }

    async fn is_pushed(&self) {
        is_pushed(&self.ann, &self.ben, &self.looks, &self.lock).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_stream_costs_at_most_an_interval_and_comes_back() {
    let Some(scene) = Scene::new().await else { return };
    scene.is_pushed().await;
    let (holds, waits) = scene.one_holds_one_waits().await;
    let before = holds.token();
    scene.proxy.cut();
    holds.release().await.expect("it is ours");
    let next = within(INTERVAL + SLACK, "it gets in", waits).await.unwrap();
    assert!(next.token() > before);
    next.release().await.expect("it is ours");
    scene.is_pushed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_out_of_reach_for_a_while_is_found_again() {
    let Some(scene) = Scene::new().await else { return };
    let (holds, waits) = scene.one_holds_one_waits().await;
    let away = Duration::from_secs(3);
    let cut = Instant::now();
    scene.proxy.cut_for(away);
    holds.release().await.expect("it is ours");
    let next = within(away + INTERVAL + SLACK, "it gets in", waits).await.unwrap();
    assert!(cut.elapsed() >= away, "nobody could have told it: {:?}", cut.elapsed());
    next.release().await.expect("it is ours");
    scene.is_pushed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_went_silent_costs_an_interval_and_an_answer_and_is_made_again() {
    let Some(scene) = Scene::new().await else { return };
    let (holds, waits) = scene.one_holds_one_waits().await;
    // Only the one there is: it stays up and says nothing more, as when the other end has vanished.
    scene.proxy.only(Which::Open).freeze();
    holds.release().await.expect("it is ours");
    let next = within(INTERVAL + Duration::from_secs(1) + SLACK, "it gets in", waits).await.unwrap();
    next.release().await.expect("it is ours");
    scene.is_pushed().await;
}

/// Changes of other keys, as many as it takes for a compaction to mean something.
async fn many_changes(store: &Etcd, count: usize) {
    let cell = fresh("wakes");
    for number in 0..count {
        let action = CellAction::Put { value: number.to_string().into_bytes(), if_version: None };
        store.update(&cell, &CellOp { action, keep: None }).await.expect("it is put");
    }
}

async fn compact(port: u16, keys_below: &str) -> u64 {
    let newest = keys_under(port, keys_below).await.iter().map(|kv| kv.changed).max().expect("a key");
    etcdctl(port, &["compact", "--physical", &newest.to_string()]).await;
    newest
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_are_woken_though_the_history_they_stand_in_was_compacted() {
    // Of its own: compaction is for all keys of a server.
    let Some(server) = own() else { return };
    let port = server.port();
    let looks = open(&[port]).await;
    let (ann, ben, cid) = (keeper_at(&[port]).await, keeper_at(&[port]).await, keeper_at(&[port]).await);
    let lock = name("x");
    let holds = ann.mutex("x").lock().await.unwrap();
    let token = holds.token().unwrap();
    let second = waits(&ben, &lock, SHARED);
    until_waiting(&looks, &lock, 1).await;
    let third = waits(&cid, &lock, SHARED);
    until_waiting(&looks, &lock, 2).await;
    many_changes(&looks, 100).await;
    let compacted = compact(port, "").await;
    assert!(compacted > (token.as_u64() >> 10) + 100);
    many_changes(&looks, 20).await;
    holds.release().await.expect("it is ours");
    let second = within(INTERVAL + SLACK, "it gets in", second).await.unwrap();
    assert!(second.token() > Some(token));
    compact(port, "").await;
    second.release().await.expect("it is ours");
    within(INTERVAL + SLACK, "it gets in", third).await.unwrap().release().await.expect("it is ours");
    is_pushed(&ann, &ben, &looks, &lock).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hand_overs_go_on_while_the_history_is_compacted_all_the_time() {
    let Some(server) = own() else { return };
    let port = server.port();
    many_changes(&*open(&[port]).await, 1).await;
    let mut workers = Vec::new();
    for _ in 0..4 {
        let keeper = keeper_at(&[port]).await;
        workers.push(tokio::spawn(async move {
            let mut tokens = Vec::new();
            for _ in 0..25 {
                let hold = soon("it gets in", keeper.mutex("x").lock()).await.expect("a hold");
                tokens.push(hold.token().expect("a token"));
                hold.release().await.expect("it is ours");
            }
            tokens
        }));
    }
    let mut compactions = 0;
    while workers.iter().any(|worker| !worker.is_finished()) && compactions < 200 {
        many_changes(&*open(&[port]).await, 1).await;
        compact(port, "").await;
        compactions += 1;
    }
    let mut tokens = Vec::new();
    for worker in workers {
        tokens.extend(soon("it ends", worker).await.unwrap());
    }
    tokens.sort();
    assert!(tokens.is_sorted_by(|a, b| a < b), "a token was given twice");
    assert!(compactions > 1, "{compactions}");
}
