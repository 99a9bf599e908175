//! Tokens: of two holds that exclude each other the later has the greater one, and a claim has one.
//!
//! Surprise: where a store may forget, two can be told in the other order than they were let in, since a reply may be slow.
//! There only those are compared of whom one had its answer before the other asked, and who was handed a hold by another
//! task of its process is left out: its claim was let in long before, and keeping it out is what the fence is for.

use std::collections::BTreeMap;

use super::exclusion::conflict;
use super::facts::{Acquisition, Facts};
use super::look::{Against, Look};
use crate::history::{At, By, LockKind};
use crate::promises::expected;

/// The low bits of a token count the hand-overs within a process.
const HANDED_ON_BITS: u32 = 10;

/// `tokens-rise`: of two holds that exclude each other the later has the greater token, and no two have the same.
pub(super) fn tokens_rise(facts: &Facts<'_>) -> Look {
    if !facts.plan().store.tokens {
        return Look::nothing("the store has no tokens");
    }
    let by_question = !expected(facts.plan()).beliefs;
    let (mut against, mut tokens) = (Against::default(), 0_u64);
    for line in facts.holds_by_lock() {
        let line: Vec<_> = line.into_iter().filter(|hold| takes_part(hold)).collect();
        tokens += line.iter().filter(|hold| token(hold).is_some()).count() as u64;
        twice(facts, &line, &mut against);
        falling(facts, &line, by_question, &mut against);
    }
    if tokens == 0 {
        return Look::nothing("nobody was given a token");
    }
    Look::at(format!("{tokens} tokens, {} that were not the greater one", against.count()), against)
}

/// One permit of many is in no order with the others, and who comes in again has the token it had.
fn takes_part(hold: &Acquisition<'_>) -> bool {
    !hold.again && !matches!(hold.kind, LockKind::Permit { of } if of > 1)
}

fn token(hold: &Acquisition<'_>) -> Option<u64> {
    hold.held?.token
}

fn twice(facts: &Facts<'_>, line: &[&Acquisition<'_>], against: &mut Against) {
    let mut by_token: Vec<_> = line.iter().filter_map(|hold| Some((token(hold)?, *hold))).collect();
    by_token.sort_by_key(|(token, _)| *token);
    for pair in by_token.windows(2) {
        let [(token, one), (next, other)] = pair else { continue };
        if token == next && conflict(one, other) {
            against.add(|| {
                let (lock, one, other) = (facts.locks[one.lock], facts.who(one), facts.who(other));
                format!("`{lock}`: token {token} twice, to {one} and to {other}")
            });
        }
    }
}

/// The greatest token so far, of those who exclude and of readers, and whose it was.
type Mark<'a, 'h> = Option<(u64, &'a Acquisition<'h>)>;

fn falling(facts: &Facts<'_>, line: &[&Acquisition<'_>], by_question: bool, against: &mut Against) {
    // In the order of their own moment; each is held against those who had been told before it.
    let moment = |hold: &Acquisition<'_>| if by_question { hold.asked } else { told(hold) };
    let mut next: Vec<&Acquisition<'_>> = line.iter().copied().filter(|hold| by_question || in_time(hold)).collect();
    let mut told_first = next.clone();
    next.sort_by_key(|hold| moment(hold));
    told_first.sort_by_key(|hold| told(hold));
    let mut told_first = told_first.into_iter().peekable();
    let (mut alone, mut readers): (Mark<'_, '_>, Mark<'_, '_>) = (None, None);
    for hold in next {
        while let Some(earlier) = told_first.next_if(|earlier| told(earlier) < moment(hold)) {
            let mark = if earlier.kind == LockKind::Read { &mut readers } else { &mut alone };
            if let Some(token) = token(earlier).filter(|token| mark.is_none_or(|(greatest, _)| *token > greatest)) {
                *mark = Some((token, earlier));
            }
        }
        let Some(mine) = token(hold).filter(|_| !by_question || !handed_on(hold)) else { continue };
        let before = if hold.kind == LockKind::Read { alone } else { greater(alone, readers) };
        if let Some((greatest, earlier)) = before.filter(|(greatest, _)| *greatest > mine) {
            against.add(|| {
                let (lock, when) = (facts.locks[hold.lock], facts.when(told(hold)));
                let (who, other) = (facts.who(hold), facts.who(earlier));
                format!("`{lock}` at {when}: {who} got token {mine}, after {other} had got {greatest}")
            });
        }
    }
}

fn told(hold: &Acquisition<'_>) -> At {
    hold.held.map_or(0, |held| held.at)
}

fn handed_on(hold: &Acquisition<'_>) -> bool {
    hold.held.is_some_and(|held| held.by == By::HandOver)
}

/// One that was written down after its own end may have been let in long before: it is in no order.
fn in_time(hold: &Acquisition<'_>) -> bool {
    hold.held.is_some_and(|held| held.at <= held.deadline)
}

fn greater<'a, 'h>(one: Mark<'a, 'h>, other: Mark<'a, 'h>) -> Mark<'a, 'h> {
    match (one, other) {
        (Some(one), Some(other)) if other.0 > one.0 => Some(other),
        (one, other) => one.or(other),
    }
}

/// `one-token-per-claim`: however often it asked, a claim was given one token, and hands on only those that follow it.
pub(super) fn one_token_per_claim(facts: &Facts<'_>) -> Look {
    if !facts.plan().store.tokens {
        return Look::nothing("the store has no tokens");
    }
    let mut claims: BTreeMap<(usize, &str), (u64, By)> = BTreeMap::new();
    let mut against = Against::default();
    for one in &facts.acquisitions {
        let Some((held, token)) = one.held.and_then(|held| Some((held, held.token?))) else { continue };
        let (first, first_by) = *claims.entry((one.lock, held.claim)).or_insert((token, held.by));
        let handed_on = held.by == By::HandOver || first_by == By::HandOver;
        let same = if handed_on { first >> HANDED_ON_BITS == token >> HANDED_ON_BITS } else { first == token };
        if !same {
            against.add(|| {
                let (lock, who) = (facts.locks[one.lock], facts.who(one));
                format!("`{lock}`: claim {} of {who} was given token {token}, and {first} before", held.claim)
            });
        }
    }
    if claims.is_empty() {
        return Look::nothing("nobody was given a token");
    }
    Look::at(format!("{} claims, {} with a second token", claims.len(), against.count()), against)
}
