//! What a user sees of a mutex: one at a time, tokens that rise, releases that say what happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lockkeeper_core::store::{Keep, Order, Tokens};
use lockkeeper_core::{Effect, ErrorKind, Hold, Keeper, Name};
use tokio::task::JoinSet;

use super::{SOON, release, standing, until_standing};
use crate::{Outcome, World};

/// Waits as long as a law may take.
async fn lock(world: &World, keeper: &Keeper, name: &Name) -> Hold {
    world.lock(keeper, name).wait(SOON * 4).lock().await.expect("a lock")
}

/// Four clients with three tasks each: nobody is ever in together, every round is counted, every token is greater.
pub async fn two_never_hold_at_once(world: World) -> Outcome {
    const ROUNDS: u64 = 8;
    let name = world.name();
    let (inside, total, last) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let tokens = world.profile().await.tokens != Tokens::None;
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let keeper = world.keeper().await;
        for _ in 0..3 {
            let (world, keeper, name) = (world.clone(), keeper.clone(), name.clone());
            let (inside, total, last) = (inside.clone(), total.clone(), last.clone());
            tasks.spawn(async move {
                for _ in 0..ROUNDS {
                    let hold = lock(&world, &keeper, &name).await;
                    assert!(!inside.swap(true, Ordering::SeqCst), "two hold at once");
                    let seen = total.load(Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    total.store(seen + 1, Ordering::SeqCst);
                    if tokens {
                        let token = hold.token().expect("a token").as_u64();
                        let before = last.swap(token, Ordering::SeqCst);
                        assert!(token > before, "token {token} after {before}");
                    }
                    assert!(hold.is_held());
                    inside.store(false, Ordering::SeqCst);
                    release(hold).await;
                }
            });
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task");
    }
    assert_eq!(total.load(Ordering::SeqCst), 4 * 3 * ROUNDS);
    until_standing(&world.store().await, &name, 0, SOON).await;
    Ok(())
}

/// Of two conflicting holds the later has the greater token, across clients, releases and drops.
pub async fn tokens_rise_between_conflicting_holds(world: World) -> Outcome {
    world.needs(&world.profile().await.tokens, &[Tokens::Monotone, Tokens::Floored])?;
    let name = world.name();
    let keepers = [world.keeper().await, world.keeper().await];
    let mut last = None;
    for round in 0..20 {
        let hold = lock(&world, &keepers[round % 2], &name).await;
        assert!(hold.token() > last, "{:?} after {last:?}", hold.token());
        last = hold.token();
        if round % 3 == 0 {
            drop(hold);
        } else {
            release(hold).await;
        }
    }
    Ok(())
}

/// A held lock is `None` to those who try, and free again after its release.
pub async fn a_held_lock_is_not_taken_twice(world: World) -> Outcome {
    let (one, other, name) = (world.keeper().await, world.keeper().await, world.name());
    let hold = world.lock(&one, &name).try_lock().await.expect("an answer").expect("it is free");
    assert!(world.lock(&other, &name).try_lock().await.expect("an answer").is_none());
    assert!(world.lock(&one, &name).try_lock().await.expect("an answer").is_none());
    release(hold).await;
    // Under lost replies a release may still be on its way.
    release(lock(&world, &other, &name).await).await;
    Ok(())
}

/// C3: a living hold is renewed, for as long as it lives.
pub async fn a_hold_outlives_its_lease(world: World) -> Outcome {
    let (keeper, other, name) = (world.keeper().await, world.keeper().await, world.name());
    let lease = world.short_lease().await;
    let hold = world.lock(&keeper, &name).lease(lease).lock().await.expect("a lock");
    let end = Instant::now() + lease * 3;
    let mut seen = hold.deadline();
    while Instant::now() < end {
        let moved = tokio::time::timeout(SOON, hold.deadline_after(seen)).await.expect("a renewal");
        assert!(moved > seen && hold.is_held());
        seen = moved;
        assert!(world.lock(&other, &name).try_lock().await.expect("an answer").is_none());
    }
    release(hold).await;
    Ok(())
}

/// C6: a hold that goes out of scope is released in the background.
pub async fn a_dropped_hold_is_released(world: World) -> Outcome {
    let (keeper, other, name) = (world.keeper().await, world.keeper().await, world.name());
    drop(lock(&world, &keeper, &name).await);
    release(lock(&world, &other, &name).await).await;
    until_standing(&world.store().await, &name, 0, SOON).await;
    Ok(())
}

/// C5: a release that worked says so; one of a lock that was not ours any more says that.
pub async fn a_release_says_what_happened(world: World) -> Outcome {
    world.needs_every_call()?;
    let (keeper, name) = (world.keeper().await, world.name());
    lock(&world, &keeper, &name).await.release().await.expect("it was ours");
    let hold = lock(&world, &keeper, &name).await;
    keeper.break_claim(name.as_str(), hold.claim_id(), Keep::Nothing).await.expect("an answer");
    let error = hold.release().await.expect_err("it was broken");
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Lost, Effect::None));
    Ok(())
}

