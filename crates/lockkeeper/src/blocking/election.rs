//! Leader election for threads.

use std::sync::Arc;
use std::time::Duration;

use super::driver::Driver;
use super::hold::Leadership;
use super::options::{options, terms};
use crate::kinds::{self, Leader};
use crate::{Error, ErrorKind, Result};

/// Use this when one of several processes leads for as long as it lives; the blocking form of [`kinds::Election`].
///
/// ```
/// # let keeper = lockkeeper::blocking::Keeper::connect("memory:")?;
/// let election = keeper.election("scheduler").note("10.0.0.7:9000");
/// let mut leadership = election.campaign()?;
/// leadership.proclaim("10.0.0.7:9001")?;
/// assert_eq!(election.leader()?.unwrap().note, b"10.0.0.7:9001");
/// leadership.resign()?;
/// # Ok::<(), lockkeeper::Error>(())
/// ```
#[derive(Clone)]
pub struct Election {
    pub(super) inner: kinds::Election,
    pub(super) driver: Arc<Driver>,
}

terms!(Election);

impl Election {
    /// Stands for election, and returns as the leader.
    pub fn campaign(&self) -> Result<Leadership> {
        Ok(Leadership::new(self.driver.run(self.inner.campaign())?, &self.driver))
    }

    /// Leads if nobody does right now; `None` if somebody does.
    pub fn try_campaign(&self) -> Result<Option<Leadership>> {
        let leadership = self.driver.run(self.inner.try_campaign())?;
        Ok(leadership.map(|leadership| Leadership::new(leadership, &self.driver)))
    }

    /// Who leads now.
    pub fn leader(&self) -> Result<Option<Leader>> {
        self.driver.run(self.inner.leader())
    }

    /// Follows who leads, without standing for election.
    pub fn observe(&self) -> Result<Observer> {
        Ok(Observer { inner: self.inner.observe()?, driver: self.driver.clone() })
    }
}

/// Follows an election.
#[derive(Clone)]
pub struct Observer {
    inner: kinds::Observer,
    driver: Arc<Driver>,
}

impl Observer {
    /// Blocks until there is a leader that differs from the one told last; at first, whoever leads now. `None`: nobody
    /// leads. A thread that must also end some day uses [`next_within`](Self::next_within).
    ///
    /// # Errors
    /// Whatever keeps the store from answering; asking again goes on.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and each step may fail")]
    pub fn next(&mut self) -> Result<Option<Leader>> {
        self.driver.run(self.inner.next())
    }

    /// As [`next`](Self::next), for at most so long.
    ///
    /// # Errors
    /// `Timeout` if nothing changed; asking again goes on.
    pub fn next_within(&mut self, at_most: Duration) -> Result<Option<Leader>> {
        let next = self.inner.next();
        self.driver.run(async {
            tokio::time::timeout(at_most, next).await.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Timeout, format!("the leader did not change within {at_most:?}")))
            })
        })
    }
}
