//! A lock that is taken for no other purpose than to see that it can be.
//!
//! It goes the whole way: taken, renewed, waited for by a second claim, handed over, released. Surprise: what it leaves
//! behind when it fails is gone with its lease, which is short.

use std::time::{Duration, Instant};

use crate::claim::{Claim, ClaimId, LockKind, Owner, Patience, Token};
use crate::error::{Error, ErrorKind, Result};
use crate::name::Name;
use crate::store::{Held, Keep, Renewal, Standing, Store, Waiter};

/// Long enough for a slow store, short enough to be forgotten soon.
const LEASE: Duration = Duration::from_secs(5);
/// How long the second claim waits to be in.
const HANDED_OVER_WITHIN: Duration = Duration::from_secs(4);

/// How the trial went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// The tokens of the first and of the second hold, where there are tokens.
    pub tokens: Option<(Token, Token)>,
    /// From before the release of the first to the second knowing that it is in.
    pub handed_over_in: Duration,
}

/// Tries all that a mutex needs on a name that nobody else uses.
///
/// # Errors
/// Whatever keeps locks from working here; the message says at which step.
pub async fn trial(store: &dyn Store, name: &Name) -> Result<Trial> {
    let (first, second) = (claim()?, claim()?);
    let tried = steps(store, name, &first, &second).await;
    if tried.is_err() {
        for id in [first.id, second.id] {
            // It may never have been in, and its lease is short.
            let _ = store.leave(name, id, Keep::Nothing).await;
        }
    }
    tried
}

async fn steps(store: &dyn Store, name: &Name, first: &Claim, second: &Claim) -> Result<Trial> {
    let Standing::Held { token: one, .. } = store.enter(name, first).await.map_err(during("taking a lock"))? else {
        return Err(failed("a lock that nobody has was not given"));
    };
    let held = [Held { lock: name.clone(), id: first.id, lease: LEASE }];
    let renewals = store.renew(&held).await.map_err(during("renewing a lock"))?;
    if !matches!(renewals[..], [Renewal::Renewed { .. }]) {
        return Err(failed("a lock was gone when it was renewed"));
    }
    let mut standing = store.enter(name, second).await.map_err(during("waiting for a lock"))?;
    if matches!(standing, Standing::Held { .. }) {
        return Err(failed("two had the same lock"));
    }
    let released = Instant::now();
    store.leave(name, first.id, Keep::Nothing).await.map_err(during("releasing a lock"))?;
    let two = loop {
        if let Standing::Held { token, .. } = standing {
            break token;
        }
        let left = HANDED_OVER_WITHIN.saturating_sub(released.elapsed());
        if left.is_zero() {
            return Err(failed("a lock that was released was not handed over"));
        }
        let waiter = Waiter::Claim { id: second.id, seen: &standing };
        let told = store.wait(name, waiter, left).await.map_err(during("waiting for a lock"))?;
        standing = match told {
            Some(standing) => standing,
            None => store.enter(name, second).await.map_err(during("waiting for a lock"))?,
        };
    };
    let handed_over_in = released.elapsed();
    store.leave(name, second.id, Keep::Nothing).await.map_err(during("releasing a lock"))?;
    if one.zip(two).is_some_and(|(one, two)| two <= one) {
        return Err(failed("the token of the second hold is not above that of the first"));
    }
    Ok(Trial { tokens: one.zip(two), handed_over_in })
}

fn claim() -> Result<Claim> {
    Ok(Claim {
        id: ClaimId::random()?,
        owner: Owner::new("doctor")?,
        kind: LockKind::Mutex,
        weight: 1,
        capacity: 1,
        lease: LEASE,
        delay: Duration::ZERO,
        fair: false,
        patience: Patience::Queue,
        note: Vec::new(),
    })
}

fn during(what: &'static str) -> impl FnOnce(Error) -> Error {
    move |error| {
        let told = Error::new(error.kind(), format!("{what} failed: {error}")).with_effect(error.effect());
        match error.hint() {
            Some(hint) => told.with_hint(hint.to_owned()),
            None => told,
        }
    }
}

fn failed(what: &'static str) -> Error {
    Error::new(ErrorKind::Unsupported, what)
}
