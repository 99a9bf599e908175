//! Every world that a few claims can make, call by call, until no new one turns up.
//!
//! Two worlds are the same if they differ only in when they are and in which numbers their claims drew: nothing
//! else of the past is in a line. So all worlds are reached, however long the way, and each call is tried in each.

use std::collections::HashSet;

use crate::claim::{LockKind, Patience};

use super::oracle::Oracle;
use super::world::World;
use super::{Ask, Op, at};

/// A claim as it counts for what can happen next: who, weight, capacity, kind, ticks left, left, held, note.
type Seat = (u8, u32, u32, LockKind, u64, bool, bool, u8);

/// All of a world that matters for what can happen next.
fn likeness(world: &World) -> Vec<Seat> {
    let left = |expires| at(world.now).until(expires).as_secs() / 3;
    let seat = |entry: &super::super::Entry| {
        let who = entry.id.to_bytes()[0];
        let (expires, held) = (left(entry.expires), entry.held_since.is_some());
        (who, entry.weight, entry.capacity, entry.kind, expires, entry.left, held, entry.note[0])
    };
    world.line.entries.iter().map(seat).collect()
}

/// Makes every call in every world that the calls lead to; says how many worlds there are.
fn explore(calls: &[Op]) -> usize {
    let mut known = HashSet::from([vec![]]);
    let mut fresh = vec![World::default()];
    while let Some(world) = fresh.pop() {
        for op in calls {
            let mut next = world.clone();
            next.call(*op, &mut Oracle::of(&world.line));
            if known.insert(likeness(&next)) {
                fresh.push(next);
            }
        }
    }
    known.len()
}

/// Renewing, leaving at once, leaving with the name kept for two ticks, and a tick.
fn the_rest(claims: u8) -> impl Iterator<Item = Op> {
    (1..=claims)
        .flat_map(|who| [Op::Renew { who, lease: 3 }, Op::Leave { who, keep: 0 }, Op::Leave { who, keep: 2 }])
        .chain([Op::Pass { ticks: 1 }])
}

fn asks(claims: u8, weights: u32, capacity: u32) -> impl Iterator<Item = Ask> {
    (1..=claims).flat_map(move |who| (1..=weights).map(move |weight| Ask::new(who, weight, capacity)))
}

#[test]
fn every_world_of_three_claims_on_a_mutex() {
    let asks = asks(3, 1, 1).flat_map(|ask| [ask, ask.now()]).map(Op::Enter);
    let worlds = explore(&asks.chain(the_rest(3)).collect::<Vec<_>>());
    assert!(worlds > 600, "{worlds}");
}

#[test]
fn every_world_of_three_claims_on_a_capacity_of_two() {
    let asks = asks(3, 2, 2).flat_map(|ask| [ask, ask.now()]).map(Op::Enter);
    let worlds = explore(&asks.chain(the_rest(3)).collect::<Vec<_>>());
    assert!(worlds > 6_000, "{worlds}");
}

#[test]
fn every_world_of_three_claims_on_a_capacity_of_three() {
    // One that renews and one that keeps are enough here: what is new is how three weights fit.
    let asks = asks(3, 3, 3).map(Op::Enter);
    let rest = [1, 2, 3].map(|who| Op::Leave { who, keep: 0 });
    let more = [Op::Renew { who: 1, lease: 3 }, Op::Leave { who: 2, keep: 2 }, Op::Pass { ticks: 1 }];
    let worlds = explore(&asks.chain(rest).chain(more).collect::<Vec<_>>());
    assert!(worlds > 9_000, "{worlds}");
}

#[test]
fn every_world_of_two_claims_that_disagree() {
    let shapes = [(LockKind::Mutex, 1), (LockKind::Election, 1), (LockKind::Semaphore, 1), (LockKind::Semaphore, 2)];
    let asks = [1, 2].into_iter().flat_map(|who| {
        shapes.map(|(kind, capacity)| Op::Enter(Ask { kind, note: who, ..Ask::new(who, 1, capacity) }))
    });
    let worlds = explore(&asks.chain(the_rest(2)).collect::<Vec<_>>());
    assert!(worlds > 300, "{worlds}");
}

#[test]
fn every_world_of_claims_that_change_lease_note_and_patience() {
    let asks = [1, 2].into_iter().flat_map(|who| {
        [(1, 0, 0), (2, 1, 1), (4, 0, 1)].into_iter().flat_map(move |(lease, delay, note)| {
            let ask = Ask { lease, delay, note, ..Ask::new(who, 1, 1) };
            [Patience::Now, Patience::Queue, Patience::Present].map(|patience| Op::Enter(Ask { patience, ..ask }))
        })
    });
    let worlds = explore(&asks.chain(the_rest(2)).collect::<Vec<_>>());
    assert!(worlds > 300, "{worlds}");
}
