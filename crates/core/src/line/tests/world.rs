//! A line, its clock and its numbers; every call is checked for all that must hold of any call.

use std::collections::{BTreeMap, BTreeSet};

use crate::claim::ClaimId;
use crate::line::{Entry, Line, Step};
use crate::store::{Renewal, Standing};

use super::oracle::{Answer, Oracle};
use super::{Op, at, id};

/// The difference a step tells of.
#[derive(Debug, Default)]
struct Told {
    removed: Vec<ClaimId>,
    touched: Option<ClaimId>,
    admitted: Vec<ClaimId>,
    changed: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub(super) line: Line,
    pub(super) now: u64,
    pub(super) last: u64,
}

impl World {
    /// Makes the call and checks what must hold of any call; the answer is compared with `oracle`'s.
    pub(super) fn call(&mut self, op: Op, oracle: &mut Oracle) -> Answer {
        let before = self.clone();
        let (answer, told) = self.make(op);
        let expected = oracle.call(op, before.now, self.last);
        assert_eq!(answer, expected, "the oracle's answer to {op:?} on {before:#?}");
        let agree = Oracle::of(&self.line).standing(self.now) == oracle.standing(self.now);
        assert!(agree, "{op:?} on {before:#?}\nleft {self:#?}\nexpected {oracle:#?}");
        if let Op::Pass { .. } = op {
            return answer;
        }
        self.check_difference(&before, op, &told);
        self.check_shape(&before, op, &answer);
        self.check_promises(&before, op, &answer);
        answer
    }

    fn make(&mut self, op: Op) -> (Answer, Told) {
        fn told<T>(step: Step<T>, wrap: impl FnOnce(T) -> Answer) -> (Answer, Told) {
            let changed = step.changed();
            let told = Told { removed: step.removed, touched: step.touched, admitted: step.admitted, changed };
            (wrap(step.answer), told)
        }
        let now = at(self.now);
        match op {
            Op::Enter(ask) => {
                self.last += 1;
                match self.line.enter(&ask.claim(), now, self.last) {
                    Ok(step) => told(step, Answer::Standing),
                    Err(error) => (Answer::Error(error.kind()), Told::default()),
                }
            }
            Op::Renew { who, lease } => told(self.line.renew(id(who), super::ticks(lease), now), Answer::Renewal),
            Op::Leave { who, keep } => told(self.line.leave(id(who), super::ticks(keep).into(), now), Answer::Left),
            Op::Pass { ticks } => {
                self.now += ticks;
                (Answer::Nothing, Told::default())
            }
        }
    }

    /// A store that writes only `removed` and then `touched` has the same line; `admitted` are those who came in.
    fn check_difference(&self, before: &Self, op: Op, told: &Told) {
        let story = || format!("{op:?} told {told:?} of {before:#?}\nleft {self:#?}");
        let mut rows = before.rows();
        for id in &told.removed {
            assert!(rows.remove(id).is_some(), "what is removed was there, once: {}", story());
        }
        if let Some(id) = told.touched {
            let entry = self.line.get(id).unwrap_or_else(|| panic!("what is touched is there: {}", story()));
            rows.insert(id, entry.clone());
        }
        assert_eq!(rows, self.rows(), "a store's rows: {}", story());
        assert!(told.changed || before.line.entries == self.line.entries, "{}", story());
        let back = Line::of(rows.into_values().collect());
        assert_eq!(back.entries, self.line.entries, "a line read back is the same: {}", story());

        let own = who(op).map(id);
        let was: BTreeSet<u64> = inside(&before.line.entries).into_iter().map(|entry| entry.order).collect();
        let came: Vec<ClaimId> = inside(&self.line.entries)
            .into_iter()
            .filter(|entry| !was.contains(&entry.order) && Some(entry.id) != own)
            .map(|entry| entry.id)
            .collect();
        assert_eq!(told.admitted, came, "those who came in: {}", story());
    }

