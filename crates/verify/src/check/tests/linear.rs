//! `mutex-is-linearizable`, `cells-are-linearizable`, `counters-are-linearizable`.

use proptest::prelude::*;

use super::assert_finds;
use crate::check::sketch::{Sketch, Take, take};
use crate::history::{CellAnswer, CellCall};
use crate::judgement::Outcome::{self, Failed, NotRun, Passed, Reported};
use crate::plan::Nemesis;

/// So many in turn, all of whom asked at the start; every third is lost instead of released.
fn in_turn(holds: u64) -> Sketch {
    let mut sketch = Sketch::new();
    for turn in 1..=holds {
        let left = (turn % 3 > 0).then_some(turn * 10 + 8);
        let op = sketch.hold((turn % 4) as u32, Take { held: turn * 10, left, ..Take::default() });
        if left.is_none() {
            sketch.seen((turn % 4) as u32, op, turn * 10 + 5, true);
        }
    }
    sketch
}

#[test]
fn an_order_of_holds_is_found() {
    assert_finds(&in_turn(100), "mutex-is-linearizable", Passed);
    assert_finds(&in_turn(1), "mutex-is-linearizable", Passed);
    assert_finds(&Sketch::new(), "mutex-is-linearizable", NotRun);
}

#[test]
fn two_at_once_have_no_order() {
    let mut sketch = in_turn(100);
    sketch.hold(5, take(0, 502, 506));
    assert_finds(&sketch, "mutex-is-linearizable", Failed);
    sketch.history.plan.nemesis = vec![Nemesis::WipeStore];
    assert_finds(&sketch, "mutex-is-linearizable", Reported);
}

#[test]
fn very_long_lines_are_sampled_and_that_is_said() {
    let found = in_turn(40_000).finds("mutex-is-linearizable");
    assert_eq!(found.outcome, Outcome::Passed);
    assert!(found.saw.contains("; one of every 2 of 2667 was taken"), "{}", found.saw);
}

const READ_NONE: (CellCall, CellAnswer) = (CellCall::Read, CellAnswer::Cell { version: 0, value: None });

fn read(version: u64, value: u64) -> (CellCall, CellAnswer) {
    (CellCall::Read, CellAnswer::Cell { version, value: Some(value) })
}

fn swap(version: u64, value: u64, answer: CellAnswer) -> (CellCall, CellAnswer) {
    (CellCall::Swap { version, value }, answer)
}

fn swapped(version: u64) -> CellAnswer {
    CellAnswer::Swapped { version }
}

/// Calls from one moment to another.
fn calls(calls: &[(u64, u64, (CellCall, CellAnswer))]) -> Sketch {
    let mut sketch = Sketch::new();
    for (from, to, (call, answer)) in calls {
        sketch.call((from % 3) as u32, (*from, *to), "c1", call.clone(), answer.clone());
    }
    sketch.end(10_000);
    sketch
}

#[test]
fn cells_keep_what_was_answered() {
    use CellAnswer::{Kept, Refused, Unknown};
    let found = [
        (vec![(1, 2, READ_NONE), (3, 4, swap(0, 7, swapped(1))), (5, 6, read(1, 7))], Passed),
        (vec![(1, 2, swap(0, 7, swapped(1))), (3, 4, READ_NONE)], Failed),
        (vec![(1, 9, swap(0, 7, swapped(1))), (3, 4, READ_NONE)], Passed),
        (vec![(1, 2, swap(0, 7, swapped(1))), (3, 4, read(1, 8))], Failed),
        // Two win with the same version: one was not told the truth.
        (vec![(1, 5, swap(0, 7, swapped(1))), (2, 6, swap(0, 8, swapped(2)))], Failed),
        (vec![(1, 5, swap(0, 7, swapped(1))), (2, 6, swap(0, 8, Kept))], Passed),
        (vec![(1, 2, swap(0, 8, Kept))], Failed),
        (vec![(1, 2, swap(0, 8, Refused)), (3, 4, read(1, 8))], Failed),
        // What was not answered may have happened, late or never, but not twice and not before it was asked.
        (vec![(1, 2, swap(0, 8, Unknown)), (3, 4, READ_NONE), (5, 6, read(4, 8)), (7, 8, read(4, 8))], Passed),
        (vec![(1, 2, swap(0, 8, Unknown)), (3, 4, read(4, 8)), (5, 6, READ_NONE)], Failed),
        (vec![(1, 2, swap(0, 8, Unknown)), (3, 4, read(4, 8)), (5, 6, read(5, 8))], Failed),
        (vec![(1, 2, read(4, 8)), (3, 4, swap(0, 8, Unknown))], Failed),
        (vec![(1, 2, swap(0, 8, Unknown)), (3, 4, read(4, 8)), (5, 6, swap(4, 9, swapped(5)))], Passed),
        (vec![(1, 2, (CellCall::Read, CellAnswer::Count { value: 0 }))], Failed),
        (vec![(1, 2, (CellCall::Read, Unknown))], NotRun),
    ];
    for (steps, outcome) in found {
        assert_finds(&calls(&steps), "cells-are-linearizable", outcome);
    }
}

