//! Random lines against a search that knows no tricks.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::admit::{Spot, Verdict, admit};
use crate::claim::LockKind;

fn view(serial: u8, capacity: u32, claims: &[(u8, u32, bool)]) -> LockView {
    let mut ahead = Vec::new();
    let claims = claims.iter().enumerate().map(|(place, &(owner, weight, leaving))| {
        let weight = weight.min(capacity);
        let state = match admit(&ahead, weight, capacity) {
            Verdict::In if leaving => ClaimState::Leaving,
            Verdict::In => ClaimState::Holding,
            _ => ClaimState::Waiting,
        };
        ahead.push(Spot { order: place as u64, weight });
        ClaimView {
            id: ClaimId::from_bytes([serial, place as u8, owner, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            owner: Owner::stored(u128::from(owner), "host", 1, ""),
            weight,
            state,
            token: None,
            age: None,
            held_for: None,
            lease_left: Duration::from_secs(1),
            note: Vec::new(),
        }
    });
    let claims = claims.collect();
    LockView { name: Name::new(&format!("lock/{serial}")).unwrap(), kind: LockKind::Semaphore, capacity, claims }
}

fn mutex(serial: u8, owners: &[u8]) -> LockView {
    let claims: Vec<_> = owners.iter().map(|owner| (*owner, 1, false)).collect();
    view(serial, 1, &claims)
}

/// Who waits for whom, by the words of the rule.
fn edges(lines: &[LockView]) -> BTreeSet<(u128, u128)> {
    let mut edges = BTreeSet::new();
    for line in lines {
        for (place, waiting) in line.claims.iter().enumerate() {
            for ahead in &line.claims[..place] {
                if waiting.state == ClaimState::Waiting
                    && ahead.state != ClaimState::Leaving
                    && ahead.weight + waiting.weight > line.capacity
                    && ahead.owner.id() != waiting.owner.id()
                {
                    edges.insert((waiting.owner.id(), ahead.owner.id()));
                }
            }
        }
    }
    edges
}

fn holders(lines: &[LockView]) -> BTreeSet<u128> {
    lines.iter().flat_map(LockView::holders).map(|claim| claim.owner.id()).collect()
}

/// Every simple circle, by walking everywhere.
fn all_circles(edges: &BTreeSet<(u128, u128)>) -> BTreeSet<BTreeSet<u128>> {
    fn walk(edges: &BTreeSet<(u128, u128)>, path: &mut Vec<u128>, found: &mut BTreeSet<BTreeSet<u128>>) {
        let (first, last) = (path[0], path[path.len() - 1]);
        for (_, to) in edges.iter().filter(|(from, _)| *from == last) {
            if *to == first {
                found.insert(path.iter().copied().collect());
            } else if !path.contains(to) {
                path.push(*to);
                walk(edges, path, found);
                path.pop();
            }
        }
    }
    let mut found = BTreeSet::new();
    for start in edges.iter().map(|(from, _)| *from).collect::<BTreeSet<_>>() {
        walk(edges, &mut vec![start], &mut found);
    }
    found
}

fn owners(circle: &Circle) -> BTreeSet<u128> {
    circle.claims.iter().map(|stuck| stuck.owner.id()).collect()
}

fn check(lines: &[LockView]) {
    let (found, edges, holders) = (circles(lines), edges(lines), holders(lines));
    let expected: Vec<_> = all_circles(&edges).into_iter().filter(|circle| !circle.is_disjoint(&holders)).collect();
    assert_eq!(found.is_empty(), expected.is_empty(), "{found:?} of {expected:?} in {lines:?}");
    for circle in &found {
        assert!(expected.contains(&owners(circle)), "{circle:?}");
        assert!(circle.claims.len() == owners(circle).len() && circle.claims.len() > 1, "{circle:?}");
        assert!(circle.claims.iter().all(|stuck| stuck.waiting >= circle.claims[0].waiting));
        for (at, stuck) in circle.claims.iter().enumerate() {
            let next = &circle.claims[(at + 1) % circle.claims.len()].owner;
            let line = lines.iter().find(|line| line.name == stuck.name).unwrap();
            let place = line.claims.iter().position(|claim| claim.id == stuck.waiting).unwrap();
            let waiting = &line.claims[place];
            assert!(waiting.owner == stuck.owner && waiting.state == ClaimState::Waiting, "{circle:?}");
            let rival = |claim: &ClaimView| claim.owner == *next && claim.weight + waiting.weight > line.capacity;
            assert!(line.claims[..place].iter().any(rival), "{circle:?} in {lines:?}");
        }
        let inside = |other: &&Circle| *other != circle && owners(other).is_subset(&owners(circle));
        assert_eq!(found.iter().find(inside), None);
    }
    // Whoever is in a circle waits, in the end, for one that is named.
    for circle in &expected {
        let near = |found: &Circle| circle.iter().any(|owner| reaches(&edges, *owner, &owners(found)));
        assert!(found.iter().any(near), "{circle:?}");
    }
}

fn reaches(edges: &BTreeSet<(u128, u128)>, from: u128, goal: &BTreeSet<u128>) -> bool {
    let mut seen = BTreeSet::from([from]);
    loop {
        let more: Vec<_> =
            edges.iter().filter(|(a, b)| seen.contains(a) && !seen.contains(b)).map(|(_, b)| *b).collect();
        if more.is_empty() {
            return !seen.is_disjoint(goal);
        }
        seen.extend(more);
    }
}

fn lines() -> impl Strategy<Value = Vec<LockView>> {
    let claims = prop::collection::vec((0..6_u8, 1..4_u32, prop::bool::weighted(0.1)), 1..5);
    let line = (prop_oneof![3 => Just(1_u32), 1 => Just(3_u32)], claims);
    prop::collection::vec(line, 1..6).prop_map(|lines| {
        lines.iter().enumerate().map(|(at, (capacity, claims))| view(at as u8, *capacity, claims)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_lines_agree_with_walking_everywhere(lines in lines()) {
        check(&lines);
    }

    #[test]
    fn only_what_both_looks_show_counts(first in lines(), second in lines()) {
        for circle in circles_in_both(&first, &second) {
            for stuck in &circle.claims {
                let stands = |lines: &[LockView]| {
                    let line = lines.iter().find(|line| line.name == stuck.name).expect("a line");
                    line.claims.iter().any(|claim| claim.id == stuck.waiting && claim.state == ClaimState::Waiting)
                };
                prop_assert!(stands(&first) && stands(&second));
            }
        }
        prop_assert_eq!(circles_in_both(&first, &first), circles(&first));
    }
}

#[test]
fn two_crosswise() {
    let lines = [mutex(1, &[1, 2]), mutex(2, &[2, 1])];
    let found = circles(&lines);
    assert_eq!(found.len(), 1);
    let named: Vec<_> = found[0].claims.iter().map(|stuck| (stuck.name.as_str(), stuck.owner.id())).collect();
    assert_eq!(named, [("lock/1", 2), ("lock/2", 1)]);
    assert_eq!(circles(&lines[..1]), []);
}

#[test]
fn a_victim_behind_a_circle_is_not_named() {
    // Owner 3 waits in the same line, ahead of owner 2, and holds nothing: the circle is 1 and 2.
    let found = circles(&[mutex(1, &[1, 3, 2]), mutex(2, &[2, 1])]);
    assert_eq!(found.iter().map(owners).collect::<Vec<_>>(), [BTreeSet::from([1, 2])]);
}

#[test]
fn a_reader_behind_a_waiting_writer_closes_a_circle() {
    // Owner 1 reads and, elsewhere, comes to read again; owner 2 waits to write in between.
    let found = circles(&[view(1, 3, &[(1, 1, false), (2, 3, false), (1, 1, false)])]);
    assert_eq!(found.iter().map(owners).collect::<Vec<_>>(), [BTreeSet::from([1, 2])]);
}

#[test]
fn permits_that_add_up_are_no_circle() {
    let full = view(1, 3, &[(1, 1, false), (2, 2, false), (3, 1, false)]);
    assert_eq!(circles(&[full, mutex(2, &[3, 1])]), []);
}

#[test]
fn a_claim_that_came_anew_is_not_the_same() {
    let first = [mutex(1, &[1, 2]), mutex(2, &[2, 1])];
    let mut second = first.clone();
    second[1].claims[1].id = ClaimId::from_bytes([9; 16]);
    assert_eq!(circles_in_both(&first, &second), []);
    assert_eq!(circles(&second).len(), 1);
}

#[test]
fn long_lines_do_not_take_long() {
    // Everybody holds something of their own, and all wait for forty mutexes in the same order.
    let all: Vec<u8> = (0..=255).collect();
    let mut lines: Vec<_> = all.iter().map(|owner| mutex(*owner, &[*owner])).collect();
    lines.extend((0..40).map(|_| mutex(0, &all)));
    let before = Instant::now();
    assert_eq!(circles(&lines), []);
    assert!(before.elapsed() < Duration::from_secs(20), "{:?}", before.elapsed());
}
