//! The cell: a small value with a version, for optimistic locking, alone or behind a fence.

use std::sync::Arc;
use std::time::Duration;

use crate::cell::{CellAction, CellOp, CellReply, Versioned};
use crate::claim::Token;
use crate::error::{Error, ErrorKind, Result};
use crate::hold::Hold;
use crate::keeper::Shared;
use crate::name::Name;

/// Use this when conflicts are rare and the value is small; use [`Mutex`](super::Mutex) when the work is long.
///
/// Made by [`Keeper::cell`](crate::Keeper::cell).
///
/// ```
/// # use lockkeeper_core::{Keeper, stores::Memory};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let keeper = Keeper::with_store(Memory::shared());
/// let cell = keeper.cell("config");
/// cell.put(b"a").await?;
/// let done = cell.update(|old| Some([old.unwrap_or_default(), b"b"].concat())).await?;
/// assert_eq!((done.value.as_deref(), done.conflicts), (Some(&b"ab"[..]), 0));
/// # Ok::<(), lockkeeper_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Cell {
    shared: Arc<Shared>,
    name: Result<Name>,
    keep: Option<Duration>,
}

/// What [`Cell::compare_and_set`] came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swap {
    /// It is set, with this version.
    Done(u64),
    /// Somebody was faster; this is there now.
    Conflict(Option<Versioned>),
}

/// What [`Cell::update`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    /// What is there now; `None` if it was removed.
    pub value: Option<Vec<u8>>,
    /// The version now; zero if it was removed.
    pub version: u64,
    /// How often somebody else was faster.
    pub conflicts: u32,
}

impl Cell {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self { shared, name: Name::new(name), keep: None }
    }

    /// Forget it after so long without a change.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        self.keep = Some(keep);
        self
    }

    /// What is there.
    pub async fn get(&self) -> Result<Option<Versioned>> {
        self.shared.store.read(&self.name.clone()?).await
    }

    /// Sets it, whatever is there; answers the new version.
    pub async fn put(&self, value: &[u8]) -> Result<u64> {
        let action = CellAction::Put { value: value.to_vec(), if_version: None };
        match self.apply(action).await? {
            CellReply::Done { version } => Ok(version),
            other => Err(unexpected(&other)),
        }
    }

    /// Sets it if the version is still this one; zero stands for a cell that is not there.
    ///
    /// # Errors
    /// If the store did not answer, the [effect](Error::effect) is unknown: a retry that found a conflict could not
    /// tell its own write from somebody else's.
    pub async fn compare_and_set(&self, version: u64, value: &[u8]) -> Result<Swap> {
        self.swap(CellAction::Put { value: value.to_vec(), if_version: Some(version) }).await
    }

    /// Removes it if the version is still this one.
    pub async fn compare_and_remove(&self, version: u64) -> Result<Swap> {
        self.swap(CellAction::Remove { if_version: Some(version) }).await
    }

    /// Removes it, whatever is there.
    pub async fn remove(&self) -> Result<()> {
        self.apply(CellAction::Remove { if_version: None }).await.map(|_| ())
    }

    /// Reads, changes and writes, again and again until nobody was faster; `None` removes.
    ///
    /// The closure may run several times. Pauses between tries grow, so that many who update one cell all get
    /// through; [`Updated::conflicts`] says how often this one lost.
    pub async fn update(&self, mut change: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>) -> Result<Updated> {
        let mut current = self.get().await?;
        for conflicts in 0.. {
            let value = change(current.as_ref().map(|current| current.value.as_slice()));
            let version = current.as_ref().map_or(0, |current| current.version);
            let swap = match &value {
                Some(value) => self.compare_and_set(version, value).await?,
                None => self.compare_and_remove(version).await?,
            };
            match swap {
                Swap::Done(version) => return Ok(Updated { value, version, conflicts }),
                Swap::Conflict(newer) => current = newer,
            }
            let longest = 200_u64 << conflicts.min(8);
            tokio::time::sleep(Duration::from_micros(fastrand::u64(..longest))).await;
        }
        Err(Error::bug("an update ended without an answer"))
    }

    /// The cell behind its fence, with the token of a hold: a later holder's entry keeps this one out.
    ///
    /// # Errors
    /// `Unsupported` if the hold has no token, or is a permit: permits have no order to fence by.
    pub fn fenced(&self, hold: &Hold) -> Result<FencedCell> {
        let Some(token) = hold.token() else {
            return Err(Error::new(ErrorKind::Unsupported, "the store has no tokens, so nothing can be fenced on it"));
        };
        if hold.is_permit() {
            return Err(Error::new(ErrorKind::Unsupported, "permits have no fence: several may be in"));
        }
        Ok(FencedCell { cell: self.clone(), token, shared: hold.is_shared() })
    }

    async fn swap(&self, action: CellAction) -> Result<Swap> {
        match self.apply(action).await? {
            CellReply::Done { version } => Ok(Swap::Done(version)),
            CellReply::Conflict { current } => Ok(Swap::Conflict(current)),
            other => Err(unexpected(&other)),
        }
    }

    pub(crate) async fn apply(&self, action: CellAction) -> Result<CellReply> {
        let op = CellOp { action, keep: self.keep };
        op.check()?;
        self.shared.store.update(&self.name.clone()?, &op).await
    }
}

pub(crate) fn unexpected(reply: &CellReply) -> Error {
    Error::bug(format!("a cell was answered with something else: {reply:?}"))
}

/// A cell that only the newest holder reads to write.
///
/// Fencing writes alone still loses updates: the next holder may have read, but not yet written, when a stale write
/// lands. So the fence is entered with the token *before* the read, by [`read`](Self::read).
#[derive(Clone)]
pub struct FencedCell {
    cell: Cell,
    token: Token,
    shared: bool,
}

impl FencedCell {
    /// Enters the fence and reads what is behind it, in one step.
    ///
    /// # Errors
    /// `Lost` if a later holder has been here.
    pub async fn read(&self) -> Result<Option<Versioned>> {
        match self.cell.apply(CellAction::FenceEnter { token: self.token, shared: self.shared }).await? {
            CellReply::Entered { current } => Ok(current),
            CellReply::Stale { seen } => Err(self.stale(seen)),
            other => Err(unexpected(&other)),
        }
    }

    /// Writes behind the fence; `None` clears.
    ///
    /// # Errors
    /// `Lost` if a later holder has been here, `Unsupported` under a hold to read.
    pub async fn write(&self, value: Option<&[u8]>) -> Result<u64> {
        if self.shared {
            return Err(Error::new(ErrorKind::Unsupported, "a hold to read does not write"));
        }
        let action = CellAction::FencedPut { token: self.token, value: value.map(<[u8]>::to_vec) };
        match self.cell.apply(action).await? {
            CellReply::Done { version } => Ok(version),
            CellReply::Stale { seen } => Err(self.stale(seen)),
            other => Err(unexpected(&other)),
        }
    }

    fn stale(&self, seen: Token) -> Error {
        Error::new(ErrorKind::Lost, format!("the fence has seen token {seen}, which is later than {}", self.token))
            .with_hint("stop the work: another holds the lock now, and nothing was changed")
    }
}
