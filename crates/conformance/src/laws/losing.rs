//! Losing a lock: told in time, for good, and whatever the reason.

use std::time::{Duration, Instant};

use lockkeeper_core::layers::{Call, wrap};
use lockkeeper_core::store::{Keep, SharedStore, Standing};
use lockkeeper_core::time::{Clock, Moment};
use lockkeeper_core::{Claim, Keeper, Name, Patience};

use super::{SOON, enter, until_standing};
use crate::meddle::{Deed, Meddle};
use crate::{Outcome, World};

/// When another claim was told that it is in. Taken after the answer: when in between the store let it in is not
/// known, but it was not later.
async fn next_one_in(world: &World, store: &SharedStore, name: &Name) -> Moment {
    let next = Claim { patience: Patience::Now, ..world.claim() };
    while !matches!(enter(store, name, &next).await, Standing::Held { .. }) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Clock::system().now()
}

/// C2, C4: with no renewal answered, `lost` fires by the holder's own clock, before the store lets the next one in.
pub async fn lost_fires_before_anyone_else_can_hold(world: World) -> Outcome {
    let (store, name) = (world.store().await, world.name());
    let mute = Meddle::new(|call, _| if matches!(call, Call::Renew { .. }) { Deed::LoseRequest } else { Deed::Pass });
    let keeper = world.builder().with_store(wrap(world.store().await, mute));
    let lease = world.short_lease().await;
    let hold = world.lock(&keeper, &name).lease(lease).wait(SOON).lock().await.expect("a lock");
    let lost = hold.lost();
    let lost = tokio::spawn(async move {
        lost.await;
        Clock::system().now()
    });
    let next_in = next_one_in(&world, &store, &name);
    let next_in = tokio::time::timeout(SOON, next_in).await.expect("the lease ends");
    let lost_at = lost.await.expect("a task");
    assert!(hold.deadline() < next_in, "its own deadline is the earlier one");
    assert!(!hold.is_held());
    // The signal itself crosses threads, so a loaded machine may deliver it a little after the deadline.
    assert!(lost_at < next_in + Duration::from_millis(500), "told {:?} later", lost_at.since(next_in));
    assert!(hold.release().await.is_err());
    Ok(())
}

/// C2, C4: a machine that slept through the lease finds out at once, before any call of the hold succeeds.
pub async fn a_clock_jump_loses_the_hold_at_once(world: World) -> Outcome {
    let (name, clock) = (world.name(), Clock::adjustable());
    let keeper = world.builder().clock(clock.clone()).with_store(world.store().await);
    let hold = world.lock(&keeper, &name).wait(SOON).lock().await.expect("a lock");
    let lost = hold.lost();
    assert!(hold.is_held());
    clock.jump(Duration::from_secs(31));
    assert!(!hold.is_held(), "the next call already knows");
    let before = Instant::now();
    tokio::time::timeout(SOON, lost).await.expect("it is told");
    assert!(before.elapsed() < SOON / 2);
    assert_eq!(hold.release().await.expect_err("it is lost").kind(), lockkeeper_core::ErrorKind::Lost);

    let asleep = world.lock(&keeper, &world.name()).wait(SOON).lock().await.expect("a lock");
    let told = asleep.lost_token();
    clock.jump(Duration::from_secs(31));
    tokio::time::timeout(SOON, told.cancelled()).await.expect("the watchdog wakes by itself");
    Ok(())
}

/// `break` with the remaining lease: the holder's next renewal tells it, and nobody is in before its deadline.
pub async fn a_broken_hold_is_told(world: World) -> Outcome {
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let lease = world.short_lease().await;
    let hold = world.lock(&keeper, &name).lease(lease).wait(SOON).lock().await.expect("a lock");
    super::leave(&store, &name, hold.claim_id(), Keep::Lease).await;
    let next_in = next_one_in(&world, &store, &name);
    let (_, next_in) = tokio::time::timeout(SOON, async { tokio::join!(hold.lost(), next_in) }).await.expect("both");
    assert!(hold.deadline() <= next_in, "in {:?} before the deadline", next_in.until(hold.deadline()));
    Ok(())
}

