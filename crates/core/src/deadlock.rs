//! Circles of owners that wait for each other: found in the lines as a store shows them, for people to break.
//!
//! The rule: a waiting claim waits for every claim ahead of it that it cannot be in together with, that is, whose weight
//! and its own exceed the capacity. While such a claim stays it cannot be in, so a circle of such waits does not end by
//! itself. For mutexes and read-write locks that is all there is to wait for. A permit that waits only because the
//! others add up may be let in by any of several departures; it is never part of a circle, so some are missed there,
//! but none is made up.
//!
//! Surprise: it is as exact as owners are. An owner that was named stands for one line of work. Without a name, all
//! tasks of a keeper are one owner, and a circle of keepers is only a suspicion: the task that holds may not be the one
//! that waits, or may wait inside its process where no store sees it. For the same reason an owner that waits for itself
//! is not reported.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::claim::{ClaimId, Owner};
use crate::name::Name;
use crate::store::{ClaimState, ClaimView, LockView};

/// Owners that wait for each other in a circle: each for a claim of the next one, and the last for one of the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circle {
    /// What they wait with. The one with the smallest claim id comes first.
    pub claims: Vec<Stuck>,
}

/// One owner of a [`Circle`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    /// The lock that is waited for.
    pub name: Name,
    /// The claim that waits for it. Taking it out, or a hold of its owner, breaks the circle.
    pub waiting: ClaimId,
    /// Who waits.
    pub owner: Owner,
}

/// The circles in these lines, the smallest ones: none has all owners of another one in it.
///
/// Every circle has an owner in it that holds something. Lines that were looked at one after the other may show a circle
/// that never was; see [`circles_in_both`].
pub fn circles(lines: &[LockView]) -> Vec<Circle> {
    let map = Map::of(lines);
    let mut found: Vec<Vec<Wait>> = map.holders_that_wait().filter_map(|start| map.shortest_back_to(start)).collect();
    found.sort_by_key(Vec::len);
    let mut kept: Vec<(HashSet<u128>, Circle)> = Vec::new();
    for path in found {
        let owners: HashSet<u128> = path.iter().map(|wait| map.claim(*wait).owner.id()).collect();
        if kept.iter().all(|(smaller, _)| !smaller.is_subset(&owners)) {
            kept.push((owners, map.circle(&path)));
        }
    }
    kept.into_iter().map(|(_, circle)| circle).collect()
}

/// The circles made only of claims that both looks show, waiting or holding in both.
///
/// A claim that waits in both looks waited all the time between them, and so did those ahead of it stay. So there was a
/// moment at which the whole circle stood, although neither look shows all lines as they were at one moment.
pub fn circles_in_both(first: &[LockView], second: &[LockView]) -> Vec<Circle> {
    let before: HashSet<(&Name, ClaimId, ClaimState)> =
        first.iter().flat_map(|line| line.claims.iter().map(|claim| (&line.name, claim.id, claim.state))).collect();
    let mut still = second.to_vec();
    for line in &mut still {
        let name = &line.name;
        line.claims.retain(|claim| before.contains(&(name, claim.id, claim.state)));
    }
    circles(&still)
}

/// Where a claim stands: the line, and its place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Wait {
    line: usize,
    place: usize,
}

/// The lines, and where each owner waits.
struct Map<'a> {
    lines: &'a [LockView],
    waits: HashMap<u128, Vec<Wait>>,
    /// Who holds something, in the order of the lines.
    holders: Vec<u128>,
}

impl<'a> Map<'a> {
    fn of(lines: &'a [LockView]) -> Self {
        let mut map = Self { lines, waits: HashMap::new(), holders: Vec::new() };
        let mut seen = HashSet::new();
        for (line, view) in lines.iter().enumerate() {
            for (place, claim) in view.claims.iter().enumerate() {
                let owner = claim.owner.id();
                match claim.state {
                    ClaimState::Waiting => map.waits.entry(owner).or_default().push(Wait { line, place }),
                    ClaimState::Holding if seen.insert(owner) => map.holders.push(owner),
                    // What is leaving has no owner any more, and ends by itself.
                    ClaimState::Holding | ClaimState::Leaving => {}
                }
            }
        }
        map
    }

    fn claim(&self, at: Wait) -> &'a ClaimView {
        &self.lines[at.line].claims[at.place]
    }

    fn holders_that_wait(&self) -> impl Iterator<Item = u128> {
        self.holders.iter().copied().filter(|owner| self.waits.contains_key(owner))
    }

    /// The owners that a waiting claim waits for, the nearest one first.
    fn waited_for(&self, wait: Wait) -> impl Iterator<Item = u128> {
        let (view, claim) = (&self.lines[wait.line], self.claim(wait));
        let rival = move |ahead: &&ClaimView| {
            ahead.state != ClaimState::Leaving
                && u64::from(ahead.weight) + u64::from(claim.weight) > u64::from(view.capacity)
        };
        view.claims[..wait.place].iter().rev().filter(rival).map(|ahead| ahead.owner.id())
    }

    /// The shortest way along waits from an owner back to itself, over at least one other.
    fn shortest_back_to(&self, start: u128) -> Option<Vec<Wait>> {
        // By owner: the wait that led to it, and whose it is.
        let mut reached: HashMap<u128, (u128, Wait)> = HashMap::new();
        let mut scanned: HashMap<usize, Wait> = HashMap::new();
        let mut next = VecDeque::from([start]);
        while let Some(owner) = next.pop_front() {
            for wait in self.waits.get(&owner).into_iter().flatten() {
                if owner != start && !self.is_news(&mut scanned, *wait) {
                    continue;
                }
                for other in self.waited_for(*wait).filter(|other| *other != owner) {
                    if other == start {
                        return Some(way(&reached, start, owner, *wait));
                    }
                    reached.entry(other).or_insert_with(|| {
                        next.push_back(other);
                        (owner, *wait)
                    });
                }
            }
        }
        None
    }

    /// Does the claim wait for anyone that a scan of the same line has not shown yet? One from further back with no less
    /// weight has. With the nearest ones first, this keeps a search along a long line from being quadratic.
    fn is_news(&self, scanned: &mut HashMap<usize, Wait>, wait: Wait) -> bool {
        let known = scanned.get(&wait.line);
        let covers = |known: &Wait| {
            let (known_claim, claim) = (self.claim(*known), self.claim(wait));
            known.place >= wait.place && known_claim.weight >= claim.weight
        };
        if known.is_some_and(covers) {
            return false;
        }
        scanned.insert(wait.line, wait);
        true
    }

    fn circle(&self, path: &[Wait]) -> Circle {
        let mut claims: Vec<Stuck> = path
            .iter()
            .map(|at| {
                let claim = self.claim(*at);
                Stuck { name: self.lines[at.line].name.clone(), waiting: claim.id, owner: claim.owner.clone() }
            })
            .collect();
        let first = (0..claims.len()).min_by_key(|at| claims[*at].waiting).unwrap_or(0);
        claims.rotate_left(first);
        Circle { claims }
    }
}

/// The waits from `start` to `last`, and the one that closes the circle.
fn way(reached: &HashMap<u128, (u128, Wait)>, start: u128, last: u128, closing: Wait) -> Vec<Wait> {
    let mut way = vec![closing];
    let mut owner = last;
    while owner != start {
        let (before, wait) = reached[&owner];
        way.push(wait);
        owner = before;
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests;
