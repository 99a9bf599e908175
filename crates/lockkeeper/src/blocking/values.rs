//! Cells, counters, limiters and jobs that are done once, for threads.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use super::driver::Driver;
use super::options::options;
use crate::cell::Versioned;
use crate::kinds::{self, Decision, Run, Swap, Updated};
use crate::{Error, Result};

/// Use this when conflicts are rare and the value is small; the blocking form of [`kinds::Cell`].
///
/// ```
/// # let keeper = lockkeeper::blocking::Keeper::connect("memory:")?;
/// let cell = keeper.cell("config");
/// cell.put(b"a")?;
/// let done = cell.update(|old| Some([old.unwrap_or_default(), b"b"].concat()))?;
/// assert_eq!((done.value.as_deref(), done.conflicts), (Some(&b"ab"[..]), 0));
/// # Ok::<(), lockkeeper::Error>(())
/// ```
#[derive(Clone)]
pub struct Cell {
    pub(super) inner: kinds::Cell,
    pub(super) driver: Arc<Driver>,
}

options! { Cell:
    /// Forget it after so long without a change.
    keep(keep: Duration);
}

impl Cell {
    /// What is there.
    pub fn get(&self) -> Result<Option<Versioned>> {
        self.driver.run(self.inner.get())
    }

    /// Sets it, whatever is there; answers the new version.
    pub fn put(&self, value: &[u8]) -> Result<u64> {
        self.driver.run(self.inner.put(value))
    }

    /// Sets it if the version is still this one; zero stands for a cell that is not there.
    ///
    /// # Errors
    /// As for [`kinds::Cell::compare_and_set`].
    pub fn compare_and_set(&self, version: u64, value: &[u8]) -> Result<Swap> {
        self.driver.run(self.inner.compare_and_set(version, value))
    }

    /// Removes it if the version is still this one.
    pub fn compare_and_remove(&self, version: u64) -> Result<Swap> {
        self.driver.run(self.inner.compare_and_remove(version))
    }

    /// Removes it, whatever is there.
    pub fn remove(&self) -> Result<()> {
        self.driver.run(self.inner.remove())
    }

    /// Reads, changes and writes, again and again until nobody was faster; `None` removes.
    ///
    /// The closure may run several times, always on this thread.
    pub fn update(&self, change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>) -> Result<Updated> {
        self.driver.run(self.inner.update(change))
    }

    /// The cell behind its fence, with the token of a hold: a later holder's entry keeps this one out.
    ///
    /// # Errors
    /// As for [`kinds::Cell::fenced`].
    pub fn fenced(&self, hold: &impl AsRef<crate::Hold>) -> Result<FencedCell> {
        Ok(FencedCell { inner: self.inner.fenced(hold.as_ref())?, driver: self.driver.clone() })
    }
}

/// A cell that only the newest holder reads to write; the blocking form of [`kinds::FencedCell`].
#[derive(Clone)]
pub struct FencedCell {
    inner: kinds::FencedCell,
    driver: Arc<Driver>,
}

impl FencedCell {
    /// Enters the fence and reads what is behind it, in one step.
    ///
    /// # Errors
    /// `Lost` if a later holder has been here.
    pub fn read(&self) -> Result<Option<Versioned>> {
        self.driver.run(self.inner.read())
    }

    /// Writes behind the fence; `None` clears.
    ///
    /// # Errors
    /// `Lost` if a later holder has been here, `Unsupported` under a hold to read.
    pub fn write(&self, value: Option<&[u8]>) -> Result<u64> {
        self.driver.run(self.inner.write(value))
    }
}

/// Use this to count, or to take from a stock without overselling; the blocking form of [`kinds::Counter`].
#[derive(Clone)]
pub struct Counter {
    pub(super) inner: kinds::Counter,
    pub(super) driver: Arc<Driver>,
}

options! { Counter:
    /// The least that [`take`](Self::take) leaves (0).
    floor(floor: i64);
    /// Forget it after so long without a change.
    keep(keep: Duration);
}

impl Counter {
    /// The number; zero if nobody has counted yet.
    pub fn get(&self) -> Result<i64> {
        self.driver.run(self.inner.get())
    }

