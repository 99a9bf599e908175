//! Several locks at once: all or nothing.
//!
//! Names are sorted and taken in that order by everybody, so that two who want the same locks never wait for each
//! other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Mutex;
use crate::claim::Token;
use crate::error::{Error, ErrorKind, Result};
use crate::hold::{Hold, Lost};
use crate::keeper::Shared;
use crate::limits::MULTI_NAMES;
use crate::mutants::{self, Mutant};
use crate::name::Name;

/// Use this when work needs several mutexes together; made by [`Keeper::multi`](crate::Keeper::multi).
///
/// ```
/// # use lockkeeper_core::{Keeper, stores::Memory};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let keeper = Keeper::with_store(Memory::shared());
/// let both = keeper.multi(["account/2", "account/1"]).lock().await?;
/// assert!(keeper.mutex("account/1").try_lock().await?.is_none());
/// assert_eq!(both.tokens().len(), 2);
/// both.release().await
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct Multi {
    shared: Arc<Shared>,
    names: Result<Vec<Name>>,
    wait: Option<Duration>,
    lease: Option<Duration>,
    note: Vec<u8>,
}

impl Multi {
    pub(crate) fn new<'n>(shared: Arc<Shared>, names: impl IntoIterator<Item = &'n str>) -> Self {
        let names: Result<Vec<Name>> = names.into_iter().map(Name::new).collect();
        let names = names.and_then(|mut names| {
            names.sort();
            names.dedup();
            match names.len() {
                1..=MULTI_NAMES => Ok(names),
                count => Err(Error::invalid("names", format!("{count} is not between 1 and {MULTI_NAMES}"))),
            }
        });
        Self { shared, names, wait: Some(Duration::from_secs(60)), lease: None, note: Vec::new() }
    }

    /// How long to wait for all of them together (60 s).
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Waits without end.
    #[must_use]
    pub fn forever(mut self) -> Self {
        self.wait = None;
        self
    }

    /// The lease of each (30 s); living holds renew it.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// A few bytes for people, shown with each claim.
    #[must_use]
    pub fn note(mut self, note: impl Into<Vec<u8>>) -> Self {
        self.note = note.into();
        self
    }

    /// Takes all of them, or none.
    ///
    /// # Cancel safety
    /// Dropping the future releases what was taken, and leaves nothing beyond a claim's own lease.
    ///
    /// # Errors
    /// As for [`Mutex::lock`]; whatever was taken is released before the error is returned.
    ///
    /// # Round trips
    /// One per name when free.
    pub async fn lock(&self) -> Result<MultiHold> {
        let give_up = self.wait.map(|wait| self.shared.clock.now() + wait);
        let mut holds = Vec::new();
        for name in self.names.clone()? {
            let mut mutex = self.mutex(&name);
            if !holds.is_empty() {
                mutex = mutex.standing_in_the_store();
            }
            let mutex = match give_up {
                Some(end) => mutex.wait(self.shared.clock.now().until(end)),
                None => mutex.forever(),
            };
            match mutex.lock().await {
                Ok(hold) => holds.push(hold),
                Err(error) => return Err(release_after(holds, error).await),
            }
        }
        let all = MultiHold { holds };
        match all.holds.iter().find(|hold| !hold.is_held()) {
            None => Ok(all),
            // The first ones ran out while the last ones were waited for.
            Some(lost) => {
                let lost =
                    Error::new(ErrorKind::Lost, format!("`{}` was lost while the others were waited for", lost.name()));
                Err(release_after(all.holds, lost).await)
            }
        }
    }

    /// Takes all of them if all are free right now; `None`, with nothing taken, if one is not.
    pub async fn try_lock(&self) -> Result<Option<MultiHold>> {
        let mut holds = Vec::new();
        for name in self.names.clone()? {
            match self.mutex(&name).try_lock().await {
                Ok(Some(hold)) => holds.push(hold),
                Ok(None) => {
                    give_back(holds).await;
                    return Ok(None);
                }
                Err(error) => return Err(release_after(holds, error).await),
            }
        }
        Ok(Some(MultiHold { holds }))
    }

    fn mutex(&self, name: &Name) -> Mutex {
        let mutex = Mutex::new(self.shared.clone(), name.as_str()).note(self.note.clone());
        match self.lease {
            Some(lease) => mutex.lease(lease),
            None => mutex,
        }
    }
}

async fn release_after(holds: Vec<Hold>, error: Error) -> Error {
    give_back(holds).await;
    error
}

/// All or nothing: what was taken of a part is not kept.
async fn give_back(holds: Vec<Hold>) {
    if mutants::on(Mutant::PartialMultiKept) {
        return std::mem::forget(holds);
    }
    release_all(holds).await.ok();
}

/// Releases in the opposite order; the first error is told, after all have been tried.
async fn release_all(holds: Vec<Hold>) -> Result<()> {
    let mut outcome = Ok(());
    for hold in holds.into_iter().rev() {
        outcome = outcome.and(hold.release().await);
    }
    outcome
}

/// Several locks that are held together; if one is lost, all count as lost.
#[derive(Debug)]
#[must_use = "dropping the holds releases the locks"]
pub struct MultiHold {
    holds: Vec<Hold>,
}

impl MultiHold {
    /// The tokens by name.
    pub fn tokens(&self) -> BTreeMap<Name, Option<Token>> {
        self.holds.iter().map(|hold| (hold.name().clone(), hold.token())).collect()
    }

    /// The holds, in the order of their names.
    pub fn holds(&self) -> &[Hold] {
        &self.holds
    }

    /// Are all of them still ours?
    pub fn is_held(&self) -> bool {
        self.holds.iter().all(Hold::is_held)
    }

    /// Completes when the first of them is lost.
    pub async fn lost(&self) -> Lost {
        let mut each: Vec<_> = self.holds.iter().map(|hold| Box::pin(hold.lost())).collect();
        std::future::poll_fn(move |task| {
            for lost in &mut each {
                let lost = lost.as_mut().poll(task);
                if lost.is_ready() {
                    return lost;
                }
            }
            std::task::Poll::Pending
        })
        .await
    }

    /// Releases all of them; the first error is told, after all have been tried.
    pub async fn release(self) -> Result<()> {
        release_all(self.holds).await
    }
}
