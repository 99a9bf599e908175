//! Coming in again: which holds of this keeper an owner already has.
//!
//! Re-entry is a count on the hold in this process, never a second claim, and asks the store nothing.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::claim::Owner;
use crate::error::{Error, ErrorKind, Result};
use crate::hold::{Hold, HoldState};
use crate::keeper::Shared;
use crate::kinds::Shape;
use crate::mutants::{self, Mutant};
use crate::name::Name;

/// The holds of named owners.
#[derive(Default)]
pub(crate) struct Reentry {
    holds: Mutex<HashMap<(Name, u128), Weak<HoldState>>>,
}

impl Reentry {
    fn holds(&self) -> MutexGuard<'_, HashMap<(Name, u128), Weak<HoldState>>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its owner can come in again from now on.
    pub(crate) fn remember(&self, hold: &Arc<HoldState>) {
        hold.reentrant.store(true, Ordering::SeqCst);
        self.holds().insert(key(hold), Arc::downgrade(hold));
    }

    /// One [`Hold`] less stands for the claim; true for the last one, after which nobody can come in again.
    pub(crate) fn part(&self, hold: &Arc<HoldState>) -> bool {
        if !hold.reentrant.load(Ordering::SeqCst) {
            return true;
        }
        let mut holds = self.holds();
        if hold.handles().fetch_sub(1, Ordering::SeqCst) > 1 {
            return mutants::on(Mutant::InnerReleaseFrees);
        }
        let known = holds.get(&key(hold));
        if known.is_some_and(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(hold))) {
            holds.remove(&key(hold));
        }
        true
    }
}

fn key(hold: &HoldState) -> (Name, u128) {
    (hold.name.clone(), identity(&hold.claim.owner))
}

fn identity(owner: &Owner) -> u128 {
    if mutants::on(Mutant::ReentryByName) { 0 } else { owner.id() }
}

impl Shared {
    /// A hold that the owner already has, if it covers what is asked for.
    pub(crate) fn reenter(self: &Arc<Self>, name: &Name, owner: &Owner, shape: Shape) -> Result<Option<Hold>> {
        let holds = self.reentry.holds();
        let known = holds.get(&(name.clone(), identity(owner))).and_then(Weak::upgrade);
        let now = self.clock.now();
        let Some(known) = known.filter(|known| known.claim.kind == shape.kind && known.is_held(now)) else {
            return Ok(None);
        };
        if shape.weight > known.weight() {
            let message = format!("`{name}` is held to read, and a reader does not become a writer");
            return Err(Error::new(ErrorKind::Mismatch, message).with_hint("release it first, then take it to write"));
        }
        // Counted while nobody can part: it cannot be on its way out.
        known.handles().fetch_add(1, Ordering::SeqCst);
        Ok(Some(Hold::new(known, self.clone(), now, Duration::ZERO)))
    }
}
