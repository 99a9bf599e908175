//! How long a lock was wanted and nobody got it.
//!
//! A lock is wanted while somebody who lives and is not stopped has asked for it and was not answered. It is stuck while it
//! is wanted and nobody who lives and is not stopped may take itself for its holder; the time begins anew when somebody is
//! told that it holds, or has released. Being refused changes nothing, or a line of people who give up would look alive.
//!
//! Time in which the store was hurt does not count, nor what clients need to find it again. Surprise: that is not short. A
//! call that was swallowed is waited for until its time limit, which workers set to the lease, and then tried again after a
//! pause of up to a second. And a store that is a file stops with any client that is stopped in the middle of a change: that
//! is told, and not held against it.

use super::facts::{Acquisition, Facts, Hurt, MS};
use super::look::{Against, Look};
use super::spans::Spans;
use crate::history::At;
use crate::plan::Work;
use crate::promises::stops_with_its_clients;

/// Who is refused asks again after a short pause, and wants the lock in between.
const ASKS_AGAIN_AFTER: At = 100 * MS;

/// The longest time, where it began, and for which lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stuck {
    pub(super) longest: At,
    from: At,
    lock: usize,
}

/// The longest time that any lock was wanted and did not move on, while the store was whole.
pub(super) fn longest(facts: &Facts<'_>) -> Stuck {
    longest_but(facts, Hurt::is_the_stores)
}

/// The same but for the time in which these hurt.
fn longest_but(facts: &Facts<'_>, which: impl Fn(&Hurt) -> bool) -> Stuck {
    let hurt = facts.hurt_spans(finds_again_after(facts), which);
    let mut longest = Stuck::default();
    for (lock, line) in by_lock(facts).into_iter().enumerate() {
        let held = Spans::union(line.iter().flat_map(|one| may_hold(facts, one)).collect());
        let wanted = Spans::union(line.iter().flat_map(|one| wanted(facts, one)).collect());
        let wanted = wanted.without(&hurt).without(&held);
        let mut moves: Vec<At> = line.iter().flat_map(|one| moves(one)).collect();
        moves.sort_unstable();
        let mut next = 0;
        for (mut from, to) in wanted.iter() {
            while next < moves.len() && moves[next] <= from {
                next += 1;
            }
            let within = moves[next..].iter().copied().take_while(|moved| *moved < to);
            for end in within.chain([to]) {
                if end - from > longest.longest {
                    longest = Stuck { longest: end - from, from, lock };
                }
                from = end;
            }
        }
    }
    longest
}

/// Who takes several at once holds one while it waits for another, so these are one lock here.
fn by_lock<'f, 'h>(facts: &'f Facts<'h>) -> Vec<Vec<&'f Acquisition<'h>>> {
    let together = facts.plan().work == Work::Multi;
    let mut lines = vec![Vec::new(); facts.locks.len()];
    for one in facts.acquisitions.iter().filter(|one| !one.again) {
        lines[if together { 0 } else { one.lock }].push(one);
    }
    lines
}

fn wanted(facts: &Facts<'_>, one: &Acquisition<'_>) -> Vec<(At, At)> {
    let life = &facts.lives[one.life];
    let until = match one.answered() {
        Some(answered) if one.held.is_some() => answered,
        Some(answered) => answered.saturating_add(ASKS_AGAIN_AFTER),
        None => life.end(),
    };
    let until = until.min(life.end().saturating_add(ASKS_AGAIN_AFTER));
    Spans::union(vec![(one.asked, until)]).without(&life.stopped).iter().collect()
}

/// From when to when it may have taken itself for the holder: until it was told otherwise, gave it up, or died.
fn may_hold(facts: &Facts<'_>, one: &Acquisition<'_>) -> Vec<(At, At)> {
    let Some(held) = one.held else { return Vec::new() };
    let life = &facts.lives[one.life];
    let ends = [one.left.map(|left| left.sent), one.lost, one.first_unseen, Some(life.end())];
    let until = ends.into_iter().flatten().min().unwrap_or(held.at);
    Spans::union(vec![(held.at, until)]).without(&life.stopped).iter().collect()
}

fn moves(one: &Acquisition<'_>) -> impl Iterator<Item = At> + use<> {
    [one.held.map(|held| held.at), one.left.map(|left| left.at)].into_iter().flatten()
}

/// How long clients may take to find a store that is whole again.
fn finds_again_after(facts: &Facts<'_>) -> At {
    At::try_from(facts.plan().call_limit().as_nanos()).unwrap_or(At::MAX).saturating_add(1_000 * MS)
}

/// `nobody-is-stuck`: a lock that is wanted moves on within lease, lock-delay, the store's slack and a second.
pub(super) fn nobody_is_stuck(facts: &Facts<'_>) -> Look {
    if facts.acquisitions.is_empty() {
        return Look::nothing("nobody asked for anything");
    }
    let (stuck, bound) = (longest(facts), facts.over_after());
    let mut against = Against::default();
    if stuck.longest > bound {
        let (lock, from) = (facts.locks[stuck.lock], facts.when(stuck.from));
        against.add(|| format!("`{lock}` was wanted from {from} on, and for {} ms nobody got it", stuck.longest / MS));
    }
    let look = Look::at(format!("at most {} ms, of {} ms that it may take", stuck.longest / MS, bound / MS), against);
    let stops = |hurt: &Hurt| hurt.is_the_stores() || hurt.is_a_stop();
    if stops_with_its_clients(&facts.plan().store) && longest_but(facts, stops).longest <= bound {
        return look.excused();
    }
    look
}
