//! The limiter: so many per so long, for all processes together.

use std::sync::Arc;
use std::time::Duration;

use super::cell::{Cell, unexpected};
use crate::cell::{CellAction, CellReply};
use crate::error::{Error, ErrorKind, Result};
use crate::keeper::Shared;
use crate::store::StoreTime;

/// Use this to bound a rate across processes; made by [`Keeper::limiter`](crate::Keeper::limiter).
///
/// It is smooth: bursts of up to the limit, then one for every share of the period (the generic cell rate algorithm).
/// [`fixed_window`](Self::fixed_window) makes it the plain kind that starts anew every period.
///
/// ```
/// # use std::time::Duration;
/// # use lockkeeper_core::{Keeper, stores::Memory, kinds::Decision};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let keeper = Keeper::with_store(Memory::shared());
/// let mails = keeper.limiter("mails", 2, Duration::from_secs(60));
/// assert!(mails.try_take(1).await?.is_admitted());
/// assert!(mails.try_take(1).await?.is_admitted());
/// let Decision::Limited { retry_after: Some(wait), .. } = mails.try_take(1).await? else { panic!() };
/// assert!(wait <= Duration::from_secs(30));
/// # Ok::<(), lockkeeper_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Limiter {
    shared: Arc<Shared>,
    cell: Cell,
    limit: u64,
    per: Duration,
    fixed: bool,
}

/// What a limiter answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Go ahead.
    Admitted {
        /// How much could be taken now.
        remaining: u64,
        /// When all of it is there again.
        full_in: Duration,
    },
    /// Not now; nothing was taken.
    Limited {
        /// How much could be taken now.
        remaining: u64,
        /// When asking again for the same can succeed; `None` if it never can.
        retry_after: Option<Duration>,
    },
}

impl Decision {
    /// May it go ahead?
    pub fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted { .. })
    }
}

impl Limiter {
    pub(crate) fn new(shared: Arc<Shared>, name: &str, limit: u64, per: Duration) -> Self {
        let cell = Cell::new(shared.clone(), name);
        Self { shared, cell, limit, per, fixed: false }
    }

    /// A window that starts anew every period: up to twice the limit may pass around its edge.
    #[must_use]
    pub fn fixed_window(mut self) -> Self {
        self.fixed = true;
        self
    }

    /// Takes so many if the limit allows it right now.
    ///
    /// # Errors
    /// `Unsupported` on a store without a clock. If the store did not answer, the [effect](Error::effect) is unknown,
    /// and it is not repeated: it might count twice.
    pub async fn try_take(&self, take: u64) -> Result<Decision> {
        let profile = self.shared.store.profile();
        if profile.time == StoreTime::None {
            let message = format!("the store `{}` has no clock of its own, which a limiter needs", profile.scheme);
            return Err(Error::new(ErrorKind::Unsupported, message).with_hint("use another store for limits"));
        }
        let (limit, per) = (self.limit, self.per);
        let action = match self.fixed {
            true => CellAction::Window { take, limit, per },
            false => CellAction::Gcra { take, limit, per },
        };
        match self.cell.apply(action).await? {
            CellReply::Admitted { remaining, full_in } => Ok(Decision::Admitted { remaining, full_in }),
            CellReply::Limited { remaining, retry_after } => Ok(Decision::Limited { remaining, retry_after }),
            other => Err(unexpected(&other)),
        }
    }

    /// Takes so many, waiting until the limit allows it, at most so long.
    ///
    /// # Errors
    /// `Timeout` if it does not within `wait`; `Invalid` if it never can.
    ///
    /// # Cancel safety
    /// Dropping it while it waits takes nothing.
    pub async fn take(&self, take: u64, wait: Duration) -> Result<()> {
        let end = self.shared.clock.now() + wait;
        loop {
            let Decision::Limited { retry_after, .. } = self.try_take(take).await? else { return Ok(()) };
            let Some(pause) = retry_after else {
                return Err(Error::invalid("amount", format!("{take} is more than the limit of {}", self.limit)));
            };
            if self.shared.clock.now() + pause > end {
                return Err(Error::new(ErrorKind::Timeout, format!("the limit does not allow it within {wait:?}"))
                    .with_hint(format!("it does in {pause:?}")));
            }
            // A little more, so that not all who wait come back in the same moment.
            tokio::time::sleep(pause + Duration::from_micros(fastrand::u64(..2_000))).await;
        }
    }
}
