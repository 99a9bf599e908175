//! The semaphore as a user sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use lockkeeper_core::store::Sharing;
use lockkeeper_core::{Claim, ErrorKind, LockKind};
use tokio::task::JoinSet;

use super::{SOON, hold, release, standing};
use crate::{Outcome, World};

/// Permits that are in never exceed what there is.
pub async fn never_more_than_its_permits(world: World) -> Outcome {
    world.needs(&world.profile().await.sharing, &[Sharing::Permits])?;
    let (name, inside) = (world.name(), Arc::new(AtomicU32::new(0)));
    let mut tasks = JoinSet::new();
    for task in 0..6_u32 {
        let (keeper, name, inside) = (world.keeper().await, name.clone(), inside.clone());
        tasks.spawn(async move {
            for round in 0..5 {
                let permits = 1 + (task + round) % 3;
                let semaphore = keeper.semaphore(name.as_str(), 4).permits(permits).wait(SOON * 4);
                let hold = semaphore.acquire().await.expect("permits");
                let now = inside.fetch_add(permits, Ordering::SeqCst) + permits;
                assert!(now <= 4, "{now} permits of 4 are in");
                tokio::task::yield_now().await;
                inside.fetch_sub(permits, Ordering::SeqCst);
                release(hold).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("a task");
    }
    Ok(())
}

/// A holder that says nothing more gives its permits back when its lease ends.
pub async fn permits_of_a_crashed_holder_return(world: World) -> Outcome {
    world.needs(&world.profile().await.sharing, &[Sharing::Permits])?;
    let (keeper, store, name) = (world.keeper().await, world.store().await, world.name());
    let lease = world.short_lease().await;
    let crashed = Claim { kind: LockKind::Semaphore, weight: 2, capacity: 2, lease, ..world.claim() };
    let before = Instant::now();
    hold(&store, &name, &crashed).await;
    let both = keeper.semaphore(name.as_str(), 2).permits(2).wait(SOON * 2).acquire().await.expect("they return");
    assert!(before.elapsed() + world.profile().await.early >= lease, "in after {:?}", before.elapsed());
    release(both).await;
    Ok(())
}

/// No permits, more than there are, or more than a million are refused, and nothing is sent.
pub async fn permits_have_limits(world: World) -> Outcome {
    let (keeper, name) = (world.keeper().await, world.name());
    for (permits, capacity) in [(0, 3), (4, 3), (1, 0), (1, 1_000_001)] {
        let refused = keeper.semaphore(name.as_str(), capacity).permits(permits).acquire().await;
        assert_eq!(refused.expect_err("it is refused").kind(), ErrorKind::Invalid, "{permits} of {capacity}");
    }
    assert_eq!(standing(&world.store().await, &name).await, 0);
    Ok(())
}
