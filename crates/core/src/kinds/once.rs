//! Once: at most one recorded run per key, with its result for those who come later.
//!
//! A lock keeps two from running at the same time, and a fenced cell of the same name keeps the result. Surprise: it is
//! the *record* that happens at most once. A run that died half-way leaves none and is taken again, unless
//! [`never_again`](Once::never_again) was asked for; only then "at most once" holds for the run itself.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::cell::{Cell, FencedCell};
use super::terms::{Shape, Terms};
use crate::acquire::Wait;
use crate::claim::LockKind;
use crate::error::{Error, ErrorKind, Result};
use crate::hold::Hold;
use crate::keeper::Shared;

/// Use this when a job must be done once per key by whoever comes first; made by
/// [`Keeper::once`](crate::Keeper::once).
///
/// ```
/// # use lockkeeper_core::{Keeper, Error, stores::Memory, kinds::Run};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let keeper = Keeper::with_store(Memory::shared());
/// let report = keeper.once("report/2026-11-15");
/// let first = report.run(|_hold| async { Ok::<_, Error>(b"42 pages".to_vec()) }).await?;
/// let second = report.run(|_hold| async { Err(Error::bug("it does not run again")) }).await?;
/// assert_eq!(first, Run::Ran(b"42 pages".to_vec()));
/// assert_eq!(second, Run::Recorded(b"42 pages".to_vec()));
/// # Ok::<(), Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Once {
    terms: Terms,
    cell: Cell,
    skip: bool,
    never_again: bool,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Run {
    /// This call did it; here is the result that was recorded.
    Ran(Vec<u8>),
    /// It was done before; here is what was recorded then.
    Recorded(Vec<u8>),
    /// Somebody is doing it right now, and this call does not wait.
    Running,
    /// A run died half-way, and [`Once::never_again`] was asked for.
    Died,
}

const SHAPE: Shape = Shape { kind: LockKind::Once, weight: 1, capacity: 1 };
/// What the cell says: the first byte, then the result.
const STARTED: u8 = b's';
const DONE: u8 = b'd';

impl Once {
    pub(crate) fn new(shared: Arc<Shared>, key: &str) -> Self {
        let cell = Cell::new(shared.clone(), key);
        Self { terms: Terms::new(shared, key), cell, skip: false, never_again: false }
    }

