//! A second telling of the model, as naive as can be: nothing is ever taken out, everything is worked out anew.
//!
//! It shares no code with the line or with `admit`; where the two differ, one of them is wrong.

use crate::claim::{LockKind, Patience, Token};
use crate::error::ErrorKind;
use crate::line::Line;
use crate::store::{Left, Renewal, Standing};

use super::{Ask, Op, ticks};

/// The answer to any call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Standing(Standing),
    Renewal(Renewal),
    Left(Left),
    Error(ErrorKind),
    Nothing,
}

/// A claim that stood in the line once; it stands at `now` if it was not taken out and `until` is later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stood {
    pub(super) who: u8,
    pub(super) order: u64,
    pub(super) weight: u32,
    pub(super) until: u64,
    pub(super) has_left: bool,
    pub(super) note: u8,
    out: bool,
    shape: (LockKind, u32),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Oracle {
    all: Vec<Stood>,
}

impl Oracle {
    /// What a line holds, as the oracle would have it.
    pub(super) fn of(line: &Line) -> Self {
        let stood = |entry: &crate::line::Entry| Stood {
            who: entry.id.to_bytes()[0],
            order: entry.order,
            weight: entry.weight,
            until: entry.expires.as_nanos() / ticks(1).as_nanos() as u64,
            has_left: entry.left,
            note: entry.note[0],
            out: false,
            shape: (entry.kind, entry.capacity),
        };
        Self { all: line.entries.iter().map(stood).collect() }
    }

    /// The claims that stand at `now`, in order.
    pub(super) fn standing(&self, now: u64) -> Vec<Stood> {
        let mut live: Vec<Stood> = self.all.iter().filter(|stood| !stood.out && stood.until > now).cloned().collect();
        live.sort_by_key(|stood| stood.order);
        live
    }

    fn find(&mut self, who: u8, now: u64) -> Option<&mut Stood> {
        self.all.iter_mut().find(|stood| stood.who == who && !stood.out && stood.until > now)
    }

    /// Everything ahead and the claim itself, within the capacity.
    fn is_in(&self, order: u64, now: u64) -> bool {
        let upto: Vec<Stood> = self.standing(now).into_iter().filter(|stood| stood.order <= order).collect();
        let sum: u64 = upto.iter().map(|stood| u64::from(stood.weight)).sum();
        upto.last().is_some_and(|own| sum <= u64::from(own.shape.1))
    }

    pub(super) fn call(&mut self, op: Op, now: u64, order: u64) -> Answer {
        match op {
            Op::Enter(ask) => self.enter(ask, now, order),
            Op::Renew { who, lease } => self.renew(who, lease, now),
            Op::Leave { who, keep } => self.leave(who, keep, now),
            Op::Pass { .. } => Answer::Nothing,
        }
    }

    fn enter(&mut self, ask: Ask, now: u64, order: u64) -> Answer {
        let shape = (ask.kind, ask.capacity);
        if self.standing(now).iter().any(|stood| stood.shape != shape) {
            return Answer::Error(ErrorKind::Mismatch);
        }
        let order = match self.find(ask.who, now) {
            Some(old) if ask.weight > old.weight => return Answer::Error(ErrorKind::Mismatch),
            Some(old) if old.has_left => {
                let retry_after = Some(ticks(old.until - now));
                return Answer::Standing(Standing::Refused { retry_after });
            }
            Some(old) => {
                old.weight = ask.weight;
                old.note = ask.note;
                old.order
            }
            None if ask.patience == Patience::Present => {
                return Answer::Standing(Standing::Refused { retry_after: None });
            }
            None => {
                let (who, weight, note) = (ask.who, ask.weight, ask.note);
                let until = now + 1;
                self.all.push(Stood { who, order, weight, until, has_left: false, note, out: false, shape });
                order
            }
        };
        Answer::Standing(self.answer(ask, now, order))
    }

    fn answer(&mut self, ask: Ask, now: u64, order: u64) -> Standing {
        let ahead: Vec<Stood> = self.standing(now).into_iter().filter(|stood| stood.order < order).collect();
        let moves_in = ahead.iter().map(|stood| stood.until - now).min().map(ticks);
        let is_in = self.is_in(order, now);
        let own = self.find(ask.who, now).unwrap();
        if is_in {
            own.until = own.until.max(now + ask.lease + ask.delay);
            return Standing::Held { token: Token::of_number(order), lease: ticks(own.until - now) };
        }
        if ask.patience == Patience::Now {
            own.out = true;
            return Standing::Refused { retry_after: moves_in };
        }
        own.until = own.until.max(now + ask.lease.min(2));
        let clashes = |stood: &&Stood| u64::from(stood.weight) + u64::from(ask.weight) > u64::from(ask.capacity);
        let behind = ahead.iter().filter(clashes).map(|stood| stood.order).max();
        Standing::Waiting { ahead: ahead.len() as u32, behind, moves_in }
    }

    fn renew(&mut self, who: u8, lease: u64, now: u64) -> Answer {
        let order = self.find(who, now).filter(|own| !own.has_left).map(|own| own.order);
        match order.filter(|order| self.is_in(*order, now)) {
            None => Answer::Renewal(Renewal::Gone),
            Some(_) => {
                let own = self.find(who, now).unwrap();
                own.until = own.until.max(now + lease);
                Answer::Renewal(Renewal::Renewed { lease: ticks(own.until - now) })
            }
        }
    }

    fn leave(&mut self, who: u8, keep: u64, now: u64) -> Answer {
        let Some(order) = self.find(who, now).map(|own| own.order) else { return Answer::Left(Left::NotHeld) };
        let is_in = self.is_in(order, now);
        let own = self.find(who, now).unwrap();
        let had_left = own.has_left;
        if keep == 0 || !is_in {
            own.out = true;
        } else {
            own.until = if had_left { own.until.min(now + keep) } else { now + keep };
            own.has_left = true;
        }
        Answer::Left(if had_left { Left::NotHeld } else { Left::Released })
    }
}
