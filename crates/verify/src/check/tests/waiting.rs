//! `nobody-is-stuck`, `fair-enough`, `woken-by-push`, `readers-wait-behind-writers`.

use super::assert_finds;
use crate::check::sketch::{Sketch, Take, take};
use crate::history::{By, LockKind};
use crate::judgement::Outcome::{Failed, NotRun, Passed, Reported};
use crate::plan::{Nemesis, Work};

/// One holds; another wants it at once, and has it at this moment. Lease 2 s, so 3 s are borne.
fn wanted_until(held: u64) -> Sketch {
    let mut sketch = Sketch::new();
    sketch.hold(0, take(0, 10, 100));
    sketch.hold(1, take(20, held, held + 10));
    sketch
}

#[test]
fn a_lock_that_is_wanted_moves_on() {
    assert_finds(&wanted_until(3_100), "nobody-is-stuck", Passed);
    assert_finds(&wanted_until(3_101), "nobody-is-stuck", Failed);
    let figures = wanted_until(3_101).judged().figures;
    assert_eq!((figures.longest_stuck_ms, figures.stuck_bound_ms), (3_000, 3_000));
    assert_finds(&Sketch::new(), "nobody-is-stuck", NotRun);
}

#[test]
fn a_lock_that_is_held_for_long_is_not_stuck() {
    let mut sketch = Sketch::new();
    sketch.hold(0, take(0, 10, 5_000));
    sketch.hold(1, take(20, 5_100, 5_200));
    assert_finds(&sketch, "nobody-is-stuck", Passed);
}

#[test]
fn what_a_dead_or_stopped_holder_held_comes_free_in_time() {
    for nemesis in [Nemesis::KillHolder, Nemesis::PauseHolder] {
        let next_held = |held| {
            let mut sketch = Sketch::new();
            let op = sketch.hold(0, Take { held: 10, ..Take::default() });
            sketch.hold(1, take(20, held, held + 10));
            sketch.hurt_worker(nemesis, 0, 2_000, 9_000);
            if nemesis == Nemesis::PauseHolder {
                sketch.seen(0, op, 9_001, false);
            }
            sketch
        };
        assert_finds(&next_held(5_000), "nobody-is-stuck", Passed);
        assert_finds(&next_held(5_001), "nobody-is-stuck", Failed);
    }
}

#[test]
fn who_gives_up_does_not_make_it_move() {
    let mut sketch = Sketch::new();
    for asked in 0..50 {
        let op = sketch.ask(0, asked * 100, LockKind::Mutex);
        sketch.refused(0, op, asked * 100 + 90, "timeout");
    }
    assert_finds(&sketch, "nobody-is-stuck", Failed);
}

#[test]
fn time_in_which_the_store_or_who_wants_is_hurt_does_not_count() {
    let mut sketch = wanted_until(6_000);
    sketch.hurt(Nemesis::PauseStore, 150, 2_500);
    assert_finds(&sketch, "nobody-is-stuck", Passed);
    let mut sketch = wanted_until(6_000);
    sketch.hurt_worker(Nemesis::PauseWorker, 1, 150, 4_000);
    assert_finds(&sketch, "nobody-is-stuck", Passed);
    let mut sketch = wanted_until(6_000);
    sketch.hurt_worker(Nemesis::PauseWorker, 0, 150, 4_000);
    assert_finds(&sketch, "nobody-is-stuck", Failed);
    let mut sketch = wanted_until(6_000);
    sketch.hurt(Nemesis::StepStore, 5, 6);
    sketch.history.faults.clear();
    assert_finds(&sketch, "nobody-is-stuck", Reported);
}

#[test]
fn a_file_stops_with_who_is_stopped_in_it() {
    let stopped_until = |until| {
        let mut sketch = wanted_until(6_000);
        sketch.history.plan.store.scheme = "sqlite".to_owned();
        sketch.hurt_worker(Nemesis::PauseWorker, 0, 150, until);
        sketch
    };
    assert_finds(&stopped_until(4_000), "nobody-is-stuck", Reported);
    assert_eq!(stopped_until(4_000).judged().figures.longest_stuck_ms, 5_899, "it is told all the same");
    let mut stuck = stopped_until(4_000);
    stuck.hold(0, take(20, 11_000, 11_001));
    assert_finds(&stuck, "nobody-is-stuck", Failed);
}

