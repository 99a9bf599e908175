//! Limits that all processes share.

use std::time::{Duration, Instant};

use lockkeeper_core::ErrorKind;
use lockkeeper_core::store::StoreTime;
use tokio::task::JoinSet;

use super::SOON;
use crate::{Outcome, World};

async fn needed(world: &World) -> Outcome {
    world.needs_every_call()?;
    world.needs(&world.profile().await.time, &[StoreTime::Store])
}

/// Twelve ask at once for five: five are admitted, by either kind of limit.
pub async fn a_limit_is_shared(world: World) -> Outcome {
    needed(&world).await?;
    for fixed in [true, false] {
        let name = world.name();
        let mut tasks = JoinSet::new();
        for _ in 0..12 {
            let limiter = world.keeper().await.limiter(name.as_str(), 5, Duration::from_secs(3_600));
            let limiter = if fixed { limiter.fixed_window() } else { limiter };
            tasks.spawn(async move { limiter.try_take(1).await.expect("an answer").is_admitted() });
        }
        let mut admitted = 0;
        while let Some(taken) = tasks.join_next().await {
            admitted += u32::from(taken.expect("a task"));
        }
        assert_eq!(admitted, 5);
    }
    Ok(())
}

/// Waiting for a limit ends when it allows, or says at once that it will not be in time, or never.
pub async fn waiting_for_a_limit_is_bounded(world: World) -> Outcome {
    needed(&world).await?;
    let (keeper, name) = (world.keeper().await, world.name());
    let limiter = keeper.limiter(name.as_str(), 2, Duration::from_millis(800));
    limiter.take(2, SOON).await.expect("it is new");
    let before = Instant::now();
    limiter.take(1, SOON).await.expect("it refills");
    assert!(before.elapsed() >= Duration::from_millis(300), "after {:?}", before.elapsed());
    let slow = keeper.limiter(world.name().as_str(), 1, Duration::from_secs(3_600));
    slow.take(1, SOON).await.expect("it is new");
    assert_eq!(slow.take(1, SOON).await.expect_err("not within the hour").kind(), ErrorKind::Timeout);
    assert_eq!(slow.take(2, SOON).await.expect_err("never").kind(), ErrorKind::Invalid);
    Ok(())
}
