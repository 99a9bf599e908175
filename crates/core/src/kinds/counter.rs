//! The counter: a number that many change at once, and stock that is never oversold.

use std::sync::Arc;
use std::time::Duration;

use super::cell::{Cell, unexpected};
use crate::cell::{CellAction, CellReply};
use crate::error::{Error, ErrorKind, Result};
use crate::keeper::Shared;
use crate::mutants::{self, Mutant};

/// Use this to count, or to take from a stock without overselling; made by
/// [`Keeper::counter`](crate::Keeper::counter).
///
/// ```
/// # use lockkeeper_core::{Keeper, stores::Memory};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let keeper = Keeper::with_store(Memory::shared());
/// let stock = keeper.counter("stock/42");
/// stock.add(1).await?;
/// assert_eq!(stock.take(1).await?, Some(0));
/// assert_eq!(stock.take(1).await?, None);         // sold out
/// # Ok::<(), lockkeeper_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Counter {
    cell: Cell,
    floor: i64,
}

impl Counter {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self { cell: Cell::new(shared, name), floor: 0 }
    }

    /// The least that [`take`](Self::take) leaves (0).
    #[must_use]
    pub fn floor(mut self, floor: i64) -> Self {
        self.floor = floor;
        self
    }

    /// Forget it after so long without a change.
    #[must_use]
    pub fn keep(mut self, keep: Duration) -> Self {
        self.cell = self.cell.keep(keep);
        self
    }

    /// The number; zero if nobody has counted yet.
    pub async fn get(&self) -> Result<i64> {
        let Some(found) = self.cell.get().await? else { return Ok(0) };
        let number = std::str::from_utf8(&found.value).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| Error::new(ErrorKind::Mismatch, "the cell does not hold a number"))
    }

    /// Adds, and answers the new number.
    ///
    /// # Errors
    /// If the store did not answer, the [effect](Error::effect) is unknown, and it is not repeated: it might count
    /// twice.
    pub async fn add(&self, by: i64) -> Result<i64> {
        if mutants::on(Mutant::CounterInTwoSteps) {
            let old = self.get().await?;
            return self.raise_to(old.saturating_add(by)).await;
        }
        match self.cell.apply(CellAction::Add { by }).await? {
            CellReply::Number { value, .. } => Ok(value),
            other => Err(unexpected(&other)),
        }
    }

    /// Takes so many if that leaves at least the floor, and answers what is left; `None` if there are too few.
    ///
    /// # Errors
    /// As for [`add`](Self::add).
    pub async fn take(&self, by: u64) -> Result<Option<i64>> {
        match self.cell.apply(CellAction::Take { by, floor: self.floor }).await? {
            CellReply::Number { value, .. } => Ok(Some(value)),
            CellReply::TooLow { .. } => Ok(None),
            other => Err(unexpected(&other)),
        }
    }

    /// Raises the number to at least this, and answers it.
    pub async fn raise_to(&self, at_least: i64) -> Result<i64> {
        match self.cell.apply(CellAction::Max { at_least }).await? {
            CellReply::Number { value, .. } => Ok(value),
            other => Err(unexpected(&other)),
        }
    }
}
