//! The line, as a pure value: what enter, renew and leave do to it at a given moment.
//!
//! This is the model. The memory store keeps lines in a map, the sqlite store reads one from its rows, applies
//! the same function and writes the difference; scripted stores are held to it by a differential test. Nothing
//! here does I/O or looks at a clock.

use std::time::Duration;

use crate::admit::{Spot, Verdict, admit};
use crate::claim::{Claim, ClaimId, LockKind, Owner, Patience, Token};
use crate::error::{Error, ErrorKind, Result};
use crate::mutants::{self, Mutant};
use crate::name::Name;
use crate::store::{ClaimState, ClaimView, Keep, Left, LockView, Renewal, Standing};
use crate::time::Moment;

/// One claim in a line, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place, and the number its token is made of: given at entering, never changed.
    pub order: u64,
    /// The id its client chose.
    pub id: ClaimId,
    /// Who made it.
    pub owner: Owner,
    /// The kind that all claims of the line agree on.
    pub kind: LockKind,
    /// How much of the capacity it takes.
    pub weight: u32,
    /// The capacity that all claims of the line agree on.
    pub capacity: u32,
    /// When it came into the line.
    pub entered: Moment,
    /// When its client was first told that it holds.
    pub held_since: Option<Moment>,
    /// When it ends unless it is renewed (held) or asks again (waiting).
    pub expires: Moment,
    /// Its holder has left and the name stays taken until `expires`.
    pub left: bool,
    /// What its client says of itself.
    pub note: Vec<u8>,
}

/// The claims of one lock, in order.
#[derive(Debug, Clone, Default)]
pub struct Line {
    entries: Vec<Entry>,
}

/// What one call did to a line, so that a store writes the difference and wakes the right claims.
///
/// The difference is `removed`, then `touched`: a claim that had ended and comes again is in both, with a new order.
#[derive(Debug)]
pub struct Step<T> {
    /// The answer to the caller.
    pub answer: T,
    /// Claims whose entries are no longer there.
    pub removed: Vec<ClaimId>,
    /// The claim that is new or changed.
    pub touched: Option<ClaimId>,
    /// Claims that came in by this, other than the caller's own: these and no others are woken.
    pub admitted: Vec<ClaimId>,
}

impl<T> Step<T> {
    /// Did anything change that an observer would see?
    pub fn changed(&self) -> bool {
        !self.removed.is_empty() || self.touched.is_some()
    }
}