/// Spinning gets in too, without ever standing in line.
pub async fn a_spinning_lock_gets_in(world: World) -> Outcome {
    let (keeper, other, name) = (world.keeper().await, world.keeper().await, world.name());
    let hold = lock(&world, &keeper, &name).await;
    let spinning = world.lock(&other, &name).spin().wait(SOON);
    let spinner = tokio::spawn(async move { spinning.lock().await });
    let store = world.store().await;
    for _ in 0..20 {
        assert_eq!(standing(&store, &name).await, 1);
        tokio::task::yield_now().await;
    }
    release(hold).await;
    release(spinner.await.expect("a task").expect("a lock")).await;
    Ok(())
}

/// A fair lock is only made where the line is served in order.
pub async fn a_fair_lock_needs_order(world: World) -> Outcome {
    let (keeper, name) = (world.keeper().await, world.name());
    let fair = world.lock(&keeper, &name).fair().wait(SOON).lock().await;
    match world.profile().await.order {
        Order::Fifo => release(fair.expect("it is supported")).await,
        Order::Barging => assert_eq!(fair.expect_err("it is not").kind(), ErrorKind::Unsupported),
    }
    Ok(())
}

/// What is outside the limits is `Invalid`, with nothing sent.
pub async fn bad_input_changes_nothing(world: World) -> Outcome {
    let (keeper, name) = (world.keeper().await, world.name());
    let mutex = || world.lock(&keeper, &name);
    let tries = [
        keeper.mutex("").lock().await,
        keeper.mutex("a//b").lock().await,
        keeper.mutex("white space").lock().await,
        mutex().lease(Duration::from_millis(1)).lock().await,
        mutex().lease(Duration::from_secs(90_000)).lock().await,
        mutex().lock_delay(Duration::from_secs(61)).lock().await,
        mutex().note(vec![0; 5_000]).lock().await,
    ];
    for attempt in tries {
        let error = attempt.expect_err("it is refused");
        assert_eq!((error.kind(), error.effect()), (ErrorKind::Invalid, Effect::None), "{error:?}");
    }
    assert_eq!(standing(&world.store().await, &name).await, 0);
    Ok(())
}

/// Closing a keeper ends its holds, tells them, and frees their locks at once.
pub async fn closing_a_keeper_releases_its_holds(world: World) -> Outcome {
    let (keeper, name) = (world.keeper().await, world.name());
    let hold = lock(&world, &keeper, &name).await;
    let lost = hold.lost();
    keeper.close().await.expect("it closes");
    tokio::time::timeout(SOON, lost).await.expect("it is told");
    assert!(!hold.is_held());
    assert_eq!(world.lock(&keeper, &name).try_lock().await.expect_err("it is closed").kind(), ErrorKind::Closed);
    assert_eq!(standing(&world.store().await, &name).await, 0);
    Ok(())
}

/// The name stays taken for `at_least`, also after an early release.
pub async fn at_least_keeps_the_name_taken(world: World) -> Outcome {
    let (keeper, name) = (world.keeper().await, world.name());
    let at_least = Duration::from_millis(700);
    let before = Instant::now();
    let hold = world.lock(&keeper, &name).at_least(at_least).wait(SOON).lock().await.expect("a lock");
    release(hold).await;
    let next = lock(&world, &keeper, &name).await;
    assert!(before.elapsed() >= at_least, "in after {:?}", before.elapsed());
    release(next).await;
    Ok(())
}

/// `at_least` counts from when the lock was taken, not from when its taker began to wait for it.
pub async fn at_least_counts_from_the_taking(world: World) -> Outcome {
    let (keeper, other, name) = (world.keeper().await, world.keeper().await, world.name());
    let at_least = Duration::from_millis(700);
    let first = lock(&world, &keeper, &name).await;
    let waits = world.lock(&other, &name).at_least(at_least).wait(SOON);
    let waiting = tokio::spawn(async move { waits.lock().await.map(|hold| (hold, Instant::now())) });
    until_standing(&world.store().await, &name, 2, SOON).await;
    // It waits for longer than it will keep the name.
    tokio::time::sleep(at_least + Duration::from_millis(200)).await;
    release(first).await;
    let (second, taken) = waiting.await.expect("a task").expect("a lock");
    release(second).await;
    release(lock(&world, &keeper, &name).await).await;
    assert!(taken.elapsed() >= at_least - Duration::from_millis(50), "in {:?} after it was taken", taken.elapsed());
    Ok(())
}

/// Work that runs under a hold is dropped when the hold is lost, and only then.
pub async fn work_is_cancelled_when_the_hold_is_lost(world: World) -> Outcome {
    let (keeper, name) = (world.keeper().await, world.name());
    let hold = world.lock(&keeper, &name).lease(world.short_lease().await).wait(SOON).lock().await.expect("a lock");
    assert_eq!(hold.run(async { 7 }).await.expect("it is held"), 7);
    let id = hold.claim_id();
    let breaker = tokio::spawn(async move {
        loop {
            match keeper.break_claim(name.as_str(), id, Keep::Nothing).await {
                Err(error) if error.is_transient() => {}
                done => break done.map(|_| ()).expect("an answer"),
            }
        }
    });
    let cancelled = tokio::time::timeout(SOON, hold.run(std::future::pending::<()>())).await.expect("it is told");
    assert!(cancelled.is_err() && hold.lost_token().is_cancelled());
    breaker.await.expect("a task");
    Ok(())
}