#[test]
fn the_dead_want_nothing() {
    let mut sketch = wanted_until(3_000);
    sketch.ask(2, 3_020, LockKind::Mutex);
    sketch.hurt_worker(Nemesis::KillWorker, 2, 3_030, 3_040);
    sketch.hold(0, take(9_000, 9_001, 9_002));
    assert_finds(&sketch, "nobody-is-stuck", Passed);
}

fn shares(first: u64, second: u64) -> Sketch {
    let mut sketch = Sketch::new();
    for at in 0..first {
        sketch.hold(0, take(at * 10, at * 10 + 1, at * 10 + 2));
    }
    for at in 0..second {
        sketch.hold(1, take(at * 10 + 5, at * 10 + 6, at * 10 + 7));
    }
    sketch
}

#[test]
fn nobody_starves() {
    assert_finds(&shares(70, 10), "fair-enough", Passed);
    assert_finds(&shares(71, 9), "fair-enough", Failed);
    assert_finds(&shares(30, 1), "fair-enough", NotRun);
    let mut any_order = shares(80, 9);
    any_order.history.plan.store.fifo = false;
    assert_finds(&any_order, "fair-enough", NotRun);
    let mut hurt = shares(80, 9);
    hurt.hurt_worker(Nemesis::PauseWorker, 1, 0, 5_000);
    assert_finds(&hurt, "fair-enough", NotRun);
}

fn woken(push: u64, poll: u64) -> Sketch {
    let mut sketch = Sketch::new();
    for at in 0..push + poll {
        let by = if at < push { By::Push } else { By::Poll };
        sketch.hold(0, Take { by, ..take(at * 10, at * 10 + 1, at * 10 + 2) });
    }
    sketch
}

#[test]
fn who_waits_is_woken() {
    assert_finds(&woken(90, 10), "woken-by-push", Passed);
    assert_finds(&woken(89, 11), "woken-by-push", Failed);
    assert_finds(&woken(0, 19), "woken-by-push", NotRun);
    let mut sleepy = woken(0, 100);
    sleepy.history.plan.store.push = false;
    assert_finds(&sleepy, "woken-by-push", NotRun);
    let mut cut = woken(60, 40);
    cut.hurt(Nemesis::Cut, 20_000, 20_001);
    assert_finds(&cut, "woken-by-push", Reported);
    // What a fault did does not count: here all that came in by asking again.
    let mut killed = woken(60, 40);
    killed.hurt_worker(Nemesis::KillHolder, 1, 600, 1_000);
    assert_finds(&killed, "woken-by-push", Passed);
}

/// Writers that wait for a second each, while so many readers come in.
fn writers(passing: u64, asked_after: u64) -> Sketch {
    let mut sketch = Sketch::new();
    sketch.history.plan.work = Work::ReadWrite;
    for writer in 0..6 {
        let at = writer * 2_000;
        sketch.hold(0, Take { kind: LockKind::Write, by: By::Push, ..take(at, at + 1_000, at + 1_010) });
        for reader in 0..passing {
            let asked = at + asked_after + reader;
            sketch.hold(1, Take { kind: LockKind::Read, ..take(asked, asked + 1, asked + 2) });
        }
    }
    sketch
}

#[test]
fn readers_wait_for_a_writer_that_came_before() {
    let check = "readers-wait-behind-writers";
    assert_finds(&writers(1, 200), check, Passed);
    assert_finds(&writers(2, 200), check, Failed);
    assert_finds(&writers(2, 8), check, Passed);
    let mut any_order = writers(4, 200);
    any_order.history.plan.store.fifo = false;
    assert_finds(&any_order, check, NotRun);
    let mut hurt = writers(4, 200);
    hurt.hurt(Nemesis::Cut, 0, 12_000);
    assert_finds(&hurt, check, NotRun);
}

#[test]
fn a_question_that_takes_long_moves_the_place_in_line() {
    let mut sketch = writers(4, 200);
    // First questions take 100 ms here: nobody can say that the writers stood in line 200 ms later.
    for at in 0..20 {
        sketch.hold(2, Take { lock: "b", kind: LockKind::Write, ..take(at * 200, at * 200 + 100, at * 200 + 110) });
    }
    assert_finds(&sketch, "readers-wait-behind-writers", Passed);
}
