//! Mutex, read-write lock, semaphore and several mutexes at once, for threads.

use std::sync::Arc;
use std::time::Duration;

use super::driver::Driver;
use super::hold::{Hold, MultiHold, WriteHold};
use super::options::{options, terms};
use crate::{Result, kinds};

/// Use this when one at a time may be in; the blocking form of [`kinds::Mutex`].
///
/// ```
/// use std::time::Duration;
/// use lockkeeper::blocking::Keeper;
///
/// let keeper = Keeper::connect("memory:")?;
/// let hold = keeper.mutex("orders/42").wait(Duration::from_secs(5)).lock()?;
/// assert!(keeper.mutex("orders/42").try_lock()?.is_none());
/// assert!(hold.is_held());
/// hold.release()?;
/// # Ok::<(), lockkeeper::Error>(())
/// ```
#[derive(Clone)]
pub struct Mutex {
    pub(super) inner: kinds::Mutex,
    pub(super) driver: Arc<Driver>,
}

terms!(Mutex);

impl Mutex {
    /// Takes the lock, waiting as long as was asked for.
    ///
    /// # Guarantees, errors, round trips
    /// As for [`kinds::Mutex::lock`]; `Unsupported` inside of async code.
    pub fn lock(&self) -> Result<Hold> {
        Ok(Hold::new(self.driver.run(self.inner.lock())?, &self.driver))
    }

    /// Takes the lock if it is free right now; `None` if it is not.
    pub fn try_lock(&self) -> Result<Option<Hold>> {
        let hold = self.driver.run(self.inner.try_lock())?;
        Ok(hold.map(|hold| Hold::new(hold, &self.driver)))
    }
}

/// Use this when many may read together but one must write alone; the blocking form of [`kinds::RwLock`].
///
/// ```
/// # let keeper = lockkeeper::blocking::Keeper::connect("memory:")?;
/// let prices = keeper.rwlock("prices");
/// let (one, two) = (prices.read()?, prices.read()?);
/// assert!(prices.try_write()?.is_none());
/// drop((one, two));
/// let write = prices.write()?;
/// let read = write.downgrade()?; // others may read now, and nobody wrote in between
/// read.release()?;
/// # Ok::<(), lockkeeper::Error>(())
/// ```
#[derive(Clone)]
pub struct RwLock {
    pub(super) inner: kinds::RwLock,
    pub(super) driver: Arc<Driver>,
}

terms!(RwLock);

impl RwLock {
    /// Takes it to read, together with other readers.
    pub fn read(&self) -> Result<Hold> {
        Ok(Hold::new(self.driver.run(self.inner.read())?, &self.driver))
    }

    /// Takes it to read if no writer is in or waits; `None` otherwise.
    pub fn try_read(&self) -> Result<Option<Hold>> {
        let hold = self.driver.run(self.inner.try_read())?;
        Ok(hold.map(|hold| Hold::new(hold, &self.driver)))
    }

    /// Takes it to write, alone; an owner that holds it to read is refused with `Mismatch`.
    pub fn write(&self) -> Result<WriteHold> {
        Ok(WriteHold::new(self.driver.run(self.inner.write())?, &self.driver))
    }

    /// Takes it to write if it is free right now; `None` otherwise.
    pub fn try_write(&self) -> Result<Option<WriteHold>> {
        let hold = self.driver.run(self.inner.try_write())?;
        Ok(hold.map(|hold| WriteHold::new(hold, &self.driver)))
    }
}

/// Use this when up to N may be in at a time; the blocking form of [`kinds::Semaphore`].
#[derive(Clone)]
pub struct Semaphore {
    pub(super) inner: kinds::Semaphore,
    pub(super) driver: Arc<Driver>,
}

terms!(Semaphore);

options! { Semaphore:
    /// How many permits one hold takes (1).
    permits(permits: u32);
}

impl Semaphore {
    /// Takes the permits, waiting as long as was asked for.
    pub fn acquire(&self) -> Result<Hold> {
        Ok(Hold::new(self.driver.run(self.inner.acquire())?, &self.driver))
    }

    /// Takes the permits if they are free right now; `None` if they are not.
    pub fn try_acquire(&self) -> Result<Option<Hold>> {
        let hold = self.driver.run(self.inner.try_acquire())?;
        Ok(hold.map(|hold| Hold::new(hold, &self.driver)))
    }
}

/// Use this when work needs several mutexes together; the blocking form of [`kinds::Multi`].
#[derive(Clone)]
pub struct Multi {
    pub(super) inner: kinds::Multi,
    pub(super) driver: Arc<Driver>,
}

options! { Multi:
    /// How long to wait for all of them together (60 s).
    wait(wait: Duration);
    /// Waits without end.
    forever();
    /// The lease of each (30 s); living holds renew it.
    lease(lease: Duration);
    /// A few bytes for people, shown with each claim.
    note(note: impl Into<Vec<u8>>);
}

impl Multi {
    /// Takes all of them, or none.
    ///
    /// # Errors
    /// As for [`Mutex::lock`]; whatever was taken is released before the error is returned.
    pub fn lock(&self) -> Result<MultiHold> {
        Ok(MultiHold::new(self.driver.run(self.inner.lock())?, &self.driver))
    }

    /// Takes all of them if all are free right now; `None`, with nothing taken, if one is not.
    pub fn try_lock(&self) -> Result<Option<MultiHold>> {
        let hold = self.driver.run(self.inner.try_lock())?;
        Ok(hold.map(|hold| MultiHold::new(hold, &self.driver)))
    }
}
