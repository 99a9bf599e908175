//! `holds-exclude`, `held-is-true`, `lost-is-sticky`.

use super::assert_finds;
use crate::check::sketch::{Sketch, Take, take};
use crate::history::{By, LockKind};
use crate::judgement::Outcome::{Failed, NotRun, Passed, Reported};
use crate::plan::Nemesis;

/// Two one after the other, the second told so at this moment.
fn two(second_held: u64) -> Sketch {
    let mut sketch = Sketch::new();
    sketch.hold(0, take(0, 10, 50));
    sketch.hold(1, take(5, second_held, 90));
    sketch
}

#[test]
fn one_after_the_other_is_fine_and_two_at_once_are_not() {
    assert_finds(&two(51), "holds-exclude", Passed);
    assert_finds(&two(49), "holds-exclude", Failed);
    assert_finds(&Sketch::new(), "holds-exclude", NotRun);
}

#[test]
fn what_was_not_promised_is_reported() {
    let mut sketch = two(49);
    sketch.history.plan.nemesis = vec![Nemesis::WipeStore];
    assert_finds(&sketch, "holds-exclude", Reported);
    sketch.history.plan.nemesis = vec![Nemesis::PauseHolder];
    assert_finds(&sketch, "holds-exclude", Failed);
}

fn shared(kinds: [LockKind; 3]) -> Sketch {
    let mut sketch = Sketch::new();
    for (worker, kind) in (0..).zip(kinds) {
        sketch.hold(worker, Take { kind, ..take(0, 10 + u64::from(worker), 50) });
    }
    sketch
}

#[test]
fn readers_share_and_writers_do_not() {
    use LockKind::{Read, Write};
    assert_finds(&shared([Read, Read, Read]), "holds-exclude", Passed);
    assert_finds(&shared([Read, Read, Write]), "holds-exclude", Failed);
    assert_finds(&shared([Write, Read, Read]), "holds-exclude", Failed);
}

#[test]
fn no_more_permits_than_there_are() {
    assert_finds(&shared([LockKind::Permit { of: 3 }; 3]), "holds-exclude", Passed);
    assert_finds(&shared([LockKind::Permit { of: 2 }; 3]), "holds-exclude", Failed);
}

#[test]
fn who_comes_in_again_does_not_exclude_itself() {
    let again = |claim, again, by| {
        let mut sketch = Sketch::new();
        sketch.hold(0, Take { claim: Some("one"), ..take(0, 10, 50) });
        sketch.hold(0, Take { claim: Some(claim), again, by, ..take(20, 21, 30) });
        sketch
    };
    assert_finds(&again("one", true, By::Asking), "holds-exclude", Passed);
    assert_finds(&again("two", true, By::Asking), "holds-exclude", Failed);
    assert_finds(&again("one", false, By::HandOver), "holds-exclude", Failed);
}

/// A holder is stopped, its lease ends, another comes in; then it goes on.
fn stopped(sees: bool) -> Sketch {
    let mut sketch = Sketch::under(&[Nemesis::PauseHolder]);
    let op = sketch.hold(0, Take { held: 10, ..Take::default() });
    sketch.seen(0, op, 20, true);
    sketch.hold(1, take(5, 2_100, 2_200));
    sketch.seen(0, op, 5_000, sees);
    sketch.left(0, op, 5_001, "not-held");
    sketch
}

#[test]
fn a_stopped_holder_believes_nothing_while_it_is_stopped() {
    for check in ["holds-exclude", "held-is-true"] {
        assert_finds(&stopped(false), check, Passed);
        assert_finds(&stopped(true), check, Failed);
    }
}

#[test]
fn an_answer_that_was_noted_after_its_deadline_is_no_hold() {
    let with_deadline = |deadline| {
        let mut sketch = Sketch::new();
        let first = sketch.hold(0, take(0, 10, 90));
        sketch.seen(0, first, 80, true);
        // Let in long before, stopped before it could write that down.
        sketch.hold(1, Take { held: 50, deadline: Some(deadline), ..Take::default() });
        sketch
    };
    for check in ["holds-exclude", "held-is-true"] {
        assert_finds(&with_deadline(49), check, Passed);
        assert_finds(&with_deadline(51), check, Failed);
    }
}

#[test]
fn a_look_at_itself_is_true() {
    let with_look = |at| {
        let mut sketch = Sketch::new();
        let op = sketch.hold(0, Take { held: 10, ..Take::default() });
        sketch.seen(0, op, at, true);
        sketch.left(0, op, 60, "not-held");
        sketch.hold(1, take(5, 50, 90));
        sketch
    };
    assert_finds(&with_look(49), "held-is-true", Passed);
    assert_finds(&with_look(51), "held-is-true", Failed);
    assert_finds(&two(51), "held-is-true", NotRun);
}

#[test]
fn lost_is_lost() {
    let seen_at = |at| {
        let mut sketch = Sketch::new();
        let op = sketch.hold(0, Take { held: 10, ..Take::default() });
        sketch.lost(0, op, 30);
        sketch.seen(0, op, at, true);
        sketch
    };
    assert_finds(&seen_at(29), "lost-is-sticky", Passed);
    assert_finds(&seen_at(31), "lost-is-sticky", Failed);
    assert_finds(&two(51), "lost-is-sticky", NotRun);
}