fn add(by: i64, value: i64) -> (CellCall, CellAnswer) {
    (CellCall::Add { by }, CellAnswer::Count { value })
}

fn get(value: i64) -> (CellCall, CellAnswer) {
    (CellCall::Get, CellAnswer::Count { value })
}

#[test]
fn counters_keep_what_was_answered() {
    let unknown = (CellCall::Add { by: 5 }, CellAnswer::Unknown);
    let found = [
        (vec![(1, 2, get(0)), (3, 4, add(2, 2)), (5, 6, add(3, 5)), (7, 8, get(5))], Passed),
        (vec![(1, 2, add(2, 2)), (3, 4, add(3, 3))], Failed),
        (vec![(1, 4, add(2, 5)), (2, 5, add(3, 3))], Passed),
        (vec![(1, 2, unknown.clone()), (3, 4, get(0)), (5, 6, get(5)), (7, 8, add(1, 6))], Passed),
        (vec![(1, 2, unknown.clone()), (3, 4, get(5)), (5, 6, get(10))], Failed),
        (vec![(1, 2, get(5)), (3, 4, unknown)], Failed),
    ];
    for (steps, outcome) in found {
        assert_finds(&calls(&steps), "counters-are-linearizable", outcome);
    }
}

#[test]
fn data_that_may_be_lost_is_reported() {
    let mut sketch = calls(&[(1, 2, add(2, 2)), (3, 4, add(3, 3))]);
    sketch.history.plan.nemesis = vec![Nemesis::WipeStore];
    assert_finds(&sketch, "counters-are-linearizable", Reported);
}

#[test]
fn a_killed_worker_may_have_called_without_a_word() {
    let killed_at = |at| {
        let mut sketch = calls(&[(1_000, 1_001, add(2, 2)), (1_002, 1_003, add(3, 9))]);
        sketch.hurt_worker(Nemesis::KillWorker, 7, at, at);
        sketch
            .note(7, crate::history::Event::Began { at: 0, life: crate::history::Life { worker: 7, life: 0 }, pid: 1 });
        sketch
    };
    assert_finds(&killed_at(1_200), "counters-are-linearizable", NotRun);
    assert_finds(&killed_at(600), "counters-are-linearizable", NotRun);
    assert_finds(&killed_at(400), "counters-are-linearizable", Failed);
    assert_finds(&killed_at(2_000), "counters-are-linearizable", Failed);
    let mut hurt = killed_at(2_000);
    hurt.hurt(Nemesis::PauseStore, 900, 1_900);
    assert_finds(&hurt, "counters-are-linearizable", NotRun);
}

#[test]
fn what_would_take_too_long_is_counted() {
    // All at once, and the one answer that fits none of the many orders.
    let mut steps: Vec<_> =
        (0..30).map(|call| (call, 1_000, (CellCall::Add { by: 1 << call }, CellAnswer::Unknown))).collect();
    steps.push((1, 1_000, get(-1)));
    let found = calls(&steps).finds("counters-are-linearizable");
    assert_eq!((found.outcome, found.saw.as_str()), (NotRun, "no counters to judge; 1 would take too long"));
}

proptest! {
    /// Calls that really were made in some order, each within its time, are never accused.
    #[test]
    fn a_true_counter_is_never_accused(
        adds in prop::collection::vec((-5_i64..6, 0_u64..30, 0_u64..30, prop::bool::ANY), 1..25),
    ) {
        let mut count = 0;
        let mut steps = Vec::new();
        for (at, (by, before, after, unknown)) in (0..).map(|call| 100 + call * 10).zip(adds) {
            count += by;
            let answer = if unknown { CellAnswer::Unknown } else { CellAnswer::Count { value: count } };
            steps.push((at - before, at + after, (CellCall::Add { by }, answer)));
        }
        let found = calls(&steps).finds("counters-are-linearizable");
        prop_assert!(found.outcome != Failed, "{found:?}");
    }
}
