//! Leader election: a mutex whose note is what the leader proclaims.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::terms::{Shape, Terms, terms};
use crate::claim::{LockKind, Owner, Token};
use crate::error::Result;
use crate::hold::Hold;
use crate::keeper::Shared;
use crate::name::Name;
use crate::store::{LockView, Page, Waiter};

/// Use this when one of several processes leads for as long as it lives, and the others want to know who; use
/// [`Mutex`](super::Mutex) when they only take turns.
///
/// Made by [`Keeper::election`](crate::Keeper::election).
///
/// ```
/// # use lockkeeper_core::{Keeper, stores::Memory};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let keeper = Keeper::with_store(Memory::shared());
/// let election = keeper.election("scheduler").note("10.0.0.7:9000");
/// let mut leadership = election.campaign().await?;
/// leadership.proclaim("10.0.0.7:9001").await?;
/// assert_eq!(election.leader().await?.unwrap().note, b"10.0.0.7:9001");
/// leadership.resign().await
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Election {
    terms: Terms,
}

terms!(Election);

const SHAPE: Shape = Shape { kind: LockKind::Election, weight: 1, capacity: 1 };

impl Election {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self { terms: Terms::new(shared, name) }
    }

    /// Stands for election, and returns as the leader.
    ///
    /// # Cancel safety, errors, round trips
    /// As for [`Mutex::lock`](super::Mutex::lock).
    pub async fn campaign(&self) -> Result<Leadership> {
        self.terms.lock(SHAPE).await.map(Leadership)
    }

    /// Leads if nobody does right now; `None` if somebody does.
    pub async fn try_campaign(&self) -> Result<Option<Leadership>> {
        Ok(self.terms.try_lock(SHAPE).await?.map(Leadership))
    }

    /// Who leads now.
    pub async fn leader(&self) -> Result<Option<Leader>> {
        self.observe()?.look().await.map(|(leader, _)| leader)
    }

    /// Follows who leads, without standing for election.
    pub fn observe(&self) -> Result<Observer> {
        Ok(Observer { shared: self.terms.shared.clone(), name: self.terms.name.clone()?, told: None })
    }
}

/// To lead, until resigning, losing it or dropping this.
#[derive(Debug)]
#[must_use = "dropping the leadership resigns"]
pub struct Leadership(Hold);

impl Leadership {
    /// Changes what observers see of the leader.
    ///
    /// # Errors
    /// `Lost` if this is not the leader any more.
    ///
    /// # Round trips
    /// One.
    pub async fn proclaim(&mut self, note: impl Into<Vec<u8>>) -> Result<()> {
        self.0.proclaim(note.into()).await
    }

    /// Steps down; see [`Hold::release`].
    pub async fn resign(self) -> Result<()> {
        self.0.release().await
    }
}

impl Deref for Leadership {
    type Target = Hold;
    fn deref(&self) -> &Hold {
        &self.0
    }
}

/// Who leads, as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// The process that leads.
    pub owner: Owner,
    /// What it proclaims.
    pub note: Vec<u8>,
    /// Its token, where the store has tokens.
    pub token: Option<Token>,
}

/// Follows an election.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
    name: Name,
    /// What was told last; nothing yet at first.
    told: Option<Option<Leader>>,
}

/// How long to wait for news before looking again anyway.
const LOOK_EVERY: Duration = Duration::from_secs(2);

impl Observer {
    /// The next leader that differs from the one told last; at first, whoever leads now. `None`: nobody leads.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping it and asking again.
    ///
    /// # Errors
    /// Whatever keeps the store from answering; asking again goes on.
    pub async fn next(&mut self) -> Result<Option<Leader>> {
        loop {
            let (leader, seen) = self.look().await?;
            if self.told.as_ref() != Some(&leader) {
                self.told = Some(leader.clone());
                return Ok(leader);
            }
            self.shared.store.wait(&self.name, Waiter::Observer { seen }, LOOK_EVERY).await?;
        }
    }

    async fn look(&self) -> Result<(Option<Leader>, u64)> {
        let view = self.shared.store.inspect(Page::of(&self.name)).await?.pop();
        let seen = view.as_ref().map_or(0, LockView::fingerprint);
        let leader = view.as_ref().and_then(|view| view.holders().next()).map(|claim| Leader {
            owner: claim.owner.clone(),
            note: claim.note.clone(),
            token: claim.token,
        });
        Ok((leader, seen))
    }
}