impl Line {
    /// A line of entries read back from a store, in any order.
    pub fn of(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| entry.order);
        Self { entries }
    }

    /// Has it no claims at all, not even ended ones?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The claim of this id.
    pub fn get(&self, id: ClaimId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// A claim comes into the line, or asks again. `order` is what a new claim gets; it must be above all others.
    pub fn enter(&mut self, claim: &Claim, now: Moment, order: u64) -> Result<Step<Standing>> {
        if let Some(other) = self.entries.iter().find(|entry| entry.expires > now) {
            agree(other.kind, other.capacity, claim)?;
        }
        if let Some(entry) = self.get(claim.id).filter(|entry| entry.expires > now) {
            may_not_grow(entry.weight, claim)?;
        }
        let before = self.inside();
        let mut removed = self.sweep(now);
        let known = self.entries.iter().position(|entry| entry.id == claim.id);
        let answer = match known {
            Some(at) => self.ask(at, claim, now),
            None if claim.patience == Patience::Present => Standing::Refused { retry_after: None },
            None => self.join(claim, now, order),
        };
        let mut touched = Some(claim.id);
        if matches!(answer, Standing::Refused { .. }) {
            touched = None;
            let dropped = self.drop_refused(claim.id);
            removed.extend(dropped.filter(|_| known.is_some()));
        }
        Ok(self.step(answer, removed, touched, before, claim.id))
    }

    /// A held claim is prolonged to at least `lease` from now.
    pub fn renew(&mut self, id: ClaimId, lease: Duration, now: Moment) -> Step<Renewal> {
        let before = self.inside();
        let removed = self.sweep(now);
        let held = self.entries.iter().position(|entry| entry.id == id && !entry.left);
        let held = held.filter(|at| self.verdict(*at) == Verdict::In);
        let (answer, touched) = match held {
            None => (Renewal::Gone, None),
            Some(at) => {
                let entry = &mut self.entries[at];
                entry.expires = entry.expires.max(now + lease);
                entry.held_since.get_or_insert(now);
                (Renewal::Renewed { lease: now.until(entry.expires) }, Some(id))
            }
        };
        self.step(answer, removed, touched, before, id)
    }

    /// A claim leaves; if it was in, the name stays taken as `keep` says.
    pub fn leave(&mut self, id: ClaimId, keep: Keep, now: Moment) -> Step<Left> {
        let before = self.inside();
        let mut removed = self.sweep(now);
        let mut touched = None;
        let mut found = self.entries.iter().position(|entry| entry.id == id);
        if mutants::on(Mutant::UnlockByKey) && !self.entries.is_empty() {
            found = found.or(Some(0));
        }
        let answer = match found {
            None => Left::NotHeld,
            Some(at) => {
                let was_left = self.entries[at].left;
                let kept_until = match keep {
                    Keep::Nothing => now,
                    Keep::For(keep) => now + keep,
                    Keep::Lease => self.entries[at].expires,
                };
                if kept_until <= now || (!was_left && self.verdict(at) != Verdict::In) {
                    removed.push(self.entries.remove(at).id);
                } else {
                    let entry = &mut self.entries[at];
                    // One that was broken and now leaves by itself has no need of more than it asks for.
                    entry.expires = if was_left { entry.expires.min(kept_until) } else { kept_until };
                    entry.left = true;
                    touched = Some(id);
                }
                if was_left { Left::NotHeld } else { Left::Released }
            }
        };
        self.step(answer, removed, touched, before, id)
    }

    /// Where the claim stands, without asking for it: no heartbeat, no change.
    pub fn is_in(&self, id: ClaimId, now: Moment) -> bool {
        let live = Self { entries: self.live(now).cloned().collect() };
        live.entries.iter().position(|entry| entry.id == id).is_some_and(|at| live.verdict(at) == Verdict::In)
    }

    /// The standing of a claim that is in, without asking for it: what is left of its time is what it has.
    ///
    /// For a claim that came in while it waited this is its waiting lease, which is short: it is to be renewed at once.
    pub fn held(&self, id: ClaimId, now: Moment) -> Option<Standing> {
        let entry = self.get(id).filter(|entry| !entry.left && self.is_in(id, now))?;
        Some(Standing::Held { token: Token::of_number(entry.order), lease: now.until(entry.expires) })
    }

    /// When the first claim of the line ends if nobody renews it.
    pub fn next_expiry(&self) -> Option<Moment> {
        self.entries.iter().map(|entry| entry.expires).min()
    }

    /// The line as people see it at `now`; `None` if nobody stands in it.
    pub fn view(&self, name: &Name, now: Moment) -> Option<LockView> {
        let live = Self { entries: self.live(now).cloned().collect() };
        let first = live.entries.first()?;
        let (kind, capacity) = (first.kind, first.capacity);
        let claims = live.entries.iter().enumerate().map(|(at, entry)| live.view_of(at, entry, now)).collect();
        Some(LockView { name: name.clone(), kind, capacity, claims })
    }

    fn view_of(&self, at: usize, entry: &Entry, now: Moment) -> ClaimView {
        let state = match self.verdict(at) {
            _ if entry.left => ClaimState::Leaving,
            Verdict::In => ClaimState::Holding,
            _ => ClaimState::Waiting,
        };
        ClaimView {
            id: entry.id,
            owner: entry.owner.clone(),
            weight: entry.weight,
            state,
            token: Token::of_number(entry.order).filter(|_| state != ClaimState::Waiting),
            age: Some(now.since(entry.entered)),
            held_for: entry.held_since.filter(|_| !entry.left).map(|since| now.since(since)),
            lease_left: now.until(entry.expires),
            note: entry.note.clone(),
        }
    }

    fn live(&self, now: Moment) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.expires > now)
    }

    /// Ended claims go: whoever comes by takes them out.
    fn sweep(&mut self, now: Moment) -> Vec<ClaimId> {
        let ended = self.entries.iter().filter(|entry| entry.expires <= now).map(|entry| entry.id).collect();
        self.entries.retain(|entry| entry.expires > now);
        ended
    }

    /// A claim that is already there asks where it stands.
    fn ask(&mut self, at: usize, claim: &Claim, now: Moment) -> Standing {
        if self.entries[at].left {
            let retry_after = Some(now.until(self.entries[at].expires));
            return Standing::Refused { retry_after };
        }
        self.entries[at].weight = claim.weight;
        if self.entries[at].note != claim.note {
            self.entries[at].note.clone_from(&claim.note);
        }
        self.settle(at, claim, now)
    }

    /// A new claim takes its place at the end.
    fn join(&mut self, claim: &Claim, now: Moment, order: u64) -> Standing {
        self.entries.push(Entry {
            order,
            id: claim.id,
            owner: claim.owner.clone(),
            kind: claim.kind,
            weight: claim.weight,
            capacity: claim.capacity,
            entered: now,
            held_since: None,
            expires: now,
            left: false,
            note: claim.note.clone(),
        });
        self.settle(self.entries.len() - 1, claim, now)
    }

    /// The claim at `at` learns its standing, and its time is set accordingly; time is never taken away.
    fn settle(&mut self, at: usize, claim: &Claim, now: Moment) -> Standing {
        let verdict = self.verdict(at);
        let moves_in = self.entries[..at].iter().map(|entry| now.until(entry.expires)).min();
        let entry = &mut self.entries[at];
        match (verdict, claim.patience) {
            (Verdict::In, _) => {
                entry.expires = entry.expires.max(now + claim.store_lease());
                entry.held_since.get_or_insert(now);
                Standing::Held { token: Token::of_number(entry.order), lease: now.until(entry.expires) }
            }
            (_, Patience::Now) => Standing::Refused { retry_after: moves_in },
            (verdict, Patience::Queue | Patience::Present) => {
                entry.expires = entry.expires.max(now + claim.waiting_lease());
                let behind = match verdict {
                    Verdict::Behind(order) => Some(order),
                    _ => None,
                };
                Standing::Waiting { ahead: u32::try_from(at).unwrap_or(u32::MAX), behind, moves_in }
            }
        }
    }

    /// A refused claim leaves nothing behind; one that has left stays as it is.
    fn drop_refused(&mut self, id: ClaimId) -> Option<ClaimId> {
        let at = self.entries.iter().position(|entry| entry.id == id && !entry.left)?;
        Some(self.entries.remove(at).id)
    }

    fn verdict(&self, at: usize) -> Verdict {
        let ahead: Vec<Spot> =
            self.entries[..at].iter().map(|entry| Spot { order: entry.order, weight: entry.weight }).collect();
        admit(&ahead, self.entries[at].weight, self.entries[at].capacity)
    }

    /// Who is in, in order and in one pass.
    fn inside(&self) -> Vec<(u64, ClaimId)> {
        let mut taken: u64 = 0;
        let mut inside = Vec::new();
        for entry in &self.entries {
            taken += u64::from(entry.weight);
            if taken <= u64::from(entry.capacity) {
                inside.push((entry.order, entry.id));
            }
        }
        inside
    }

    fn step<T>(
        &self,
        answer: T,
        removed: Vec<ClaimId>,
        touched: Option<ClaimId>,
        before: Vec<(u64, ClaimId)>,
        own: ClaimId,
    ) -> Step<T> {
        let is_news = |at: &(u64, ClaimId)| at.1 != own && before.binary_search_by_key(&at.0, |was| was.0).is_err();
        let admitted = self.inside().into_iter().filter(is_news).map(|at| at.1).collect();
        Step { answer, removed, touched, admitted }
    }
}

