//! The read-write lock: a reader is 1 of ALL, a writer ALL of ALL.
//!
//! Surprise: the order of the line decides, so readers that come after a waiting writer wait behind it; writers do not
//! starve, and a reader cannot become a writer (two that tried would wait for each other for ever).

use std::ops::Deref;
use std::sync::Arc;

use super::terms::{Shape, Terms, terms};
use crate::claim::LockKind;
use crate::error::Result;
use crate::hold::Hold;
use crate::keeper::Shared;
use crate::limits::PERMITS_MAX;

/// Use this when many may read together but one must write alone; use [`Mutex`](super::Mutex) when reads are rare.
///
/// Made by [`Keeper::rwlock`](crate::Keeper::rwlock).
///
/// ```
/// # use lockkeeper_core::{Keeper, stores::Memory};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let keeper = Keeper::with_store(Memory::shared());
/// let prices = keeper.rwlock("prices");
/// let one = prices.read().await?;
/// let two = prices.read().await?;
/// assert!(prices.try_write().await?.is_none());
/// drop((one, two));
/// let write = prices.write().await?;
/// let read = write.downgrade().await?;      // others may read now, and nobody wrote in between
/// read.release().await
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct RwLock {
    terms: Terms,
}

terms!(RwLock);

/// More readers than there ever are.
const ALL: u32 = PERMITS_MAX;
const READER: Shape = Shape { kind: LockKind::ReadWrite, weight: 1, capacity: ALL };
const WRITER: Shape = Shape { kind: LockKind::ReadWrite, weight: ALL, capacity: ALL };

impl RwLock {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self { terms: Terms::new(shared, name) }
    }

    /// Takes it to read, together with other readers.
    ///
    /// # Cancel safety, errors, round trips
    /// As for [`Mutex::lock`](super::Mutex::lock).
    pub async fn read(&self) -> Result<Hold> {
        self.terms.lock(READER).await
    }

    /// Takes it to read if no writer is in or waits; `None` otherwise.
    pub async fn try_read(&self) -> Result<Option<Hold>> {
        self.terms.try_lock(READER).await
    }

    /// Takes it to write, alone.
    ///
    /// # Cancel safety, errors, round trips
    /// As for [`Mutex::lock`](super::Mutex::lock). An owner that holds it to read is refused with `Mismatch`: a reader
    /// does not become a writer.
    pub async fn write(&self) -> Result<WriteHold> {
        self.terms.lock(WRITER).await.map(WriteHold)
    }

    /// Takes it to write if it is free right now; `None` otherwise.
    pub async fn try_write(&self) -> Result<Option<WriteHold>> {
        Ok(self.terms.try_lock(WRITER).await?.map(WriteHold))
    }
}

/// A [`Hold`] to write, which can become one to read.
#[derive(Debug)]
#[must_use = "dropping a hold releases the lock"]
pub struct WriteHold(Hold);

impl WriteHold {
    /// Becomes a reader without letting any writer in between; the token stays the same.
    ///
    /// # Errors
    /// `Lost` if it is not ours any more. A store that does not answer is asked again until the hold would end.
    ///
    /// # Cancel safety
    /// Dropping the future releases the lock.
    ///
    /// # Round trips
    /// One.
    pub async fn downgrade(self) -> Result<Hold> {
        self.0.shrink(READER.weight).await
    }

    /// Releases the lock; see [`Hold::release`].
    pub async fn release(self) -> Result<()> {
        self.0.release().await
    }
}

impl Deref for WriteHold {
    type Target = Hold;
    fn deref(&self) -> &Hold {
        &self.0
    }
}