    /// Adds, and answers the new number.
    ///
    /// # Errors
    /// As for [`kinds::Counter::add`].
    pub fn add(&self, by: i64) -> Result<i64> {
        self.driver.run(self.inner.add(by))
    }

    /// Takes so many if that leaves at least the floor, and answers what is left; `None` if there are too few.
    pub fn take(&self, by: u64) -> Result<Option<i64>> {
        self.driver.run(self.inner.take(by))
    }

    /// Raises the number to at least this, and answers it.
    pub fn raise_to(&self, at_least: i64) -> Result<i64> {
        self.driver.run(self.inner.raise_to(at_least))
    }
}

/// Use this to bound a rate across processes; the blocking form of [`kinds::Limiter`].
#[derive(Clone)]
pub struct Limiter {
    pub(super) inner: kinds::Limiter,
    pub(super) driver: Arc<Driver>,
}

options! { Limiter:
    /// A window that starts anew every period: up to twice the limit may pass around its edge.
    fixed_window();
}

impl Limiter {
    /// Takes so many if the limit allows it right now.
    ///
    /// # Errors
    /// As for [`kinds::Limiter::try_take`].
    pub fn try_take(&self, take: u64) -> Result<Decision> {
        self.driver.run(self.inner.try_take(take))
    }

    /// Takes so many, waiting until the limit allows it, at most so long.
    ///
    /// # Errors
    /// `Timeout` if it does not within `wait`; `Invalid` if it never can.
    pub fn take(&self, take: u64, wait: Duration) -> Result<()> {
        self.driver.run(self.inner.take(take, wait))
    }
}

/// Use this when a job must be done once per key by whoever comes first; the blocking form of [`kinds::Once`].
///
/// ```
/// use lockkeeper::{Error, blocking::Keeper, kinds::Run};
///
/// let keeper = Keeper::connect("memory:")?;
/// let report = keeper.once("report/2026-11-15");
/// let first = report.run(|_hold| Ok::<_, Error>(b"42 pages".to_vec()))?;
/// let second = report.run(|_hold| Err(Error::bug("it does not run again")))?;
/// assert_eq!(first, Run::Ran(b"42 pages".to_vec()));
/// assert_eq!(second, Run::Recorded(b"42 pages".to_vec()));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Once {
    pub(super) inner: kinds::Once,
    pub(super) driver: Arc<Driver>,
}

options! { Once:
    /// How long those who come second wait for the first (60 s).
    wait(wait: Duration);
    /// Those who come second do not wait: [`Run::Running`].
    skip();
    /// A run may take this long and no longer; one that died is taken again after it.
    at_most(at_most: Duration);
    /// The lease of a run (30 s), renewed while it lives; one that died is taken again after it.
    lease(lease: Duration);
    /// The key stays taken at least this long, so that clocks that run apart do not start a short job twice.
    at_least(at_least: Duration);
    /// How long the record is kept (for ever). After it the key is as new.
    keep(keep: Duration);
    /// A run that died is not taken again: [`Run::Died`].
    never_again();
}

impl Once {
    /// What was recorded, if it was.
    pub fn recorded(&self) -> Result<Option<Vec<u8>>> {
        self.driver.run(self.inner.recorded())
    }

    /// Runs the work if nobody has, and records its result (64 KiB less one byte at the most).
    ///
    /// Work that fails is not recorded, and its error is returned. Unlike async work, a closure cannot be cancelled
    /// when its lock is lost: it goes on to its end, and then its result is not recorded. So that it can stop by
    /// itself it is given the hold, whose `is_held` and `token` do not wait; long work asks `is_held` between its
    /// steps, and sends the token with what it changes.
    ///
    /// # Errors
    /// `Lost` if the lock was lost before the result was recorded; as for
    /// [`Mutex::lock`](crate::blocking::Mutex::lock).
    pub fn run<E: From<Error>>(&self, work: impl FnOnce(&crate::Hold) -> Result<Vec<u8>, E>) -> Result<Run, E> {
        // The work is done when the future is asked for, so the signal is looked at once more after it.
        self.driver.run(self.inner.run(|hold| ready(work(hold))))
    }
}
