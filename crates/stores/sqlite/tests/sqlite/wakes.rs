//! Waiters hear of news at once, in this process and from others, and dropping a wait leaves nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper_core::store::{Page, Standing, Store, Waiter};
use lockkeeper_core::{Claim, LockKind};
use lockkeeper_sqlite::Sqlite;
use tokio::time::timeout;

use crate::common::*;

/// Well before the net of 250 ms, the median of some rounds, so that one slow moment of the machine is no failure.
async fn median_handover(holder: &Sqlite, waiter: &Sqlite) -> Duration {
    let lock = name("handed/over");
    let mut times = Vec::new();
    for _ in 0..15 {
        let (first, second) = (mutex(LONG), mutex(LONG));
        acquire(holder, &lock, &first).await;
        let seen = waiter.enter(&lock, &second).await.unwrap();
        assert!(matches!(seen, Standing::Waiting { ahead: 1, .. }));
        let who = Waiter::Claim { id: second.id, seen: &seen };
        let waiting = async {
            waiter.wait(&lock, who, LONG).await.unwrap();
            Instant::now()
        };
        let leaving = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let left = Instant::now();
            release(holder, &lock, &first).await;
            left
        };
        let (woken, left) = tokio::join!(waiting, leaving);
        times.push(woken.saturating_duration_since(left));
        assert!(is_held(&waiter.enter(&lock, &second).await.unwrap()));
        release(waiter, &lock, &second).await;
    }
    times.sort();
    times[times.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_wakes_the_next_by_push() {
    let bench = Bench::new();
    let (one, two) = (bench.open().await, bench.open().await);
    let here = median_handover(&one, &one).await;
    let across = median_handover(&one, &two).await;
    eprintln!("woken after {here:?} in one store, {across:?} across two");
    assert!(here < Duration::from_millis(100), "{here:?}");
    assert!(across < Duration::from_millis(100), "{across:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaving_writer_wakes_all_readers_and_nobody_else() {
    let bench = Bench::new();
    let (one, two) = (bench.open().await, bench.open().await);
    let lock = name("shared");
    let sized = |weight| Claim { kind: LockKind::ReadWrite, capacity: 100, weight, ..mutex(LONG) };
    let writer = sized(100);
    acquire(&one, &lock, &writer).await;
    let mut readers = Vec::new();
    for at in 0..6 {
        let (claim, store) = (sized(1), Arc::clone(if at % 2 == 0 { &one } else { &two }));
        store.enter(&lock, &claim).await.unwrap();
        readers.push((store, claim));
    }
    let last = sized(100);
    let seen = two.enter(&lock, &last).await.unwrap();
    let waits = readers.iter().map(|(store, claim)| {
        let (store, id, lock) = (Arc::clone(store), claim.id, lock.clone());
        tokio::spawn(async move {
            let seen = Standing::Refused { retry_after: None };
            timeout(LONG, store.wait(&lock, Waiter::Claim { id, seen: &seen }, LONG)).await.unwrap().unwrap();
        })
    });
    let waits: Vec<_> = waits.collect();
    release(&one, &lock, &writer).await;
    for wait in waits {
        wait.await.unwrap();
    }
    let still = two.wait(&lock, Waiter::Claim { id: last.id, seen: &seen }, Duration::from_millis(600));
    let began = Instant::now();
    still.await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(600), "the writer behind them was not woken");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observer_hears_every_change() {
    let bench = Bench::new();
    let (one, two) = (bench.open().await, bench.open().await);
    let lock = name("observed");
    let print = |views: Vec<lockkeeper_core::store::LockView>| views.first().map_or(0, |view| view.fingerprint());
    let mut seen = 0;
    for watching in [&one, &two, &two] {
        let claim = mutex(LONG);
        for step in 0..3 {
            let change = async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                match step {
                    0 => drop(one.enter(&lock, &claim).await.unwrap()),
                    1 => drop(one.enter(&lock, &Claim { note: vec![7], ..claim.clone() }).await.unwrap()),
                    _ => release(&one, &lock, &claim).await,
                }
                Instant::now()
            };
            let watch = async {
                watching.wait(&lock, Waiter::Observer { seen }, LONG).await.unwrap();
                Instant::now()
            };
            let (changed, heard) = tokio::join!(change, watch);
            assert!(heard.saturating_duration_since(changed) < Duration::from_millis(240), "by push, not by the net");
            let now = print(watching.inspect(Page::of(&lock)).await.unwrap());
            assert_ne!(now, seen);
            seen = now;
        }
    }
    assert_eq!(seen, 0);
    // A renewal is no news.
    let claim = mutex(LONG);
    acquire(&one, &lock, &claim).await;
    let seen = print(one.inspect(Page::of(&lock)).await.unwrap());
    let held = [lockkeeper_core::store::Held { lock: lock.clone(), id: claim.id, lease: LONG * 2 }];
    let quiet = timeout(Duration::from_millis(300), two.wait(&lock, Waiter::Observer { seen }, LONG));
    let (quiet, _) = tokio::join!(quiet, one.renew(&held));
    assert!(quiet.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_is_over_already_returns_at_once() {
    let bench = Bench::new();
    let store = bench.open().await;
    let lock = name("a");
    let claim = mutex(LONG);
    let seen = store.enter(&lock, &claim).await.unwrap();
    let began = Instant::now();
    store.wait(&lock, Waiter::Claim { id: claim.id, seen: &seen }, LONG).await.unwrap();
    store.wait(&lock, Waiter::Claim { id: mutex(LONG).id, seen: &seen }, LONG).await.unwrap();
    store.wait(&lock, Waiter::Observer { seen: 0 }, LONG).await.unwrap();
    store.wait(&name("none"), Waiter::Observer { seen: 1 }, Duration::MAX).await.unwrap();
    store.wait(&name("none"), Waiter::Observer { seen: 0 }, Duration::ZERO).await.unwrap();
    assert!(began.elapsed() < LONG / 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_wait_costs_nobody_anything() {
    let bench = Bench::new();
    let (one, two) = (bench.open().await, bench.open().await);
    let lock = name("a");
    let (first, second) = (mutex(LONG), mutex(LONG));
    acquire(&one, &lock, &first).await;
    let seen = two.enter(&lock, &second).await.unwrap();
    for patience in [0, 1, 2, 5, 20] {
        let wait = two.wait(&lock, Waiter::Claim { id: second.id, seen: &seen }, LONG);
        assert!(timeout(Duration::from_millis(patience), wait).await.is_err());
    }
    release(&one, &lock, &first).await;
    timeout(LONG, acquire(&two, &lock, &second)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_find_out_without_wake_files() {
    let bench = Bench::new();
    let (one, two) = (bench.open().await, bench.open().await);
    // A file where the directory should be: no wake-up can be sent or heard.
    let mut wake = bench.path().into_os_string();
    wake.push("-wake");
    std::fs::write(&wake, b"").unwrap();
    let lock = name("a");
    let (first, second) = (mutex(LONG), mutex(LONG));
    acquire(&one, &lock, &first).await;
    let (_, ()) = tokio::join!(timeout(LONG, acquire(&two, &lock, &second)), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        release(&one, &lock, &first).await;
    });
    // And with wake files that are removed under us.
    std::fs::remove_file(&wake).unwrap();
    let three = bench.open().await;
    let third = mutex(LONG);
    let (_, ()) = tokio::join!(timeout(LONG, acquire(&three, &lock, &third)), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        std::fs::remove_dir_all(&wake).unwrap();
        release(&two, &lock, &second).await;
    });
}
