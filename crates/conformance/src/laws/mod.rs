//! The laws, by topic, and the few steps they are written in.
//!
//! A step asks again where a call was lost on purpose, so that a law reads the same on a good and a bad network.

pub mod blocking;
pub mod cells;
pub mod deadlock;
pub mod election;
pub mod holding;
pub mod leases;
pub mod limiter;
pub mod line;
pub mod local;
pub mod losing;
pub mod multi;
pub mod once;
pub mod optimistic;
pub mod processes;
pub mod reentry;
pub mod replies;
pub mod rwlock;
pub mod semaphore;
pub mod sharing;
pub mod trips;
pub mod waiting;

use std::time::Duration;

use lockkeeper_core::store::{Held, Keep, Left, LockView, Page, Renewal, SharedStore, Standing};
use lockkeeper_core::{Claim, ClaimId, Effect, Hold, Name, Token};

/// Enters, or asks again, until there is an answer.
pub(crate) async fn enter(store: &SharedStore, lock: &Name, claim: &Claim) -> Standing {
    loop {
        match store.enter(lock, claim).await {
            Ok(standing) => return standing,
            Err(error) if error.is_transient() => {}
            Err(error) => panic!("enter: {error:?}"),
        }
    }
}

/// Enters and must be in.
pub(crate) async fn hold(store: &SharedStore, lock: &Name, claim: &Claim) -> Option<Token> {
    match enter(store, lock, claim).await {
        Standing::Held { token, .. } => token,
        other => panic!("{lock} should be held: {other:?}"),
    }
}

/// Enters and must wait; says how many are ahead.
pub(crate) async fn queue(store: &SharedStore, lock: &Name, claim: &Claim) -> u32 {
    match enter(store, lock, claim).await {
        Standing::Waiting { ahead, .. } => ahead,
        other => panic!("{lock} should be waited for: {other:?}"),
    }
}

/// Leaves until there is an answer; one that only a retry brought counts as out.
pub(crate) async fn leave(store: &SharedStore, lock: &Name, id: ClaimId, keep: impl Into<Keep>) -> Left {
    let keep = keep.into();
    let mut unanswered = false;
    loop {
        match store.leave(lock, id, keep).await {
            Ok(Left::Unknown) => return Left::Released,
            Ok(Left::NotHeld) if unanswered => return Left::Released,
            Ok(left) => return left,
            Err(error) if error.is_transient() => unanswered = true,
            Err(error) => panic!("leave: {error:?}"),
        }
    }
}

/// Renews one hold until there is an answer.
pub(crate) async fn renew(store: &SharedStore, lock: &Name, id: ClaimId, lease: Duration) -> Renewal {
    let held = [Held { lock: lock.clone(), id, lease }];
    loop {
        match store.renew(&held).await {
            Ok(renewals) => return renewals[0],
            Err(error) if error.is_transient() => {}
            Err(error) => panic!("renew: {error:?}"),
        }
    }
}

/// The line as it is.
pub(crate) async fn view(store: &SharedStore, lock: &Name) -> Option<LockView> {
    loop {
        match store.inspect(Page::of(lock)).await {
            Ok(mut views) => return views.pop(),
            Err(error) if error.is_transient() => {}
            Err(error) => panic!("inspect: {error:?}"),
        }
    }
}

/// How many claims stand in the line.
pub(crate) async fn standing(store: &SharedStore, lock: &Name) -> usize {
    view(store, lock).await.map_or(0, |view| view.claims.len())
}

/// Waits until the line has so many claims; looks often, since this is what the store itself says.
pub(crate) async fn until_standing(store: &SharedStore, lock: &Name, claims: usize, within: Duration) {
    let looked_for = async {
        while standing(store, lock).await != claims {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    if tokio::time::timeout(within, looked_for).await.is_err() {
        panic!("after {within:?} {} claims stand, not {claims}", standing(store, lock).await);
    }
}

/// A generous time for something that should happen at once.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Releases; one that was not confirmed counts, since it goes on in the background.
pub(crate) async fn release(hold: Hold) {
    match hold.release().await {
        Ok(()) => {}
        Err(error) if error.effect() == Effect::Unknown => {}
        Err(error) => panic!("release: {error:?}"),
    }
}
