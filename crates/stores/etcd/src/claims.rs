//! What this client knows of its own claims, so that most questions need no other first.
//!
//! Nothing in here decides who is in: a claim that is not known here is looked up. Surprise: a claim is remembered from
//! before its first question is sent until its leaving is answered, because one that nobody waits for may still arrive.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockkeeper_core::time::{Clock, Moment};
use lockkeeper_core::{ClaimId, Name, Result};

use crate::keys::Slot;
use crate::news::Ear;
use crate::session::Session;

#[derive(Debug)]
pub(crate) struct Claims {
    /// What this client's slots begin with.
    client: u128,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    claims: HashMap<Place, Known>,
    /// The numbers of slots in use, by name.
    slots: HashMap<Name, BTreeSet<u32>>,
}

/// One id is one claim on one lock; nothing keeps a caller from using it on another lock too.
type Place = (ClaimId, Name);

/// One claim.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// Its key, and the number of the slot that it is.
    pub(crate) key: Vec<u8>,
    pub(crate) number: u32,
    /// The slot stays in use when the claim is forgotten: its name is kept.
    pub(crate) kept: bool,
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

impl Table {
    /// The first number on this name that no claim of ours has.
    fn free_slot(&mut self, lock: &Name) -> u32 {
        let taken = self.slots.entry(lock.clone()).or_default();
        let number = (0..).find(|number| !taken.contains(number)).unwrap_or(u32::MAX);
        taken.insert(number);
        number
    }

    fn give_back(&mut self, lock: &Name, number: u32) {
        if let Some(taken) = self.slots.get_mut(lock) {
            taken.remove(&number);
            if taken.is_empty() {
                self.slots.remove(lock);
            }
        }
    }
}

impl Claims {
    pub(crate) fn new() -> Result<Self> {
        let client = u128::from_be_bytes(ClaimId::random()?.to_bytes());
        Ok(Self { client, table: Mutex::default() })
    }

    pub(crate) fn get(&self, lock: &Name, id: ClaimId) -> Option<Known> {
        self.all().claims.get(&(id, lock.clone())).cloned()
    }

    /// A question is about to be sent on this lease; until it is answered, it may be heard late. Gives
    /// its key, and says whether an earlier question may still be heard.
    pub(crate) fn asks(&self, lock: &Name, id: ClaimId, session: &Arc<Session>) -> (Vec<u8>, bool) {
        let mut all = self.all();
        let place = (id, lock.clone());
        if !all.claims.contains_key(&place) {
            let number = all.free_slot(lock);
            let known = Known {
                key: Slot { client: self.client, number }.key(lock),
                number,
                kept: false,
                session: None,
                order: None,
                stray: false,
                waits_for: None,
                ear: None,
                until: None,
                swept: false,
            };
            all.claims.insert(place.clone(), known);
        }
        let Some(known) = all.claims.get_mut(&place) else { return (Vec::new(), false) };
        known.session = Some(session.clone());
        (known.key.clone(), std::mem::replace(&mut known.stray, true))
    }

    /// Something else stands at its slot: it gets another one, and this one is left alone for as long as it is there.
    pub(crate) fn moves(&self, lock: &Name, id: ClaimId) {
        let mut all = self.all();
        let place = (id, lock.clone());
        let Some(old) = all.claims.get(&place).map(|known| known.number) else { return };
        let number = all.free_slot(lock);
        all.give_back(lock, old);
        if let Some(known) = all.claims.get_mut(&place) {
            known.number = number;
            known.key = Slot { client: self.client, number }.key(lock);
        }
    }

    /// What is known of it changes.
    pub(crate) fn change(&self, lock: &Name, id: ClaimId, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.all().claims.get_mut(&(id, lock.clone())) {
            change(known);
        }
    }

    pub(crate) fn forget(&self, lock: &Name, id: ClaimId) -> Option<Known> {
        let mut all = self.all();
        let known = all.claims.remove(&(id, lock.clone()))?;
        if !known.kept {
            all.give_back(lock, known.number);
        }
        Some(known)
    }

    /// A name is no longer kept, and its slot is free.
    pub(crate) fn give_back(&self, lock: &Name, number: u32) {
        self.all().give_back(lock, number);
    }

    /// The claim is about to be asked for, or renewed, for this long. `None` if it is being taken out: then it is gone, or
    /// soon will be.
    pub(crate) fn goes_on(&self, lock: &Name, id: ClaimId, length: Duration) -> Option<Known> {
        let mut all = self.all();
        let known = all.claims.get_mut(&(id, lock.clone())).filter(|known| !known.swept)?;
        known.until = known.until.map(|until| until.max(Clock::system().now() + length));
        Some(known.clone())
    }

    /// Claims on a shared lease whose own time is over, each once. Whoever asks for them meanwhile finds them gone.
    pub(crate) fn overdue(&self) -> Vec<(Place, Known)> {
        let now = Clock::system().now();
        let mut all = self.all();
        let overdue =
            all.claims.iter_mut().filter(|(_, known)| !known.swept && known.until.is_some_and(|until| until <= now));
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
        self.all().claims.get(&(id, lock.clone())).is_some_and(|known| known.swept)
    }

    fn all(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
