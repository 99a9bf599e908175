//! The one thread behind a store: closing, order, isolation, many at once.

use std::sync::Arc;
use std::time::Duration;

use lockkeeper_core::cell::{CellAction, CellOp, CellReply};
use lockkeeper_core::store::{Held, Keep, Left, Page, Renewal, Store, Waiter};
use lockkeeper_core::time::Clock;
use lockkeeper_core::{Effect, ErrorKind};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::common::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_store_answers_closed() {
    let bench = Bench::new();
    let store = bench.open().await;
    let (lock, claim) = (name("a"), mutex(LONG));
    acquire(&store, &lock, &claim).await;
    let seen = store.enter(&lock, &claim).await.unwrap();
    let waiting = Arc::clone(&store);
    let waiter = tokio::spawn(async move { waiting.wait(&name("b"), Waiter::Observer { seen: 0 }, LONG).await });
    tokio::time::sleep(Duration::from_millis(30)).await;
    store.close().await.unwrap();
    store.close().await.unwrap();
    let closed = |kind| assert_eq!(kind, ErrorKind::Closed);
    closed(timeout(LONG, waiter).await.unwrap().unwrap().unwrap_err().kind());
    closed(store.enter(&lock, &claim).await.unwrap_err().kind());
    closed(store.wait(&lock, Waiter::Claim { id: claim.id, seen: &seen }, LONG).await.unwrap_err().kind());
    closed(store.leave(&lock, claim.id, Keep::Nothing).await.unwrap_err().kind());
    closed(store.inspect(Page::first(1)).await.unwrap_err().kind());
    closed(store.read(&lock).await.unwrap_err().kind());
    let held = [Held { lock: lock.clone(), id: claim.id, lease: LONG }];
    closed(store.renew(&held).await.unwrap_err().kind());
    assert!(!bench.directory.path().join("locks.db-wal").exists(), "the last one out cleans up");
    // What was held is held.
    let again = bench.open().await;
    assert!(!is_held(&again.enter(&lock, &at_once(LONG)).await.unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_store_ends_its_threads() {
    let bench = Bench::new();
    let store = bench.open().await;
    timeout(Duration::from_millis(20), store.wait(&name("b"), Waiter::Observer { seen: 0 }, LONG)).await.unwrap_err();
    drop(store);
    // The last connection to go takes the WAL with it.
    let gone = async {
        while bench.directory.path().join("locks.db-wal").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_enter_is_undone_by_the_leave_after_it() {
    let bench = Bench::new();
    let store = bench.open().await;
    let lock = name("a");
    for _ in 0..200 {
        let claim = mutex(LONG);
        // Polled once, so that it is on its way, and dropped.
        let entering = store.enter(&lock, &claim);
        timeout(Duration::ZERO, entering).await.ok();
        store.leave(&lock, claim.id, Keep::Nothing).await.unwrap();
        assert!(store.inspect(Page::of(&lock)).await.unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_call_does_not_hurt_the_others() {
    let bench = Bench::new();
    let store = bench.open().await;
    bench.raw().execute_batch(include_str!("poison.sql")).unwrap();
    let mut calls = JoinSet::new();
    for at in 0..300 {
        let store = Arc::clone(&store);
        calls.spawn(async move {
            let lock = if at % 7 == 0 { "poison".to_owned() } else { format!("good/{at}") };
            let entered = store.enter(&name(&lock), &mutex(LONG)).await;
            let added = store.update(&name("sum"), &CellOp::new(CellAction::Add { by: 1 })).await;
            assert!(matches!(added.unwrap(), CellReply::Number { .. }));
            match entered {
                Ok(standing) => assert!(at % 7 != 0 && is_held(&standing)),
                Err(error) => {
                    assert!(at % 7 == 0);
                    assert_eq!((error.kind(), error.effect()), (ErrorKind::Foreign, Effect::None));
                }
            }
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    // Nothing was run twice.
    assert_eq!(store.read(&name("sum")).await.unwrap().unwrap().value, b"300");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_is_unknown_and_is_not_tried_again() {
    let bench = Bench::new();
    let store = bench.open().await;
    bench.raw().execute_batch(include_str!("poison_commit.sql")).unwrap();
    let error = store.enter(&name("poison"), &mutex(LONG)).await.unwrap_err();
    assert_eq!(error.effect(), Effect::Unknown, "{error:?}");
    // What comes after it is not hurt.
    assert!(is_held(&store.enter(&name("good"), &mutex(LONG)).await.unwrap()));
    assert!(store.inspect(Page::of(&name("poison"))).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_holds_are_renewed_in_pieces() {
    let bench = Bench::new();
    let store = bench.open().await;
    let mut entering = JoinSet::new();
    for at in 0..5_000 {
        let store = Arc::clone(&store);
        entering.spawn(async move {
            let (lock, claim) = (name(&format!("many/{at}")), mutex(LONG));
            assert!(is_held(&store.enter(&lock, &claim).await.unwrap()));
            Held { lock, id: claim.id, lease: LONG * 2 }
        });
    }
    let mut held = entering.join_all().await;
    held[17].id = mutex(LONG).id;
    let renewing = tokio::spawn({
        let (store, held) = (Arc::clone(&store), held.clone());
        async move {
            let began = std::time::Instant::now();
            (store.renew(&held).await.unwrap(), began.elapsed())
        }
    });
    // Others get in between.
    let mut between = 0;
    while !renewing.is_finished() {
        store.enter(&name("other"), &at_once(LONG)).await.unwrap();
        between += 1;
    }
    let (renewals, took) = renewing.await.unwrap();
    eprintln!("5,000 renewals took {took:?}, with {between} other calls between them");
    assert!(between >= 3);
    for (at, renewal) in renewals.iter().enumerate() {
        match renewal {
            Renewal::Gone => assert_eq!(at, 17),
            Renewal::Renewed { lease } => assert!(*lease > LONG && at != 17),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_never_hold_together() {
    let bench = Bench::new();
    let stores = [bench.open().await, bench.open().await];
    let inside = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for at in 0..16 {
        let (store, inside) = (Arc::clone(&stores[at % 2]), Arc::clone(&inside));
        tasks.spawn(async move {
            let mut tokens = Vec::new();
            for _ in 0..15 {
                let claim = mutex(LONG);
                tokens.push(acquire(&store, &name("one"), &claim).await);
                assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                tokio::task::yield_now().await;
                inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                assert_eq!(store.leave(&name("one"), claim.id, Keep::Nothing).await.unwrap(), Left::Released);
            }
            tokens
        });
    }
    let mut tokens = tasks.join_all().await.concat();
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 16 * 15);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_comes_by_for_is_tidied_away() {
    let (bench, clock) = (Bench::new(), Clock::adjustable());
    let old = bench.open_in(&clock, "old").await;
    let store = bench.open_in(&clock, "new").await;
    let put = CellOp { action: CellAction::Put { value: vec![1], if_version: None }, keep: Some(LONG) };
    for (at, from) in [&old, &store].into_iter().enumerate() {
        acquire(from, &name(&format!("forgotten/{at}")), &mutex(LONG)).await;
        from.update(&name(&format!("forgotten/{at}")), &put).await.unwrap();
        timeout(Duration::from_millis(30), from.wait(&name("seen"), Waiter::Observer { seen: 0 }, LONG)).await.ok();
    }
    let raw = bench.raw();
    let rows = || -> i64 { raw.query_row(include_str!("rows.sql"), [], |row| row.get(0)).unwrap() };
    assert!(rows() >= 6);
    // Any writing tidies now and then; what is of another epoch needs to be seen twice.
    let tidied = async {
        while rows() > 0 {
            clock.jump(LONG);
            for _ in 0..50 {
                store.leave(&name("other"), mutex(LONG).id, Keep::Nothing).await.unwrap();
            }
        }
    };
    timeout(LONG * 2, tidied).await.unwrap();
}
