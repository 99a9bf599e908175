//! Several locks at once.

use std::time::Duration;

use lockkeeper_core::kinds::MultiHold;
use lockkeeper_core::store::Keep;
use lockkeeper_core::{Effect, ErrorKind};
use tokio::task::JoinSet;

use super::{SOON, leave, standing, until_standing};
use crate::{Outcome, World};

async fn release_all(hold: MultiHold) {
    match hold.release().await {
        Err(error) if error.effect() != Effect::Unknown => panic!("release: {error:?}"),
        _ => {}
    }
}

/// One that is not free keeps all others free; names are sorted, and said twice they are one.
pub async fn all_or_nothing(world: World) -> Outcome {
    let (keeper, store) = (world.keeper().await, world.store().await);
    let names = [world.name(), world.name(), world.name()];
    let texts = [names[2].as_str(), names[0].as_str(), names[1].as_str(), names[0].as_str()];
    let blocker = keeper.mutex(names[1].as_str()).wait(SOON).lock().await.expect("a lock");
    assert!(keeper.multi(texts).try_lock().await.expect("an answer").is_none());
    let error = keeper.multi(texts).wait(Duration::from_millis(200)).lock().await.expect_err("one is held");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    for name in [&names[0], &names[2]] {
        until_standing(&store, name, 0, SOON).await;
    }
    drop(blocker);
    let all = keeper.multi(texts).wait(SOON).lock().await.expect("all are free");
    let held: Vec<_> = all.tokens().into_keys().collect();
    let mut sorted = names.to_vec();
    sorted.sort();
    assert_eq!(held, sorted);
    assert!(all.is_held());
    release_all(all).await;
    for name in &names {
        until_standing(&store, name, 0, SOON).await;
    }
    let none = keeper.multi([]).lock().await.expect_err("no names");
    assert_eq!(none.kind(), ErrorKind::Invalid);
    Ok(())
}

/// Two who name the same locks in opposite order do not wait for each other.
pub async fn opposite_orders_do_not_deadlock(world: World) -> Outcome {
    let names = [world.name(), world.name()];
    let mut tasks = JoinSet::new();
    for turned in [false, true] {
        let (keeper, mut names) = (world.keeper().await, names.clone());
        if turned {
            names.reverse();
        }
        tasks.spawn(async move {
            for _ in 0..10 {
                let both = keeper.multi(names.iter().map(|name| name.as_str())).wait(SOON * 2).lock().await;
                release_all(both.expect("both")).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task");
    }
    Ok(())
}

/// One that holds the first and waits for the second stands in the store, where circles can be seen, even if it is a
/// task of its own process that holds the second.
pub async fn one_that_holds_waits_where_it_is_seen(world: World) -> Outcome {
    let (keeper, store, mut names) = (world.keeper().await, world.store().await, [world.name(), world.name()]);
    names.sort();
    let blocker = keeper.mutex(names[1].as_str()).wait(SOON).lock().await.expect("a lock");
    let both = keeper.multi(names.iter().map(|name| name.as_str())).wait(SOON * 2);
    let waiting = tokio::spawn(async move { both.lock().await });
    until_standing(&store, &names[1], 2, SOON).await;
    drop(blocker);
    release_all(waiting.await.expect("a task").expect("both")).await;
    Ok(())
}

/// If one of them is lost, the whole counts as lost, and releasing says so after trying all.
pub async fn one_lost_is_all_lost(world: World) -> Outcome {
    world.needs_every_call()?;
    let (keeper, store, names) = (world.keeper().await, world.store().await, [world.name(), world.name()]);
    let both = keeper.multi(names.iter().map(|name| name.as_str())).lease(world.short_lease().await);
    let both = both.lock().await.expect("both");
    let victim = &both.holds()[0];
    leave(&store, victim.name(), victim.claim_id(), Keep::Nothing).await;
    tokio::time::timeout(SOON, both.lost()).await.expect("it is told");
    assert!(!both.is_held());
    assert_eq!(both.release().await.expect_err("one was lost").kind(), ErrorKind::Lost);
    for name in &names {
        assert_eq!(standing(&store, name).await, 0);
    }
    Ok(())
}
