//! The figures of a run: how long, how fast, how evenly. Most are not judged; those that are, their checks take from here.

use std::collections::BTreeMap;

use super::answers;
use super::facts::{Facts, MS};
use super::recovery;
use super::spans::Spans;
use super::stuck;
use crate::history::{At, By};
use crate::judgement::Figures;

/// Everything that is counted.
pub(super) fn figures(facts: &Facts<'_>) -> Figures {
    let waits = waits(facts);
    let hurt = facts.hurt_spans(facts.over_after(), |_| true).within(facts.ran.0, facts.ran.1);
    Figures {
        ran_ms: Spans::union(vec![facts.ran]).total() / MS,
        per_second_outside: answers::in_peace(facts).1,
        hurt_ms: hurt.total() / MS,
        faults: facts.hurts.len() as u64,
        longest_stuck_ms: stuck::longest(facts).longest / MS,
        stuck_bound_ms: facts.over_after() / MS,
        wait_p50_us: share_of(&waits, 50) / 1_000,
        wait_p99_us: share_of(&waits, 99) / 1_000,
        push_share: push_share(facts, &Spans::default()).map(|(share, _)| share),
        fairness: jain(&by_worker(facts)),
        recovery: recovery::recovery(facts),
    }
}

/// How long everybody waited who came in, in order.
pub(super) fn waits(facts: &Facts<'_>) -> Vec<At> {
    let held = facts.questions().filter(|one| !one.again);
    let mut waits: Vec<At> = held.filter_map(|one| Some(one.held?.at.saturating_sub(one.asked))).collect();
    waits.sort_unstable();
    waits
}

/// What so many of a hundred do not exceed; of an ordered list.
pub(super) fn share_of(ordered: &[At], of_a_hundred: usize) -> At {
    let rank = (ordered.len() * of_a_hundred).div_ceil(100).saturating_sub(1);
    ordered.get(rank).copied().unwrap_or(0)
}

/// The acquisitions of each worker, over all its lives.
pub(super) fn by_worker(facts: &Facts<'_>) -> BTreeMap<u32, u64> {
    let mut workers: BTreeMap<u32, u64> = facts.lives.iter().map(|life| (life.life.worker, 0)).collect();
    for one in facts.questions().filter(|one| one.held.is_some() && !one.again) {
        *workers.entry(facts.lives[one.life].life.worker).or_default() += 1;
    }
    workers
}

/// Jain's index: 1 if all have the same, 1 / n if one has all.
pub(super) fn jain(shares: &BTreeMap<u32, u64>) -> f64 {
    let (sum, squares) = shares.values().fold((0.0, 0.0), |(sum, squares), share| {
        let share = *share as f64;
        (sum + share, squares + share * share)
    });
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// Of those who waited and came in, outside of these spans, the share that a wake-up told; and how many waited.
pub(super) fn push_share(facts: &Facts<'_>, but: &Spans) -> Option<(f64, u64)> {
    let (mut push, mut poll) = (0_u64, 0_u64);
    for held in facts.questions().filter_map(|one| one.held).filter(|held| !but.contains(held.at)) {
        match held.by {
            By::Push => push += 1,
            By::Poll => poll += 1,
            By::Asking | By::HandOver => {}
        }
    }
    let waited = push + poll;
    (waited > 0).then(|| (push as f64 / waited as f64, waited))
}
