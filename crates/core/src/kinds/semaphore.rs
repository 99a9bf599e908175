//! The semaphore: n permits of N.

use std::sync::Arc;

use super::terms::{Shape, Terms, terms};
use crate::claim::LockKind;
use crate::error::{Error, Result};
use crate::hold::Hold;
use crate::keeper::Shared;
use crate::limits::PERMITS_MAX;

/// Use this when up to N may be in at a time; use [`Mutex`](super::Mutex) when it is one.
///
/// Made by [`Keeper::semaphore`](crate::Keeper::semaphore). All who use a name must agree on N while anybody is in. The
/// permits of a crashed holder come back when its lease ends.
///
/// ```
/// # use lockkeeper_core::{Keeper, stores::Memory};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let keeper = Keeper::with_store(Memory::shared());
/// let workers = keeper.semaphore("workers", 3);
/// let one = workers.acquire().await?;
/// let two = workers.clone().permits(2).acquire().await?;
/// assert!(workers.try_acquire().await?.is_none());
/// two.release().await?;
/// one.release().await
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Semaphore {
    terms: Terms,
    permits: u32,
    capacity: u32,
}

terms!(Semaphore);

impl Semaphore {
    pub(crate) fn new(shared: Arc<Shared>, name: &str, capacity: u32) -> Self {
        Self { terms: Terms::new(shared, name), permits: 1, capacity }
    }

    /// How many permits one hold takes (1).
    #[must_use]
    pub fn permits(mut self, permits: u32) -> Self {
        self.permits = permits;
        self
    }

    /// Takes the permits, waiting as long as was asked for.
    ///
    /// # Guarantees
    /// The permits of valid holds never exceed N. A large claim is not overtaken by small ones.
    ///
    /// # Cancel safety, errors, round trips
    /// As for [`Mutex::lock`](super::Mutex::lock).
    pub async fn acquire(&self) -> Result<Hold> {
        self.terms.lock(self.shape()?).await
    }

    /// Takes the permits if they are free right now; `None` if they are not.
    pub async fn try_acquire(&self) -> Result<Option<Hold>> {
        self.terms.try_lock(self.shape()?).await
    }

    fn shape(&self) -> Result<Shape> {
        let Self { permits: weight, capacity, .. } = *self;
        if !(1..=PERMITS_MAX).contains(&capacity) {
            return Err(Error::invalid("capacity", format!("{capacity} is not between 1 and {PERMITS_MAX}")));
        }
        if !(1..=capacity).contains(&weight) {
            return Err(Error::invalid("permits", format!("{weight} is not between 1 and {capacity}")));
        }
        Ok(Shape { kind: LockKind::Semaphore, weight, capacity })
    }
}
