//! The mutex: weight one of capacity one.

use std::sync::Arc;

use super::terms::{Shape, Terms, terms};
use crate::claim::LockKind;
use crate::error::Result;
use crate::hold::Hold;
use crate::keeper::Shared;

/// Use this when one at a time may be in; use [`RwLock`](super::RwLock) when readers may share, and
/// [`Semaphore`](super::Semaphore) when a few may be in.
///
/// Made by [`Keeper::mutex`](crate::Keeper::mutex). By default it waits 60 s, and its hold has a lease of 30 s that is
/// renewed for as long as the hold lives.
#[derive(Clone)]
pub struct Mutex {
    terms: Terms,
}

terms!(Mutex);

const SHAPE: Shape = Shape { kind: LockKind::Mutex, weight: 1, capacity: 1 };

impl Mutex {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self { terms: Terms::new(shared, name) }
    }

    /// The same for one who holds something else: it stands in the store, where circles can be seen.
    pub(super) fn standing_in_the_store(mut self) -> Self {
        self.terms.local = false;
        self
    }

    /// Takes the lock, waiting as long as was asked for.
    ///
    /// # Guarantees
    /// No other hold of this name is valid while this one is, as far as the store's [profile](crate::store::Profile)
    /// goes; see [`Hold::lost`] for the end of it.
    ///
    /// # Cancel safety
    /// Dropping the future at any point leaves nothing behind beyond the claim's own lease.
    ///
    /// # Errors
    /// `Timeout` if it was not free in time; `Invalid` for a bad name or option; `Mismatch` if the name is in use as
    /// another kind; whatever keeps the store from answering.
    ///
    /// # Round trips
    /// One when free.
    pub async fn lock(&self) -> Result<Hold> {
        self.terms.lock(SHAPE).await
    }

    /// Takes the lock if it is free right now; `None` if it is not.
    ///
    /// # Cancel safety
    /// As for [`lock`](Self::lock).
    ///
    /// # Round trips
    /// One.
    pub async fn try_lock(&self) -> Result<Option<Hold>> {
        self.terms.try_lock(SHAPE).await
    }
}