/// One name is one kind with one capacity while anyone stands in its line: may the claim join one of these?
///
/// # Errors
/// `Mismatch` if not.
pub fn agree(kind: LockKind, capacity: u32, claim: &Claim) -> Result<()> {
    if kind == claim.kind && capacity == claim.capacity {
        return Ok(());
    }
    let describe = |kind: LockKind, capacity: u32| match kind {
        LockKind::Semaphore => format!("a {kind} of {capacity}"),
        _ => format!("a {kind}"),
    };
    let (is, asked) = (describe(kind, capacity), describe(claim.kind, claim.capacity));
    let why = format!("the name is in use as {is}, and was asked for as {asked}");
    Err(Error::new(ErrorKind::Mismatch, why).with_hint("use another name, or the same kind and capacity everywhere"))
}

/// A claim never grows where it stands.
///
/// # Errors
/// `Mismatch` if it is asked to.
pub fn may_not_grow(weight: u32, claim: &Claim) -> Result<()> {
    if claim.weight <= weight {
        return Ok(());
    }
    let why = format!("the claim stands with weight {weight} and cannot grow to {}", claim.weight);
    Err(Error::new(ErrorKind::Mismatch, why).with_hint("leave, then enter with the larger weight"))
}

#[cfg(test)]
mod tests;
