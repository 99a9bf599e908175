//! What this client knows of its own claims, so that most questions need no other first.
//!
//! Nothing in here decides who is in: a claim that is not known here is looked up. Surprise: a claim is remembered from
//! before its first question is sent until its leaving is answered, because one that nobody waits for may still arrive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockkeeper_core::time::{Clock, Moment};
use lockkeeper_core::{ClaimId, Name};

use crate::news::Ear;
use crate::session::Session;

#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<HashMap<Place, Known>>);

/// One id is one claim on one lock; nothing keeps a caller from using it on another lock too.
type Place = (ClaimId, Name);

/// One claim.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The lease it hangs on.
    pub(crate) session: Option<Arc<Session>>,
    /// Its create-revision, once it was told.
    pub(crate) order: Option<i64>,
    /// May a question of it still be heard that was not answered?
    pub(crate) stray: bool,
    /// What it waits for, and how it hears of that.
    pub(crate) waits_for: Option<Awaited>,
    pub(crate) ear: Option<Arc<Ear>>,
    /// When it is no longer to be kept, though its lease is kept alive for others.
    pub(crate) until: Option<Moment>,
    /// It has run out and is being taken out: it must not be told that it stands.
    swept: bool,
}

/// The news that a waiting claim needs.
#[derive(Debug, Clone)]
pub(crate) struct Awaited {
    /// The rival's key, or with `range_end` all keys of the line.
    pub(crate) key: Vec<u8>,
    pub(crate) range_end: Vec<u8>,
    /// The state of the store that its standing was judged by.
    pub(crate) revision: i64,
}

impl Claims {
    pub(crate) fn get(&self, lock: &Name, id: ClaimId) -> Option<Known> {
        self.all().get(&(id, lock.clone())).cloned()
    }

    /// A question is about to be sent on this lease; until it is answered, it may be heard late. Says whether an earlier one may.
    pub(crate) fn asks(&self, lock: &Name, id: ClaimId, session: &Arc<Session>) -> bool {
        let mut all = self.all();
        let known = all.entry((id, lock.clone())).or_insert_with(|| Known {
            session: None,
            order: None,
            stray: false,
            waits_for: None,
            ear: None,
            until: None,
            swept: false,
        });
        known.session = Some(session.clone());
        std::mem::replace(&mut known.stray, true)
    }

    /// What is known of it changes.
    pub(crate) fn change(&self, lock: &Name, id: ClaimId, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.all().get_mut(&(id, lock.clone())) {
            change(known);
        }
    }

    pub(crate) fn forget(&self, lock: &Name, id: ClaimId) -> Option<Known> {
        self.all().remove(&(id, lock.clone()))
    }

    /// The claim is about to be asked for, or renewed, for this long. `None` if it is being taken out: then it is gone, or
    /// soon will be.
    pub(crate) fn goes_on(&self, lock: &Name, id: ClaimId, length: Duration) -> Option<Known> {
        let mut all = self.all();
        let known = all.get_mut(&(id, lock.clone())).filter(|known| !known.swept)?;
        known.until = known.until.map(|until| until.max(Clock::system().now() + length));
        Some(known.clone())
    }

    /// Claims on a shared lease whose own time is over, each once. Whoever asks for them meanwhile finds them gone.
    pub(crate) fn overdue(&self) -> Vec<(Place, Known)> {
        let now = Clock::system().now();
        let mut all = self.all();
        let overdue = all.iter_mut().filter(|(_, known)| !known.swept && known.until.is_some_and(|until| until <= now));
        overdue
            .map(|(place, known)| {
                known.swept = true;
                (place.clone(), known.clone())
            })
            .collect()
    }

    /// One that was to be taken out could not be.
    pub(crate) fn not_swept(&self, lock: &Name, id: ClaimId) {
        self.change(lock, id, |known| known.swept = false);
    }

    /// Is it being taken out?
    pub(crate) fn is_swept(&self, lock: &Name, id: ClaimId) -> bool {
        self.all().get(&(id, lock.clone())).is_some_and(|known| known.swept)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Place, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
