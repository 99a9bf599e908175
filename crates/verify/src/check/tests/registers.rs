//! What the registers lose: `*-loses-nothing`, `fenced-order`, `acknowledged-is-written`.

use proptest::prelude::*;

use super::assert_finds;
use crate::check::sketch::{Sketch, Take, take};
use crate::history::{Event, Guard, Step, Verdict, Written};
use crate::judgement::Outcome::{Failed, NotRun, Passed, Reported};
use crate::plan::Nemesis;

const CHECKS: [(Guard, &str); 4] = [
    (Guard::Bare, "bare-loses-nothing"),
    (Guard::Deadline, "deadline-loses-nothing"),
    (Guard::FencedWrites, "fenced-writes-lose-nothing"),
    (Guard::Fenced, "fenced-loses-nothing"),
];

/// Two workers add one each; the second has read before the first wrote, or after.
fn two_updates(guard: Guard, loses: bool, lost_its_hold: bool) -> Sketch {
    let mut sketch = Sketch::new();
    let first = sketch.hold(0, Take { held: 10, ..Take::default() });
    let second = sketch.hold(1, take(5, 51, 90));
    if loses {
        sketch.step(0, first, guard, Step::Read, 0, 20, Verdict::Done);
        sketch.update(1, second, guard, 0, 60);
        sketch.write(0, first, guard, 0, 70);
    } else {
        sketch.update(0, first, guard, 0, 20);
        sketch.update(1, second, guard, 1, 60);
    }
    sketch.left(0, first, 80, if lost_its_hold { "not-held" } else { "released" });
    sketch
}

#[test]
fn every_guard_has_its_check() {
    for (guard, check) in CHECKS {
        assert_finds(&two_updates(guard, false, false), check, Passed);
        assert_finds(&two_updates(guard, true, false), check, Failed);
        assert_finds(&Sketch::new(), check, NotRun);
    }
}

#[test]
fn only_a_fence_keeps_out_who_has_lost_its_hold() {
    for (guard, check) in CHECKS {
        let outcome = if guard == Guard::Fenced { Failed } else { Reported };
        assert_finds(&two_updates(guard, true, true), check, outcome);
    }
}

#[test]
fn where_the_lock_may_pass_on_only_the_fence_must_hold() {
    for (guard, check) in CHECKS {
        let mut sketch = two_updates(guard, true, false);
        sketch.history.plan.nemesis = vec![Nemesis::PauseHolder];
        let outcome = if guard == Guard::Fenced { Failed } else { Reported };
        assert_finds(&sketch, check, outcome);
        sketch.history.plan.nemesis = vec![Nemesis::WipeStore, Nemesis::StepStore];
        assert_finds(&sketch, check, Reported);
    }
}

#[test]
fn losses_are_counted_with_their_bound() {
    let updates = two_updates(Guard::Bare, true, false).judged().updates;
    let bare = updates[&Guard::Bare];
    assert_eq!((bare.lost, bare.tally.attempted, bare.tally.acknowledged), (1, 2, 2));
    assert!((bare.lost_at_most - 0.974_679).abs() < 1e-5, "{bare:?}");
    assert!(!updates.contains_key(&Guard::Fenced), "nobody used it");
}

#[test]
fn how_writes_were_answered_is_counted() {
    let mut sketch = Sketch::new();
    let op = sketch.hold(0, take(0, 10, 50));
    for answer in [Written::Stale, Written::Withheld, Written::Unknown] {
        let (lock, guard) = ("a".to_owned(), Guard::Bare);
        sketch.note(0, Event::Wrote { sent: 0, at: 0, op, lock, guard, read: 0, answer });
    }
    let tally = sketch.judged().updates[&Guard::Bare].tally;
    assert_eq!((tally.attempted, tally.acknowledged, tally.refused, tally.unknown), (3, 0, 2, 1));
}

#[test]
fn what_a_worker_was_told_is_in_the_book() {
    let mut sketch = two_updates(Guard::Bare, false, false);
    assert_finds(&sketch, "acknowledged-is-written", Passed);
    sketch.history.registers.pop();
    assert_finds(&sketch, "acknowledged-is-written", Failed);
}

/// Steps behind the fence with these tokens: shared or not, taken or not.
fn fenced(steps: &[(u64, bool, Verdict)]) -> Sketch {
    let mut sketch = Sketch::new();
    for (token, shared, answer) in steps {
        sketch.step(0, 1, Guard::Fenced, Step::Enter, 0, *token, *answer);
        sketch.history.registers.last_mut().unwrap().shared = *shared;
    }
    sketch
}

#[test]
fn a_fence_lets_nobody_in_out_of_order() {
    use Verdict::{Done, Stale};
    let found = [
        (vec![(1, false, Done), (1, false, Done), (2, false, Done)], Passed),
        (vec![(2, false, Done), (1, false, Stale), (2, false, Done)], Passed),
        (vec![(2, false, Done), (1, false, Done)], Failed),
        (vec![(3, true, Done), (2, true, Done)], Passed),
        (vec![(3, true, Done), (2, false, Done)], Failed),
        (vec![(3, false, Done), (2, true, Done)], Failed),
        (vec![(2, false, Stale)], NotRun),
    ];
    for (steps, outcome) in found {
        assert_finds(&fenced(&steps), "fenced-order", outcome);
    }
    let mut sketch = fenced(&[(1, false, Done)]);
    sketch.history.registers[0].token = None;
    assert_finds(&sketch, "fenced-order", Failed);
}

proptest! {
    /// Whoever reads and writes without another between loses nothing, and whatever the order, what is lost is what is
    /// missing in the end.
    #[test]
    fn lost_is_what_is_missing_in_the_end(steps in prop::collection::vec((0_u32..4, prop::bool::ANY), 1..60)) {
        let mut sketch = Sketch::new();
        let (mut value, mut read, mut writes) = (0, [None; 4], 0);
        for (at, (worker, is_write)) in (1..).zip(steps) {
            match (is_write, read[worker as usize].take()) {
                (true, Some(seen)) => {
                    sketch.write(worker, 1, Guard::Bare, seen, at);
                    (value, writes) = (seen + 1, writes + 1);
                }
                _ => {
                    sketch.step(worker, 1, Guard::Bare, Step::Read, value, at, Verdict::Done);
                    read[worker as usize] = Some(value);
                }
            }
        }
        if writes > 0 {
            let updates = sketch.judged().updates[&Guard::Bare];
            prop_assert_eq!(updates.lost, writes - value);
            prop_assert_eq!(updates.lost > 0, sketch.finds("bare-loses-nothing").outcome == Failed);
        }
    }
}
