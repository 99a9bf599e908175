//! Waiting: bounded, woken, and gone without a trace when it is given up.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use lockkeeper_core::store::{Waiter, Wake};
use lockkeeper_core::{ErrorKind, layers};

use super::{SOON, enter, hold, leave, queue, until_standing, view};
use crate::meddle::{Deed, Meddle};
use crate::{Outcome, World};

/// A wait ends when it was asked to, says `Timeout`, and leaves the line.
pub async fn a_wait_is_bounded(world: World) -> Outcome {
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let holder = world.claim();
    hold(&store, &name, &holder).await;
    let (wait, before) = (Duration::from_millis(300), Instant::now());
    let error = world.lock(&keeper, &name).wait(wait).lock().await.expect_err("it is held");
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
    assert!(before.elapsed() >= wait && before.elapsed() < SOON, "after {:?}", before.elapsed());
    until_standing(&store, &name, 1, SOON).await;
    assert_eq!(view(&store, &name).await.expect("a line").claims[0].id, holder.id);
    Ok(())
}

/// C7: whoever waits is in well before it would have asked again. (A timing check: the best of a few counts.)
pub async fn a_release_wakes_the_next(world: World) -> Outcome {
    world.needs(&world.profile().await.wake, &[Wake::Push])?;
    world.needs_every_call()?;
    let (keeper, other, store) = (world.keeper().await, world.keeper().await, world.store().await);
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let name = world.name();
        let first = world.lock(&keeper, &name).lock().await.expect("a lock");
        let next = world.lock(&other, &name);
        let waiting = tokio::spawn(async move { next.lock().await });
        until_standing(&store, &name, 2, SOON).await;
        // Long enough for the waiter to be asleep, far shorter than the 1.6 s after which it asks again.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let released = Instant::now();
        first.release().await.expect("it was ours");
        drop(waiting.await.expect("a task").expect("a lock"));
        best = best.min(released.elapsed());
    }
    assert!(best < Duration::from_millis(200), "the fastest hand-over took {best:?}");
    Ok(())
}

/// C7: a wake-up that never comes costs one interval, not the lock.
pub async fn a_missed_wake_up_costs_one_interval(world: World) -> Outcome {
    let (keeper, name) = (world.keeper().await, world.name());
    let deaf = Meddle::new(|call, _| match call {
        // The news arrives long after anybody would have asked again; `wait` itself is cut short below.
        layers::Call::Wait { .. } => Deed::LoseRequest,
        _ => Deed::Pass,
    });
    let other = world.builder().with_store(layers::wrap(world.store().await, deaf));
    let first = world.lock(&keeper, &name).wait(SOON).lock().await.expect("a lock");
    let next = world.lock(&other, &name).wait(SOON);
    let waiting = tokio::spawn(async move { next.lock().await });
    until_standing(&world.store().await, &name, 2, SOON).await;
    drop(first);
    drop(waiting.await.expect("a task").expect("it asks by itself"));
    Ok(())
}

/// C6: a waiter that is cancelled is out of the line soon, and the next one is not held up by it.
pub async fn a_cancelled_wait_leaves_the_line(world: World) -> Outcome {
    world.needs_cancelling()?;
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let holder = world.claim();
    hold(&store, &name, &holder).await;
    let mutex = world.lock(&keeper, &name);
    let waiting = tokio::spawn(async move { mutex.lock().await });
    until_standing(&store, &name, 2, SOON).await;
    waiting.abort();
    until_standing(&store, &name, 1, SOON).await;
    leave(&store, &name, holder.id, Duration::ZERO).await;
    hold(&store, &name, &world.claim()).await;
    Ok(())
}

/// C6: dropped after any number of polls, `lock()` leaves no claim; free, and with a holder that goes meanwhile.
pub async fn a_dropped_lock_future_leaves_nothing(world: World) -> Outcome {
    world.needs_cancelling()?;
    let (keeper, store) = (world.keeper().await, world.store().await);
    for contended in [false, true] {
        for polls in 0.. {
            let name = world.name();
            let holder = world.claim();
            if contended {
                hold(&store, &name, &holder).await;
            }
            let mutex = world.lock(&keeper, &name).wait(SOON);
            let finished = {
                let mut future = pin!(mutex.lock());
                let mut left = polls;
                let dropped_or_done = poll_fn(|task| {
                    if left == 0 {
                        return Poll::Ready(None);
                    }
                    left -= 1;
                    future.as_mut().poll(task).map(Some)
                });
                if contended && polls > 1 {
                    let (done, _) = tokio::join!(dropped_or_done, leave(&store, &name, holder.id, Duration::ZERO));
                    done
                } else {
                    dropped_or_done.await
                }
            };
            let done = finished.is_some();
            drop(finished);
            if contended && polls <= 1 {
                leave(&store, &name, holder.id, Duration::ZERO).await;
            }
            until_standing(&store, &name, 0, SOON).await;
            if done {
                break;
            }
        }
    }
    Ok(())
}

/// Someone who only looks hears of every change of a line, also of one made between the look and the wait.
pub async fn an_observer_sees_a_change(world: World) -> Outcome {
    let (store, observer, name) = (world.store().await, world.store().await, world.name());
    let claim = world.claim();
    let changed = |seen: u64| {
        let (observer, name) = (observer.clone(), name.clone());
        async move {
            let hears = async {
                loop {
                    let now = view(&observer, &name).await.map_or(0, |view| view.fingerprint());
                    if now != seen {
                        return now;
                    }
                    let _ = observer.wait(&name, Waiter::Observer { seen }, SOON).await;
                }
            };
            tokio::time::timeout(SOON, hears).await.expect("it hears")
        }
    };
    let (held, _) = tokio::join!(changed(0), enter(&store, &name, &claim));
    let next = world.claim();
    let (queued, _) = tokio::join!(changed(held), queue(&store, &name, &next));
    leave(&store, &name, next.id, Duration::ZERO).await;
    assert_eq!(changed(queued).await, held);
    let (gone, _) = tokio::join!(changed(held), leave(&store, &name, claim.id, Duration::ZERO));
    assert_eq!(gone, 0);
    Ok(())
}
