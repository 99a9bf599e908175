//! How many calls things take: the budget of round trips, counted at the seam.

use std::time::Duration;

use lockkeeper_core::layers::wrap;

use super::SOON;
use crate::meddle::Meddle;
use crate::{Outcome, World};

/// A free lock is taken in one call and released in one more, and nothing else is asked.
pub async fn free_enter_is_one_call(world: World) -> Outcome {
    world.needs_every_call()?;
    let (name, counter) = (world.name(), Meddle::count_only());
    let keeper = world.builder().with_store(wrap(world.store().await, counter.clone()));
    for round in 1..=3 {
        let hold = keeper.mutex(name.as_str()).lock().await.expect("a lock");
        hold.release().await.expect("it was ours");
        assert_eq!((counter.count("enter"), counter.count("leave")), (round, round));
    }
    for word in ["wait", "renew", "inspect", "read", "update"] {
        assert_eq!(counter.count(word), 0, "{word}");
    }
    Ok(())
}

/// C3: all holds of a client are renewed in one call per interval, not one call per hold.
pub async fn all_holds_are_renewed_in_one_call(world: World) -> Outcome {
    world.needs_every_call()?;
    const HOLDS: usize = 40;
    let counter = Meddle::count_only();
    let keeper = world.builder().with_store(wrap(world.store().await, counter.clone()));
    let mut holds = Vec::new();
    for _ in 0..HOLDS {
        let mutex = keeper.mutex(world.name().as_str()).lease(Duration::from_secs(3));
        holds.push(mutex.lock().await.expect("a lock"));
    }
    let mut seen: Vec<_> = holds.iter().map(|hold| hold.deadline()).collect();
    for _ in 0..2 {
        for (hold, seen) in holds.iter().zip(&mut seen) {
            *seen = tokio::time::timeout(SOON, hold.deadline_after(*seen)).await.expect("a renewal");
        }
    }
    let calls = counter.count("renew");
    assert!((2..HOLDS / 4).contains(&calls), "{calls} calls renewed {HOLDS} holds twice");
    Ok(())
}
