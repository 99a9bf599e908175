//! `everybody-is-answered`, `nothing-is-left`, `holds-last`, `work-goes-on`, and the figures.

use super::assert_finds;
use crate::check::sketch::{Sketch, Take, take};
use crate::history::{By, Clutter, Event, Leftover, LockKind};
use crate::judgement::Outcome::{Failed, NotRun, Passed, Reported};
use crate::judgement::{Judgement, Tally};
use crate::plan::Nemesis;

/// So many who hold in turn, each for a tenth of a second.
fn in_turn(holds: u64) -> Sketch {
    let mut sketch = Sketch::new();
    for turn in 0..holds {
        let at = turn * 100;
        sketch.hold((turn % 2) as u32, take(at, at + 10, at + 90));
    }
    sketch
}

#[test]
fn everybody_is_answered() {
    assert_finds(in_turn(4).end(1_000), "everybody-is-answered", Passed);
    assert_finds(&in_turn(4), "everybody-is-answered", Failed);

    let mut sketch = in_turn(4);
    sketch.ask(0, 500, LockKind::Mutex);
    assert_finds(sketch.end(1_000), "everybody-is-answered", Failed);
}

#[test]
fn who_was_killed_owes_no_answer() {
    let mut sketch = in_turn(4);
    sketch.ask(0, 500, LockKind::Mutex);
    sketch.hurt_worker(Nemesis::KillWorker, 0, 510, 520);
    sketch.end(1_000);
    assert_finds(&sketch, "everybody-is-answered", Passed);
    let tally = sketch.judged().acquisitions;
    assert_eq!(tally, Tally { attempted: 5, acknowledged: 4, refused: 0, unknown: 1 });
}

#[test]
fn no_loss_is_bought_by_refusing() {
    let refused = |held, why| {
        let mut sketch = in_turn(held);
        for at in 0..40 {
            let op = sketch.ask(0, 5_000 + at, LockKind::Mutex);
            sketch.refused(0, op, 5_001 + at, why);
        }
        sketch.end(9_000);
        sketch
    };
    assert_finds(&refused(4, "timeout"), "everybody-is-answered", Failed);
    assert_finds(&refused(4, "busy"), "everybody-is-answered", Passed);
    assert_finds(&refused(0, "busy"), "everybody-is-answered", Failed);
    let mut hurt = refused(4, "timeout");
    hurt.hurt(Nemesis::PauseStore, 4_900, 6_000);
    assert_finds(&hurt, "everybody-is-answered", Passed);
}

#[test]
fn nothing_is_left() {
    let mut sketch = in_turn(1);
    assert_finds(&sketch, "nothing-is-left", Passed);
    let left = vec![Leftover { what: "key".to_owned(), name: "a".to_owned() }];
    sketch.history.after = Some(Clutter { left, ..Clutter::default() });
    assert_finds(&sketch, "nothing-is-left", Failed);
    sketch.history.plan.nemesis = vec![Nemesis::StepStore];
    assert_finds(&sketch, "nothing-is-left", Reported);
    sketch.history.after = Some(Clutter { unseen: vec!["keys: no answer".to_owned()], ..Clutter::default() });
    assert_finds(&sketch, "nothing-is-left", NotRun);
    sketch.history.after = None;
    assert_finds(&sketch, "nothing-is-left", NotRun);
}

#[test]
fn holds_last() {
    let lost = |nemesis, lost| {
        let mut sketch = in_turn(20);
        for at in 0..lost {
            let op = sketch.hold(0, Take { asked: 3_000, held: 3_001 + at, ..Take::default() });
            sketch.lost(0, op, 4_000);
        }
        sketch.hurt_worker(nemesis, 1, 3_000, 3_500);
        sketch
    };
    assert_finds(&lost(Nemesis::StepClient, 2), "holds-last", Passed);
    assert_finds(&lost(Nemesis::StepClient, 3), "holds-last", Failed);
    assert_finds(&lost(Nemesis::PauseWorker, 3), "holds-last", Passed);
    assert_finds(&Sketch::new(), "holds-last", NotRun);
}

#[test]
fn work_goes_on() {
    assert_finds(&in_turn(20), "work-goes-on", Passed);
    assert_finds(&in_turn(5), "work-goes-on", NotRun);
    // Everything is taken while something hurts, and nothing is in the time after.
    let mut sketch = in_turn(20);
    sketch.hurt(Nemesis::Delay, 0, 2_000);
    let op = sketch.ask(0, 2_100, LockKind::Mutex);
    sketch.refused(0, op, 9_000, "timeout");
    assert_finds(&sketch, "work-goes-on", Failed);
}

#[test]
fn figures_are_of_the_run() {
    let mut sketch = in_turn(100);
    sketch.hurt(Nemesis::Delay, 1_000, 2_000);
    let Judgement { figures, .. } = sketch.judged();
    assert_eq!((figures.ran_ms, figures.faults, figures.hurt_ms), (9_990, 1, 4_000));
    assert_eq!((figures.wait_p50_us, figures.wait_p99_us), (10_000, 10_000));
    assert_eq!((figures.fairness, figures.push_share), (1.0, None));
    assert!((figures.per_second_outside - 10.0).abs() < 0.2, "{figures:?}");
    assert_eq!((figures.longest_stuck_ms, figures.stuck_bound_ms), (10, 3_000));
}

#[test]
fn one_that_has_all_is_not_fair() {
    let mut sketch = Sketch::new();
    sketch.hold(0, Take { by: By::Push, ..take(0, 30, 40) });
    sketch.hold(0, Take { by: By::Poll, ..take(50, 60, 70) });
    sketch.note(1, Event::Ended { at: 0 });
    let figures = sketch.judged().figures;
    assert_eq!((figures.fairness, figures.push_share), (0.5, Some(0.5)));
    assert_eq!((figures.wait_p50_us, figures.wait_p99_us), (10_000, 30_000));
}
