//! How long a lock was wanted and nobody got it.
//!
//! A lock is wanted while somebody who lives and is not stopped has asked for it and was not answered. The time runs on
//! until something is seen to go on with it: somebody is told that it holds, looks at its hold, writes, or releases. Being
//! refused is no such thing, or a line of people who give up would look alive.
//!
//! Time in which the store was hurt does not count, nor what clients need to find it again. Surprise: that is not short. A
//! call that was swallowed is waited for until its time limit, which workers set to the lease, and then tried again after a
//! pause of up to a second.

use super::facts::{Acquisition, Facts, MS};
use super::look::{Against, Look};
use super::spans::Spans;
use crate::history::At;
use crate::plan::Work;

/// Who is refused asks again after a short pause, and wants the lock in between.
const ASKS_AGAIN_AFTER: At = 100 * MS;

/// The longest time, where it began, and for which lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stuck {
    pub(super) longest: At,
    from: At,
    lock: usize,
}

/// The longest time that any lock was wanted and did not move on.
pub(super) fn longest(facts: &Facts<'_>) -> Stuck {
    let hurt = facts.hurt_spans(finds_again_after(facts), |hurt| hurt.is_the_stores());
    let mut longest = Stuck::default();
    for (lock, line) in by_lock(facts).into_iter().enumerate() {
        let wanted = Spans::union(line.iter().flat_map(|one| wanted(facts, one)).collect()).without(&hurt);
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
        None => life.wrote.1,
    };
    let until = life.killed.map_or(until, |killed| killed.min(until));
    Spans::union(vec![(one.asked, until)]).without(&life.stopped).iter().collect()
}

fn moves(one: &Acquisition<'_>) -> impl Iterator<Item = At> + use<> {
    let left = one.left.map(|left| [left.sent, left.at]);
    let held = [one.held.map(|held| held.at), one.last_seen, one.last_work];
    held.into_iter().flatten().chain(left.into_iter().flatten())
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
    Look::at(format!("at most {} ms, of {} ms that it may take", stuck.longest / MS, bound / MS), against)
}
