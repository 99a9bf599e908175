//! `tokens-rise`, `one-token-per-claim`.

use super::assert_finds;
use crate::check::sketch::{Sketch, Take, take};
use crate::history::{By, LockKind};
use crate::judgement::Outcome::{Failed, NotRun, Passed, Reported};
use crate::plan::Nemesis;

fn two(first: u64, second: u64, kinds: [LockKind; 2]) -> Sketch {
    let mut sketch = Sketch::new();
    sketch.hold(0, Take { token: Some(first), kind: kinds[0], ..take(0, 10, 50) });
    sketch.hold(1, Take { token: Some(second), kind: kinds[1], ..take(20, 60, 90) });
    sketch
}

#[test]
fn the_later_has_the_greater_token() {
    use LockKind::{Mutex, Permit, Read, Write};
    let found = [
        ((1, 2), [Mutex, Mutex], Passed),
        ((2, 1), [Mutex, Mutex], Failed),
        ((2, 2), [Mutex, Mutex], Failed),
        ((2, 1), [Read, Read], Passed),
        ((2, 2), [Read, Read], Passed),
        ((2, 1), [Read, Write], Failed),
        ((2, 1), [Write, Read], Failed),
        ((2, 1), [Permit { of: 2 }, Permit { of: 2 }], NotRun),
    ];
    for ((first, second), kinds, outcome) in found {
        assert_finds(&two(first, second, kinds), "tokens-rise", outcome);
    }
}

#[test]
fn a_token_twice_is_found_across_time() {
    let mut sketch = two(1, 2, [LockKind::Mutex; 2]);
    sketch.hold(0, Take { token: Some(3), ..take(100, 101, 102) });
    assert_finds(&sketch, "tokens-rise", Passed);
    // Noted after its deadline, so in no order with the others; but its token is one of them.
    sketch.hold(0, Take { token: Some(1), deadline: Some(111), ..take(110, 112, 113) });
    assert_finds(&sketch, "tokens-rise", Failed);
}

#[test]
fn where_a_store_may_forget_only_who_asked_later_is_compared() {
    let second_asked = |asked, by| {
        let mut sketch = Sketch::under(&[Nemesis::WipeStore]);
        sketch.hold(0, Take { token: Some(2), ..take(0, 10, 50) });
        sketch.hold(1, Take { token: Some(1), by, ..take(asked, 60, 90) });
        sketch
    };
    assert_finds(&second_asked(5, By::Asking), "tokens-rise", Passed);
    assert_finds(&second_asked(11, By::Asking), "tokens-rise", Failed);
    // Its process had the claim before; nobody there knows that it is gone.
    assert_finds(&second_asked(11, By::HandOver), "tokens-rise", Passed);
    let mut sketch = second_asked(11, By::Asking);
    sketch.history.plan.nemesis.push(Nemesis::StepStore);
    assert_finds(&sketch, "tokens-rise", Reported);
}

#[test]
fn without_tokens_there_is_nothing_to_check() {
    let mut sketch = two(2, 1, [LockKind::Mutex; 2]);
    sketch.history.plan.store.tokens = false;
    for check in ["tokens-rise", "one-token-per-claim"] {
        assert_finds(&sketch, check, NotRun);
    }
}

#[test]
fn a_claim_has_one_token() {
    let claim = |token, by| {
        let mut sketch = Sketch::new();
        sketch.hold(0, Take { claim: Some("one"), token: Some(5 << 10), ..take(0, 10, 50) });
        sketch.hold(0, Take { claim: Some("one"), token: Some(token), by, again: true, ..take(20, 21, 30) });
        sketch
    };
    assert_finds(&claim(5 << 10, By::Asking), "one-token-per-claim", Passed);
    assert_finds(&claim((5 << 10) + 1, By::Asking), "one-token-per-claim", Failed);
    assert_finds(&claim((5 << 10) + 1, By::HandOver), "one-token-per-claim", Passed);
    assert_finds(&claim(6 << 10, By::HandOver), "one-token-per-claim", Failed);
}