    /// How long those who come second wait for the first (60 s).
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.terms.wait = Wait::For(wait);
        self
    }

    /// Those who come second do not wait: [`Run::Running`].
    #[must_use]
    pub fn skip(mut self) -> Self {
        self.skip = true;
        self
    }

    /// A run may take this long and no longer; one that died is taken again after it.
    #[must_use]
    pub fn at_most(mut self, at_most: Duration) -> Self {
        self.terms.lease = at_most;
        self.terms.renews = false;
        self
    }

    /// The lease of a run (30 s), renewed while it lives; one that died is taken again after it.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.terms.lease = lease;
        self.terms.renews = true;
        self
    }

    /// The key stays taken at least this long, so that clocks that run apart do not start a short job twice.
    #[must_use]
    pub fn at_least(mut self, at_least: Duration) -> Self {
        self.terms.at_least = at_least;
        self
    }

    /// How long the record is kept (for ever). After it the key is as new.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        self.cell = self.cell.keep(keep);
        self
    }

    /// A run that died is not taken again: [`Run::Died`].
    #[must_use]
    pub fn never_again(mut self) -> Self {
        self.never_again = true;
        self
    }

    /// What was recorded, if it was.
    pub async fn recorded(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.cell.get().await?.and_then(|found| result_in(&found.value)))
    }

    /// Runs the work if nobody has, and records its result (64 KiB less one byte at the most).
    ///
    /// Work that fails is not recorded, and its error is returned. Work whose lock is lost is dropped.
    ///
    /// # Errors
    /// `Lost` if the lock was lost before the result was recorded; as for [`Mutex::lock`](super::Mutex::lock).
    pub async fn run<W, F, E>(&self, work: W) -> Result<Run, E>
    where
        W: FnOnce(&Hold) -> F,
        F: Future<Output = Result<Vec<u8>, E>>,
        E: From<Error>,
    {
        let hold = match self.begin().await? {
            Begun::Go(hold) => hold,
            Begun::Settled(run) => return Ok(run),
        };
        match hold.run(work(&hold)).await {
            Ok(Ok(result)) => {
                hold.record(&result).await?;
                Ok(Run::Ran(result))
            }
            Ok(Err(error)) => {
                // What the work said is what the caller has to know.
                hold.release().await.ok();
                Err(error)
            }
            Err(lost) => Err(Error::from(lost).into()),
        }
    }

    /// The first half of [`run`](Self::run), for work that does not fit into a future: takes the key if it is to be run.
    ///
    /// # Errors
    /// As for [`Mutex::lock`](super::Mutex::lock).
    pub async fn begin(&self) -> Result<Begun> {
        if let Some(result) = self.recorded().await? {
            return Ok(Begun::Settled(Run::Recorded(result)));
        }
        let Some(hold) = self.take().await? else { return Ok(Begun::Settled(Run::Running)) };
        let cell = self.cell.fenced(&hold)?;
        if let Some(settled) = self.settled(&cell).await? {
            hold.release().await.ok();
            return Ok(Begun::Settled(settled));
        }
        Ok(Begun::Go(OnceHold { hold, cell, never_again: self.never_again }))
    }

    /// Forgets the record, or that a run died, so that the next call runs again. Waits for a run that is under way.
    ///
    /// # Errors
    /// As for [`Mutex::lock`](super::Mutex::lock).
    pub async fn forget(&self) -> Result<()> {
        let hold = self.terms.lock(SHAPE).await?;
        let cell = self.cell.fenced(&hold)?;
        cell.read().await?;
        cell.write(None).await?;
        hold.release().await
    }

    async fn take(&self) -> Result<Option<Hold>> {
        if self.skip { self.terms.try_lock(SHAPE).await } else { self.terms.lock(SHAPE).await.map(Some) }
    }

    /// Enters the fence: is there a record by now, or a run that died?
    async fn settled(&self, cell: &FencedCell) -> Result<Option<Run>> {
        let found = cell.read().await?.map(|found| found.value);
        match found.as_deref() {
            Some([DONE, result @ ..]) => return Ok(Some(Run::Recorded(result.to_vec()))),
            Some([STARTED, ..]) if self.never_again => return Ok(Some(Run::Died)),
            None | Some([STARTED, ..]) => {}
            Some(_) => {
                return Err(Error::new(ErrorKind::Foreign, "the cell of the key holds something else")
                    .with_hint("use another key, or remove the cell of that name"));
            }
        }
        if self.never_again {
            cell.write(Some(&marked(STARTED, &[]))).await?;
        }
        Ok(None)
    }
}

/// What [`Once::begin`] came to.
#[derive(Debug)]
pub enum Begun {
    /// Run it now.
    Go(OnceHold),
    /// There is nothing to run.
    Settled(Run),
}

/// A [`Hold`] on a key whose run is under way; dropped without a record, the key is free for another run.
#[must_use = "dropping a hold releases the key"]
pub struct OnceHold {
    hold: Hold,
    cell: FencedCell,
    never_again: bool,
}

impl OnceHold {
    /// Records the result of the run and releases the key.
    ///
    /// # Errors
    /// `Lost` if the key was lost before the result was recorded.
    pub async fn record(self, result: &[u8]) -> Result<()> {
        self.cell.write(Some(&marked(DONE, result))).await?;
        // The record stands; whether the release was confirmed changes nothing for the caller.
        self.hold.release().await.ok();
        Ok(())
    }

    /// Releases the key without a record: the run failed and said so, which is not dying, and another may try.
    pub async fn release(self) -> Result<()> {
        if self.never_again {
            self.cell.write(None).await?;
        }
        self.hold.release().await
    }
}

impl fmt::Debug for OnceHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceHold").field(&self.hold).finish()
    }
}

impl Deref for OnceHold {
    type Target = Hold;
    fn deref(&self) -> &Hold {
        &self.hold
    }
}

fn marked(mark: u8, result: &[u8]) -> Vec<u8> {
    [&[mark], result].concat()
}

fn result_in(value: &[u8]) -> Option<Vec<u8>> {
    match value {
        [DONE, result @ ..] => Some(result.to_vec()),
        _ => None,
    }
}