/// A fixed lease runs out although the holder lives.
pub async fn at_most_is_not_renewed(world: World) -> Outcome {
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let at_most = world.short_lease().await;
    let before = Instant::now();
    let hold = world.lock(&keeper, &name).at_most(at_most).wait(SOON).lock().await.expect("a lock");
    tokio::time::timeout(SOON, hold.lost()).await.expect("it ends");
    assert!(before.elapsed() + Duration::from_millis(100) >= at_most / 2, "after {:?}", before.elapsed());
    assert!(!hold.is_held());
    until_standing(&store, &name, 0, SOON).await;
    Ok(())
}

/// C3, C12: a renewal without an answer is unknown, not gone; it is tried again and the hold stays.
pub async fn a_failed_renewal_is_tried_again(world: World) -> Outcome {
    world.needs_every_call()?;
    let name = world.name();
    let every_other = Meddle::new(|call, nth| match call {
        Call::Renew { .. } if nth % 2 == 1 => Deed::LoseRequest,
        Call::Renew { .. } if nth % 4 == 2 => Deed::LoseReply,
        _ => Deed::Pass,
    });
    let keeper = world.builder().with_store(wrap(world.store().await, every_other));
    let hold = world.lock(&keeper, &name).lease(Duration::from_secs(6)).wait(SOON).lock().await.expect("a lock");
    let mut seen = hold.deadline();
    for _ in 0..3 {
        seen = tokio::time::timeout(SOON, hold.deadline_after(seen)).await.expect("a renewal");
        assert!(hold.is_held());
    }
    hold.release().await.expect("it was ours all the time");
    Ok(())
}

/// C2: a grant whose reply comes after its own deadline is not a hold, and is left at once.
pub async fn a_late_grant_is_not_a_hold(world: World) -> Outcome {
    world.needs_every_call()?;
    let (store, name) = (world.store().await, world.name());
    let lease = world.short_lease().await;
    let slow_once = Meddle::new(move |call, nth| match call {
        Call::Enter { .. } if nth == 1 => Deed::HoldUpReply(lease + Duration::from_millis(200)),
        _ => Deed::Pass,
    });
    let keeper = Keeper::builder().with_store(wrap(world.store().await, slow_once.clone()));
    let tried = world.lock(&keeper, &name).lease(lease).try_lock().await;
    assert!(tried.is_err(), "{tried:?}");
    until_standing(&store, &name, 0, SOON).await;

    let slow_once = Meddle::new(move |call, nth| match call {
        Call::Enter { .. } if nth == 1 => Deed::HoldUpReply(lease + Duration::from_millis(200)),
        _ => Deed::Pass,
    });
    let keeper = Keeper::builder().with_store(wrap(world.store().await, slow_once));
    let hold = world.lock(&keeper, &name).lease(lease).wait(SOON).lock().await.expect("the second one is in time");
    assert!(hold.is_held());
    until_standing(&store, &name, 1, SOON).await;
    hold.release().await.expect("it was ours");
    Ok(())
}

/// C3: user code that blocks its runtime for two leases keeps its hold: the watchdog has a thread of its own.
pub async fn a_blocked_runtime_keeps_its_holds(world: World) -> Outcome {
    let (other, name, lease) = (world.keeper().await, world.name(), world.short_lease().await);
    let taken = std::sync::Arc::new(tokio::sync::Notify::new());
    let (world_inside, name_inside, tell) = (world.clone(), name.clone(), taken.clone());
    let blocked = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let keeper = world_inside.keeper().await;
            let mutex = world_inside.lock(&keeper, &name_inside).lease(lease).wait(SOON);
            let hold = mutex.lock().await.expect("a lock");
            tell.notify_one();
            // Blocking on purpose: nothing of this runtime runs meanwhile.
            std::thread::sleep(lease * 2);
            assert!(hold.is_held(), "it was renewed meanwhile");
            drop(hold);
            keeper.close().await.expect("it closes");
        });
    });
    taken.notified().await;
    let before = Instant::now();
    let next = world.lock(&other, &name).wait(SOON).lock().await.expect("a lock");
    assert!(before.elapsed() >= lease * 2 - Duration::from_millis(50), "in after {:?}", before.elapsed());
    drop(next);
    tokio::task::spawn_blocking(move || blocked.join()).await.expect("a task").expect("it held all the time");
    Ok(())
}
