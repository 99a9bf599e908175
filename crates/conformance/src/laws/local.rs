//! The local line: tasks of one keeper hand a mutex on among themselves, and nobody else is kept waiting for it.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use lockkeeper_core::layers::wrap;
use lockkeeper_core::store::{Keep, Tokens};
use tokio::task::JoinSet;

use super::{SOON, leave, release, standing, until_standing};
use crate::meddle::Meddle;
use crate::{Outcome, World};

async fn needed(world: &World) -> Outcome {
    world.needs_every_call()?;
    world.needs(&world.profile().await.tokens, &[Tokens::Monotone, Tokens::Floored])
}

/// Eight tasks take turns, one at a time with rising tokens, in far fewer calls than turns.
pub async fn a_hold_is_handed_on_without_a_call(world: World) -> Outcome {
    needed(&world).await?;
    const TURNS: u64 = 25;
    let (name, counter) = (world.name(), Meddle::count_only());
    let keeper = world.builder().with_store(wrap(world.store().await, counter.clone()));
    let (inside, last) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    for task in 0..8 {
        let (mutex, inside, last) = (keeper.mutex(name.as_str()).wait(SOON), inside.clone(), last.clone());
        tasks.spawn(async move {
            for turn in 0..TURNS {
                let hold = mutex.lock().await.expect("a lock");
                assert!(!inside.swap(true, Ordering::SeqCst), "two hold at once");
                let token = hold.token().expect("a token").as_u64();
                let before = last.swap(token, Ordering::SeqCst);
                assert!(token > before, "token {token} after {before}");
                tokio::task::yield_now().await;
                inside.store(false, Ordering::SeqCst);
                if (task + turn) % 2 == 0 { drop(hold) } else { hold.release().await.expect("it was ours") }
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task");
    }
    let calls = counter.count("enter") + counter.count("leave") + counter.count("inspect");
    assert!(calls < 8 * TURNS as usize, "{calls} calls for {} turns", 8 * TURNS);
    until_standing(&world.store().await, &name, 0, SOON).await;
    Ok(())
}

/// While tasks of one process keep handing it on, another process gets its turn every time, with rising tokens.
pub async fn another_process_is_not_kept_waiting(world: World) -> Outcome {
    needed(&world).await?;
    let (busy, other, name) = (world.keeper().await, world.keeper().await, world.name());
    let stop = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let (mutex, stop) = (busy.mutex(name.as_str()).wait(SOON), stop.clone());
        tasks.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let hold = mutex.lock().await.expect("a lock");
                tokio::task::yield_now().await;
                hold.release().await.expect("it was ours");
            }
        });
    }
    let mut last = None;
    for _ in 0..10 {
        let hold = other.mutex(name.as_str()).wait(SOON).lock().await.expect("its turn");
        assert!(hold.token() > last, "{:?} after {last:?}", hold.token());
        last = hold.token();
        release(hold).await;
    }
    stop.store(true, Ordering::SeqCst);
    while let Some(done) = tasks.join_next().await {
        done.expect("a task");
    }
    Ok(())
}

/// A holder that lost the lock and does not let go of it keeps no task of its own process waiting.
pub async fn a_lost_hold_lets_the_next_task_in(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let mutex = keeper.mutex(name.as_str()).lease(world.short_lease().await).wait(SOON);
    let first = mutex.lock().await.expect("a lock");
    let next = mutex.clone();
    let waiting = tokio::spawn(async move { next.lock().await });
    // The second one waits in this process, where the store does not see it.
    tokio::task::yield_now().await;
    leave(&store, &name, first.claim_id(), Keep::Nothing).await;
    let second = waiting.await.expect("a task").expect("it comes in although the first one is kept");
    assert!(second.token() > first.token() && !first.is_held() && second.is_held());
    drop(first);
    assert!(second.is_held());
    release(second).await;
    Ok(())
}

/// C6: a task that stops waiting after any number of polls takes nothing with it, even if it was just handed the lock.
pub async fn a_dropped_local_waiter_takes_nothing(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, store) = (world.keeper().await, world.store().await);
    for polls in 0..6 {
        let name = world.name();
        let mutex = keeper.mutex(name.as_str()).wait(SOON);
        let holder = mutex.lock().await.expect("a lock");
        let behind = mutex.clone();
        let mut future = Box::pin(mutex.lock());
        for _ in 0..polls {
            poll_fn(|task| {
                assert!(future.as_mut().poll(task).is_pending());
                Poll::Ready(())
            })
            .await;
        }
        let behind = tokio::spawn(async move { behind.lock().await });
        tokio::task::yield_now().await;
        // Handed to the one that is dropped right after, if that one waits at all.
        drop(holder);
        drop(future);
        let came = tokio::time::timeout(SOON, behind).await.expect("the one behind comes in");
        drop(came.expect("a task").expect("a lock"));
        until_standing(&store, &name, 0, SOON).await;
    }
    Ok(())
}

/// Other terms are another line: such a task stands in the store, and gets its turn.
pub async fn other_terms_stand_in_the_store(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let first = keeper.mutex(name.as_str()).lock().await.expect("a lock");
    let others = [
        keeper.mutex(name.as_str()).note("another").wait(SOON),
        keeper.mutex(name.as_str()).fair().wait(SOON),
        keeper.mutex(name.as_str()).lease(Duration::from_secs(40)).wait(SOON),
    ];
    let mut waiting = Vec::new();
    for other in others {
        waiting.push(tokio::spawn(async move { other.lock().await.expect("its turn").release().await }));
    }
    until_standing(&store, &name, 4, SOON).await;
    release(first).await;
    for task in waiting {
        task.await.expect("a task").expect("it was ours");
    }
    assert_eq!(standing(&store, &name).await, 0);
    Ok(())
}
