//! The server is killed and started again. With its data on disk nothing changes for holders; without, they are told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::Server;
use lockkeeper_core::store::Survives;
use lockkeeper_core::{ErrorKind, Keeper};

use super::{Fence, Told, cannot_know, unique_and_rising};
use crate::common::*;

/// Long enough for a server to come back in, with renewals soon after.
const LEASE: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_outlives_a_kill_where_it_is_on_disk() {
    let Some(mut server) = own("redis-durable") else { return };
    let (ann, ben) = (quick_keeper(server.port()).await, quick_keeper(server.port()).await);
    assert_eq!(ann.profile().survives, Survives::PrimaryOnly);
    let alone = ann.mutex("alone").lease(LEASE).lock().await.unwrap();
    let crowded = ann.mutex("crowded").lease(LEASE).lock().await.unwrap();
    let waits = ben.mutex("crowded").lease(LEASE).wait(Duration::from_secs(20));
    let waits = tokio::spawn(async move { waits.lock().await });
    until_waiting(&*open(server.port()).await, &name("crowded"), 1).await;
    let (seen_alone, seen_crowded) = (alone.deadline(), crowded.deadline());

    server.kill().unwrap();
    cannot_know(&ben, "alone").await;
    cannot_know(&ben, "never-taken").await;
    server.restart().unwrap();

    let nobody = ben.mutex("alone").try_lock().await.expect("the server is back");
    assert!(nobody.is_none(), "it was acknowledged to another");
    soon("it is renewed on", alone.deadline_after(seen_alone)).await;
    soon("it is renewed on", crowded.deadline_after(seen_crowded)).await;
    assert!(alone.is_held() && crowded.is_held() && !waits.is_finished());

    let before = crowded.token();
    crowded.release().await.expect("it was ours all the time");
    let next = soon("the one that waited is in", waits).await.unwrap().unwrap();
    assert!(next.token() > before);
    alone.release().await.expect("it was ours all the time");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_persistence_the_lock_passes_on_and_its_holder_is_told() {
    let Some(mut server) = own("redis") else { return };
    let (ann, ben) = (quick_keeper(server.port()).await, quick_keeper(server.port()).await);
    assert_eq!(ann.profile().survives, Survives::Nothing);
    let (fence, crowded_fence) = (Fence::default(), Fence::default());
    let alone = ann.mutex("alone").lease(LEASE).lock().await.unwrap();
    let crowded = ann.mutex("crowded").lease(LEASE).lock().await.unwrap();
    assert!(fence.enter(alone.token()) && crowded_fence.enter(crowded.token()));
    let waits = ben.mutex("crowded").lease(LEASE).wait(Duration::from_secs(20));
    let waits = tokio::spawn(async move { waits.lock().await });
    until_waiting(&*open(server.port()).await, &name("crowded"), 1).await;

    server.kill().unwrap();
    cannot_know(&ben, "alone").await;
    server.restart().unwrap();

    // For a moment there are two: the server knows of none, and the first has not asked yet. The fence knows.
    let second = ben.mutex("alone").lease(LEASE).try_lock().await.expect("the server is back");
    let second = second.expect("the server has lost its data");
    let third = soon("the one that waited is in", waits).await.unwrap().unwrap();
    assert!(fence.enter(second.token()) && crowded_fence.enter(third.token()));
    assert!(!fence.enter(alone.token()) && !crowded_fence.enter(crowded.token()), "tokens rise over a loss of data");

    for hold in [alone, crowded] {
        let lost = within(LEASE, "its holder is told", hold.lost()).await;
        assert!(lost.to_string().contains("no longer has it"), "told by a renewal, before it ran out: {lost}");
        assert_eq!(hold.release().await.expect_err("it is gone").kind(), ErrorKind::Lost);
    }
    // What the first did when it was told has not hurt the others.
    assert!(second.is_held() && third.is_held());
    second.release().await.expect("it is ours");
    third.release().await.expect("it is ours");
}

/// Several keepers take two locks again and again while the server is killed and started: all that they were told.
async fn through_kills(server: &mut Server, kills: usize) -> (Vec<Told>, usize) {
    let told = Arc::new(Mutex::new(Vec::<Told>::new()));
    let (over, together) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let inside = [Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0))];
    let mut workers = Vec::new();
    for worker in 0..6 {
        let (keeper, lock, inside) =
            (quick_keeper(server.port()).await, name(["left", "right"][worker % 2]), inside[worker % 2].clone());
        let (told, over, together) = (told.clone(), over.clone(), together.clone());
        workers.push(tokio::spawn(async move {
            while !over.load(Ordering::SeqCst) {
                let asked = Instant::now();
                let hold = take_one(&keeper, lock.as_str()).await;
                let (token, got) = (hold.token().expect("a token"), Instant::now());
                together.fetch_add(inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                told.lock().unwrap().push(Told { name: lock.clone(), token, asked, got });
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                // Not confirmed is not wrong: the server may just have gone.
                let _ = hold.release().await;
            }
        }));
    }
    for _ in 0..kills {
        let before = told.lock().unwrap().len();
        until("holds are taken", || async { told.lock().unwrap().len() >= before + 60 }).await;
        server.kill().unwrap();
        server.restart().unwrap();
    }
    over.store(true, Ordering::SeqCst);
    for worker in workers {
        soon("the worker ends", worker).await.unwrap();
    }
    let all = std::mem::take(&mut *told.lock().unwrap());
    (all, together.load(Ordering::SeqCst))
}

async fn take_one(keeper: &Keeper, name: &str) -> lockkeeper_core::Hold {
    let lock = keeper.mutex(name).lease(Duration::from_secs(2)).wait(Duration::from_secs(20));
    lock.lock().await.expect("it comes free")
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_unique_and_rise_through_losses_of_all_data() {
    let Some(mut server) = own("redis") else { return };
    let (told, _) = through_kills(&mut server, 6).await;
    assert!(told.len() >= 360, "{}", told.len());
    unique_and_rising(told);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_holds_together_through_kills_of_a_durable_server() {
    let Some(mut server) = own("redis-durable") else { return };
    let (told, together) = through_kills(&mut server, 6).await;
    assert!(told.len() >= 360, "{}", told.len());
    assert_eq!(together, 0, "of {} holds", told.len());
    unique_and_rising(told);
}
