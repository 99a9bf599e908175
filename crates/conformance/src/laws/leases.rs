//! Time at the store: leases end, are renewed, are never shortened and never come back.

use std::time::{Duration, Instant};

use lockkeeper_core::store::{Renewal, Standing};
use lockkeeper_core::{Claim, Name};

use super::{SOON, enter, hold, leave, queue, renew, standing};
use crate::{Outcome, World};

/// Asks until the claim is in; says how long that took from `since`.
async fn until_in(store: &lockkeeper_core::store::SharedStore, lock: &Name, claim: &Claim, since: Instant) -> Duration {
    let asking = async {
        while !matches!(enter(store, lock, claim).await, Standing::Held { .. }) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, asking).await.expect("a lease ends");
    since.elapsed()
}

/// C3: a renewal that comes after the end finds nothing, and makes nothing.
pub async fn renewal_does_not_resurrect(world: World) -> Outcome {
    let (store, lock) = (world.store().await, world.name());
    let claim = Claim { lease: world.profile().await.lease_min, ..world.claim() };
    hold(&store, &lock, &claim).await;
    super::until_standing(&store, &lock, 0, SOON).await;
    assert_eq!(renew(&store, &lock, claim.id, claim.lease).await, Renewal::Gone);
    assert_eq!(standing(&store, &lock).await, 0);
    Ok(())
}

/// C3: a shorter renewal takes nothing away.
pub async fn renewal_never_shortens(world: World) -> Outcome {
    let (store, lock, claim) = (world.store().await, world.name(), world.claim());
    hold(&store, &lock, &claim).await;
    match renew(&store, &lock, claim.id, Duration::from_secs(1)).await {
        Renewal::Renewed { lease } => assert!(lease > Duration::from_secs(10), "{lease:?} left"),
        Renewal::Gone => panic!("it is held"),
    }
    match renew(&store, &lock, claim.id, Duration::from_secs(60)).await {
        Renewal::Renewed { lease } => assert!(lease > Duration::from_secs(40), "{lease:?} left"),
        Renewal::Gone => panic!("it is held"),
    }
    Ok(())
}

/// C3: what was never held is not renewed into being, and a waiting claim is not held.
pub async fn renewal_never_creates(world: World) -> Outcome {
    let (store, lock, claim) = (world.store().await, world.name(), world.claim());
    assert_eq!(renew(&store, &lock, claim.id, claim.lease).await, Renewal::Gone);
    assert_eq!(standing(&store, &lock).await, 0);
    hold(&store, &lock, &claim).await;
    let waiting = world.claim();
    queue(&store, &lock, &waiting).await;
    assert_eq!(renew(&store, &lock, waiting.id, claim.lease).await, Renewal::Gone);
    Ok(())
}

/// A holder that says nothing more loses its place when its lease ends: not before, and not much later.
pub async fn an_expired_claim_frees_the_line(world: World) -> Outcome {
    let (store, lock, profile) = (world.store().await, world.name(), world.profile().await);
    let silent = Claim { lease: world.short_lease().await, ..world.claim() };
    let before = Instant::now();
    hold(&store, &lock, &silent).await;
    let after = Instant::now();
    let next = world.claim();
    queue(&store, &lock, &next).await;
    until_in(&store, &lock, &next, before).await;
    assert!(before.elapsed() + profile.early >= silent.lease, "in after {:?}", before.elapsed());
    assert!(after.elapsed() < silent.lease + profile.late + SOON / 2, "in only after {:?}", after.elapsed());
    Ok(())
}

/// C7: a waiter that stopped asking is passed over when its waiting lease ends.
pub async fn a_dead_waiter_does_not_stall_the_line(world: World) -> Outcome {
    let (store, lock, holder) = (world.store().await, world.name(), world.claim());
    hold(&store, &lock, &holder).await;
    let dead = Claim { lease: world.short_lease().await, ..world.claim() };
    queue(&store, &lock, &dead).await;
    let next = world.claim();
    queue(&store, &lock, &next).await;
    leave(&store, &lock, holder.id, Duration::ZERO).await;
    until_in(&store, &lock, &next, Instant::now()).await;
    Ok(())
}

/// C9: after a crash the name stays taken for the lease and the lock-delay; a clean release frees it at once.
pub async fn a_lock_delay_outlasts_the_lease(world: World) -> Outcome {
    let (store, lock) = (world.store().await, world.name());
    let crashed = Claim { lease: world.short_lease().await, delay: Duration::from_millis(800), ..world.claim() };
    let before = Instant::now();
    match enter(&store, &lock, &crashed).await {
        Standing::Held { lease, .. } => assert!(lease <= crashed.store_lease() && lease > crashed.lease),
        other => panic!("{other:?}"),
    }
    let next = Claim { delay: Duration::from_secs(60), ..world.claim() };
    let waited = until_in(&store, &lock, &next, before).await;
    assert!(waited + world.profile().await.early >= crashed.store_lease(), "in after {waited:?}");
    leave(&store, &lock, next.id, Duration::ZERO).await;
    hold(&store, &lock, &world.claim()).await;
    Ok(())
}
