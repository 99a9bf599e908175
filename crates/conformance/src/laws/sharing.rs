//! Claims that can be in together: readers, permits; and that the exclusive ones among them are mutexes.

use std::time::Duration;

use lockkeeper_core::store::{SharedStore, Sharing, Standing, Tokens, Waiter, Wake};
use lockkeeper_core::{Claim, ErrorKind, LockKind, Name};

use super::{SOON, enter, hold, leave, queue};
use crate::{Outcome, World};

/// The capacity of a read-write lock: more readers than there ever are.
const ALL: u32 = 1_000_000;

fn reader(world: &World) -> Claim {
    Claim { kind: LockKind::ReadWrite, weight: 1, capacity: ALL, ..world.claim() }
}

fn writer(world: &World) -> Claim {
    Claim { kind: LockKind::ReadWrite, weight: ALL, capacity: ALL, ..world.claim() }
}

fn permits(world: &World, weight: u32, capacity: u32) -> Claim {
    Claim { kind: LockKind::Semaphore, weight, capacity, ..world.claim() }
}

/// Readers are in together; a writer waits for them; readers behind it wait for the writer, so it does not starve.
pub async fn readers_share_and_a_writer_waits_its_turn(world: World) -> Outcome {
    world.needs(&world.profile().await.sharing, &[Sharing::Pairwise, Sharing::Permits])?;
    let (store, lock) = (world.store().await, world.name());
    let (first, second, late) = (reader(&world), reader(&world), reader(&world));
    let writes = writer(&world);
    hold(&store, &lock, &first).await;
    hold(&store, &lock, &second).await;
    queue(&store, &lock, &writes).await;
    queue(&store, &lock, &late).await;
    leave(&store, &lock, first.id, Duration::ZERO).await;
    queue(&store, &lock, &writes).await;
    leave(&store, &lock, second.id, Duration::ZERO).await;
    hold(&store, &lock, &writes).await;
    queue(&store, &lock, &late).await;
    leave(&store, &lock, writes.id, Duration::ZERO).await;
    hold(&store, &lock, &late).await;
    Ok(())
}

/// A writer leaves and five readers are in: all five hear of it, long before they would ask again.
pub async fn a_release_wakes_every_claim_that_came_in(world: World) -> Outcome {
    let profile = world.profile().await;
    world.needs(&profile.sharing, &[Sharing::Pairwise, Sharing::Permits])?;
    world.needs(&profile.wake, &[Wake::Push])?;
    let (store, lock, writes) = (world.store().await, world.name(), writer(&world));
    hold(&store, &lock, &writes).await;
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let (store, lock, claim) = (world.store().await, lock.clone(), reader(&world));
        queue(&store, &lock, &claim).await;
        waiting.spawn(async move { until_woken(&store, &lock, &claim).await });
    }
    leave(&store, &lock, writes.id, Duration::ZERO).await;
    let all = async { while waiting.join_next().await.is_some_and(|woken| woken.is_ok()) {} };
    tokio::time::timeout(SOON, all).await.expect("all five are woken");
    Ok(())
}

/// Waits by `wait` alone, with far more time than the law has.
async fn until_woken(store: &SharedStore, lock: &Name, claim: &Claim) {
    loop {
        let seen = enter(store, lock, claim).await;
        if matches!(seen, Standing::Held { .. }) {
            return;
        }
        let _ = store.wait(lock, Waiter::Claim { id: claim.id, seen: &seen }, SOON * 10).await;
    }
}

/// A writer that becomes a reader keeps its token, and lets other readers in.
pub async fn a_downgrade_keeps_its_token(world: World) -> Outcome {
    world.needs(&world.profile().await.sharing, &[Sharing::Pairwise, Sharing::Permits])?;
    let (store, lock, mut claim) = (world.store().await, world.name(), writer(&world));
    let token = hold(&store, &lock, &claim).await;
    let next = reader(&world);
    queue(&store, &lock, &next).await;
    claim.weight = 1;
    assert_eq!(hold(&store, &lock, &claim).await, token);
    hold(&store, &lock, &next).await;
    Ok(())
}

/// A reader does not become a writer by asking for more.
pub async fn a_claim_cannot_grow(world: World) -> Outcome {
    world.needs(&world.profile().await.sharing, &[Sharing::Pairwise, Sharing::Permits])?;
    let (store, lock, mut claim) = (world.store().await, world.name(), reader(&world));
    hold(&store, &lock, &claim).await;
    claim.weight = ALL;
    let error = loop {
        match store.enter(&lock, &claim).await {
            Err(error) if error.is_transient() => {}
            other => break other.expect_err("it is refused"),
        }
    };
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    hold(&store, &lock, &reader(&world)).await;
    Ok(())
}

/// Permits that are in never exceed the capacity, and a large claim is not overtaken.
pub async fn permits_fit_the_capacity(world: World) -> Outcome {
    world.needs(&world.profile().await.sharing, &[Sharing::Permits])?;
    let (store, lock) = (world.store().await, world.name());
    let (two, three, one) = (permits(&world, 2, 4), permits(&world, 3, 4), permits(&world, 1, 4));
    hold(&store, &lock, &two).await;
    queue(&store, &lock, &three).await;
    queue(&store, &lock, &one).await;
    leave(&store, &lock, two.id, Duration::ZERO).await;
    hold(&store, &lock, &three).await;
    hold(&store, &lock, &one).await;
    queue(&store, &lock, &permits(&world, 1, 4)).await;
    Ok(())
}

/// A semaphore of one permit keeps the laws of a mutex.
pub async fn a_semaphore_of_one_is_a_mutex(world: World) -> Outcome {
    world.needs(&world.profile().await.sharing, &[Sharing::Permits])?;
    exclusive(&world, |world| permits(world, 1, 1)).await
}

/// A writer among writers keeps the laws of a mutex.
pub async fn a_writer_is_a_mutex(world: World) -> Outcome {
    world.needs(&world.profile().await.sharing, &[Sharing::Pairwise, Sharing::Permits])?;
    exclusive(&world, writer).await
}

/// One at a time, in order, with rising tokens.
async fn exclusive(world: &World, make: impl Fn(&World) -> Claim) -> Outcome {
    let (store, lock) = (world.store().await, world.name());
    let claims: Vec<_> = (0..4).map(|_| make(world)).collect();
    let mut last = None;
    for claim in &claims {
        enter(&store, &lock, claim).await;
    }
    for (at, claim) in claims.iter().enumerate() {
        let token = hold(&store, &lock, claim).await;
        assert_eq!(hold(&store, &lock, claim).await, token);
        for later in &claims[at + 1..] {
            queue(&store, &lock, later).await;
        }
        if world.profile().await.tokens != Tokens::None {
            assert!(token > last, "{token:?} after {last:?}");
            last = token;
        }
        leave(&store, &lock, claim.id, Duration::ZERO).await;
    }
    Ok(())
}