    /// What any line is: in order, within its capacity, never stuck, and of one kind.
    fn check_shape(&self, before: &Self, op: Op, answer: &Answer) {
        let story = || format!("{op:?} on {before:#?}\nleft {self:#?}");
        if matches!(answer, Answer::Error(_)) {
            assert_eq!(before.line.entries, self.line.entries, "an error changes nothing: {}", story());
            return;
        }
        let entries = &self.line.entries;
        assert!(entries.is_sorted_by(|one, next| one.order < next.order), "orders rise: {}", story());
        let ids: BTreeSet<ClaimId> = entries.iter().map(|entry| entry.id).collect();
        assert_eq!(ids.len(), entries.len(), "one entry for one claim: {}", story());
        assert!(entries.iter().all(|entry| entry.expires > at(self.now)), "the ended are gone: {}", story());
        let Some(first) = entries.first() else { return assert!(self.line.is_empty()) };
        let agree = |entry: &Entry| entry.kind == first.kind && entry.capacity == first.capacity;
        assert!(entries.iter().all(agree), "one kind and capacity: {}", story());

        let holding = inside(entries);
        let taken: u32 = holding.iter().map(|entry| entry.weight).sum();
        assert!(taken <= first.capacity, "those in fit: {}", story());
        assert!(!holding.is_empty(), "someone is in: {}", story());
        for entry in entries {
            let is_in = holding.iter().any(|other| other.id == entry.id);
            assert_eq!(self.line.is_in(entry.id, at(self.now)), is_in, "{}", story());
            assert!(is_in || (!entry.left && entry.held_since.is_none()), "who waits never held: {}", story());
        }
        let first_end = entries.iter().map(|entry| entry.expires).min();
        assert_eq!(self.line.next_expiry(), first_end, "{}", story());
    }

    /// What a call may do to the claims that stood before it.
    fn check_promises(&self, before: &Self, op: Op, answer: &Answer) {
        let story = || format!("{op:?} on {before:#?}\nleft {self:#?}");
        let live: Vec<Entry> = before.live();
        for old in &live {
            let leaves = matches!(op, Op::Leave { who, .. } if id(who) == old.id);
            let asks = matches!(op, Op::Enter(ask) if id(ask.who) == old.id);
            let new = self.line.get(old.id);
            if inside(&live).contains(&old) && !leaves {
                let stays = new.is_some_and(|new| self.line.is_in(new.id, at(self.now)) && new.order == old.order);
                assert!(stays, "in stays in, with its token: {}", story());
            }
            if let Some(new) = new {
                assert!(leaves || new.expires >= old.expires, "time is never taken away: {}", story());
                assert!(asks || new.weight == old.weight, "{}", story());
                assert!(new.weight <= old.weight && new.order == old.order, "{}", story());
                assert!(new.left || !old.left, "who has left does not come back: {}", story());
                assert_eq!((new.entered, &new.owner), (old.entered, &old.owner), "{}", story());
                assert!(old.held_since.is_none() || new.held_since == old.held_since, "{}", story());
            }
        }
        let was = who(op).and_then(|who| live.iter().find(|entry| entry.id == id(who)).cloned());
        let is = who(op).and_then(|who| self.line.get(id(who)).cloned());
        match answer {
            Answer::Standing(Standing::Refused { .. }) if !was.as_ref().is_some_and(|was| was.left) => {
                assert_eq!(is, None, "a refused claim leaves nothing: {}", story());
            }
            Answer::Standing(Standing::Refused { .. }) | Answer::Renewal(Renewal::Gone) => {
                assert_eq!(is, was, "a claim that left or waits is not changed: {}", story());
            }
            Answer::Renewal(Renewal::Renewed { .. }) => {
                assert!(was.is_some_and(|was| !was.left), "only what stood is renewed: {}", story());
            }
            _ => {}
        }
    }

    fn rows(&self) -> BTreeMap<ClaimId, Entry> {
        self.line.entries.iter().map(|entry| (entry.id, entry.clone())).collect()
    }

    fn live(&self) -> Vec<Entry> {
        self.line.entries.iter().filter(|entry| entry.expires > at(self.now)).cloned().collect()
    }
}

/// Those who are in, added up one by one.
pub(super) fn inside(entries: &[Entry]) -> Vec<&Entry> {
    let upto = |last: usize| entries[..=last].iter().map(|entry| u64::from(entry.weight)).sum::<u64>();
    let fits = |last: &usize| upto(*last) <= u64::from(entries[*last].capacity);
    (0..entries.len()).filter(fits).map(|at| &entries[at]).collect()
}

pub(super) fn who(op: Op) -> Option<u8> {
    match op {
        Op::Enter(ask) => Some(ask.who),
        Op::Renew { who, .. } | Op::Leave { who, .. } => Some(who),
        Op::Pass { .. } => None,
    }
}
