//! The rules of the line, one by one: what each would look like to the people who rely on it.

use crate::claim::{Claim, Patience, Token};
use crate::error::ErrorKind;
use crate::line::{Line, Step};
use crate::store::{Keep, Left, Renewal, Standing};

use super::{Ask, at, id, ticks};

/// A line and the next number, with the clock in the caller's hand.
#[derive(Default)]
struct Bench {
    line: Line,
    last: u64,
}

impl Bench {
    fn enter(&mut self, ask: Ask, now: u64) -> Standing {
        self.step(ask, now).answer
    }

    fn step(&mut self, ask: Ask, now: u64) -> Step<Standing> {
        self.last += 1;
        self.line.enter(&ask.claim(), at(now), self.last).unwrap()
    }

    fn refusal(&mut self, ask: Ask, now: u64) -> ErrorKind {
        self.last += 1;
        let before = self.line.entries.clone();
        let kind = self.line.enter(&ask.claim(), at(now), self.last).unwrap_err().kind();
        assert_eq!(self.line.entries, before);
        kind
    }

    fn renew(&mut self, who: u8, lease: u64, now: u64) -> Renewal {
        self.line.renew(id(who), ticks(lease), at(now)).answer
    }

    fn leave(&mut self, who: u8, keep: u64, now: u64) -> Left {
        self.line.leave(id(who), ticks(keep).into(), at(now)).answer
    }
}

fn mutex(who: u8) -> Ask {
    Ask::new(who, 1, 1)
}

fn token(standing: &Standing) -> Option<Token> {
    match standing {
        Standing::Held { token, .. } => *token,
        other => panic!("not held: {other:?}"),
    }
}

fn is_waiting(standing: &Standing) -> bool {
    matches!(standing, Standing::Waiting { .. })
}

#[test]
fn asking_again_is_one_claim_with_one_token() {
    let mut bench = Bench::default();
    let first = bench.enter(mutex(1), 0);
    assert_eq!(first, Standing::Held { token: Token::of_number(1), lease: ticks(3) });
    let again = bench.enter(mutex(1), 1);
    assert_eq!(token(&again), token(&first));
    assert_eq!(bench.line.entries.len(), 1);
    assert!(is_waiting(&bench.enter(mutex(2), 1)));
    assert!(is_waiting(&bench.enter(mutex(2), 1)));
    assert_eq!(bench.line.entries.len(), 2);
}

#[test]
fn a_claim_that_ended_comes_again_as_another_with_a_new_token() {
    let mut bench = Bench::default();
    let first = token(&bench.enter(mutex(1), 0));
    let step = bench.step(mutex(1), 3);
    assert!(token(&step.answer) > first);
    assert_eq!((step.removed, step.touched), (vec![id(1)], Some(id(1))), "removed first, then written anew");
}

#[test]
fn renewing_never_creates_never_shortens_and_never_resurrects() {
    let mut bench = Bench::default();
    assert_eq!(bench.renew(1, 5, 0), Renewal::Gone);
    assert!(bench.line.is_empty());
    bench.enter(mutex(1), 0);
    assert_eq!(bench.renew(1, 1, 0), Renewal::Renewed { lease: ticks(3) });
    assert_eq!(bench.renew(1, 0, 1), Renewal::Renewed { lease: ticks(2) });
    assert_eq!(bench.renew(1, 4, 2), Renewal::Renewed { lease: ticks(4) });
    assert_eq!(bench.renew(1, 9, 6), Renewal::Gone, "it ends at its last moment, not after it");
    assert!(bench.line.is_empty());
}

#[test]
fn a_waiting_claim_is_not_renewed_and_not_changed_by_trying() {
    let mut bench = Bench::default();
    bench.enter(mutex(1), 0);
    bench.enter(mutex(2), 0);
    let before = bench.line.entries.clone();
    assert_eq!(bench.renew(2, 9, 1), Renewal::Gone);
    assert_eq!(bench.line.entries, before);
}

#[test]
fn a_claim_that_left_is_not_renewed_and_not_entered_again() {
    let mut bench = Bench::default();
    bench.enter(mutex(1), 0);
    assert_eq!(bench.leave(1, 5, 1), Left::Released);
    assert_eq!(bench.renew(1, 9, 2), Renewal::Gone);
    assert_eq!(bench.enter(mutex(1), 2), Standing::Refused { retry_after: Some(ticks(4)) });
    assert_eq!(bench.leave(1, 9, 2), Left::NotHeld, "leaving again does not keep it longer");
    assert!(is_waiting(&bench.enter(mutex(2), 4)), "the name stays taken");
    let next = bench.enter(mutex(2), 6);
    assert!(token(&next) > Token::of_number(1), "and is free when its time is over");
}

#[test]
fn a_kept_name_is_freed_at_once_by_leaving_without_keeping() {
    let mut bench = Bench::default();
    bench.enter(mutex(1), 0);
    bench.leave(1, 9, 0);
    bench.enter(mutex(2), 0);
    let step = bench.line.leave(id(1), ticks(0).into(), at(1));
    assert_eq!((step.answer, step.removed, step.admitted), (Left::NotHeld, vec![id(1)], vec![id(2)]));
}

#[test]
fn a_waiting_claim_that_leaves_keeps_nothing() {
    let mut bench = Bench::default();
    bench.enter(mutex(1), 0);
    bench.enter(mutex(2), 0);
    assert_eq!(bench.leave(2, 9, 0), Left::Released);
    assert_eq!(bench.line.entries.len(), 1);
    assert_eq!(bench.leave(2, 9, 0), Left::NotHeld);
}

#[test]
fn leaving_when_absent_changes_nothing() {
    let mut bench = Bench::default();
    bench.enter(mutex(1), 0);
    let before = bench.line.entries.clone();
    let step = bench.line.leave(id(7), ticks(3).into(), at(1));
    assert_eq!(step.answer, Left::NotHeld);
    assert!(!step.changed() && step.admitted.is_empty());
    assert_eq!(bench.line.entries, before);
}

#[test]
fn a_refused_claim_leaves_nothing_behind() {
    let mut bench = Bench::default();
    bench.enter(mutex(1), 0);
    let step = bench.step(mutex(2).now(), 1);
    assert_eq!(step.answer, Standing::Refused { retry_after: Some(ticks(2)) });
    assert!(!step.changed());
    assert_eq!(bench.line.entries.len(), 1);
}

#[test]
fn a_waiting_claim_that_loses_patience_leaves_the_line_and_lets_others_pass() {
    let mut bench = Bench::default();
    bench.enter(Ask::new(1, 1, 2), 0);
    bench.enter(Ask::new(2, 2, 2), 0);
    assert!(is_waiting(&bench.enter(Ask::new(3, 1, 2), 0)), "nobody gets ahead of a waiting writer");
    let step = bench.step(Ask::new(2, 2, 2).now(), 0);
    assert_eq!(step.answer, Standing::Refused { retry_after: Some(ticks(3)) });
    assert_eq!((step.removed, step.admitted), (vec![id(2)], vec![id(3)]));
}

#[test]
fn a_smaller_weight_keeps_token_and_place_and_wakes_all_who_fit() {
    let mut bench = Bench::default();
    let first = token(&bench.enter(Ask::new(1, 3, 3), 0));
    for who in 2..=4 {
        bench.enter(Ask::new(who, 1, 3), 0);
    }
    let step = bench.step(Ask::new(1, 1, 3), 1);
    assert_eq!(token(&step.answer), first);
    assert_eq!(step.admitted, [id(2), id(3)], "and nobody else");
    assert_eq!(bench.line.entries[0].id, id(1));
}

#[test]
fn a_larger_weight_or_another_shape_is_a_mismatch_and_changes_nothing() {
    let mut bench = Bench::default();
    bench.enter(Ask::new(1, 1, 2), 0);
    assert_eq!(bench.refusal(Ask::new(1, 2, 2), 1), ErrorKind::Mismatch);
    assert_eq!(bench.refusal(Ask::new(1, 1, 3), 1), ErrorKind::Mismatch);
    assert_eq!(bench.refusal(Ask::new(2, 1, 1), 1), ErrorKind::Mismatch);
    let other = Ask { kind: crate::claim::LockKind::ReadWrite, ..Ask::new(2, 1, 2) };
    assert_eq!(bench.refusal(other, 1), ErrorKind::Mismatch);
    bench.leave(1, 2, 1);
    assert_eq!(bench.refusal(other, 2), ErrorKind::Mismatch, "a kept name is still what it was");
    assert!(token(&bench.enter(other, 3)).is_some(), "an ended line may become another");
}

#[test]
fn a_dead_waiter_does_not_stall_the_line() {
    let mut bench = Bench::default();
    bench.enter(Ask { lease: 4, ..mutex(1) }, 0);
    bench.enter(mutex(2), 0);
    bench.enter(mutex(3), 1);
    let answer = bench.enter(mutex(3), 2);
    let expected = Standing::Waiting { ahead: 1, behind: Some(1), moves_in: Some(ticks(3)) };
    assert_eq!(answer, expected, "the second asked no more, and is out");
    let step = bench.line.leave(id(1), ticks(0).into(), at(3));
    assert_eq!(step.admitted, [id(3)]);
}

#[test]
fn a_release_wakes_every_reader_that_came_in_and_no_writer() {
    let mut bench = Bench::default();
    bench.enter(Ask::new(1, 9, 9), 0);
    for who in 2..=4 {
        bench.enter(Ask::new(who, 1, 9), 0);
    }
    bench.enter(Ask::new(5, 9, 9), 0);
    bench.enter(Ask::new(6, 1, 9), 0);
    let step = bench.line.leave(id(1), ticks(0).into(), at(1));
    assert_eq!(step.admitted, [id(2), id(3), id(4)]);
}

#[test]
fn whoever_comes_by_wakes_those_whom_an_ended_claim_kept_out() {
    let mut bench = Bench::default();
    bench.enter(Ask { lease: 1, ..mutex(1) }, 0);
    for _ in 0..2 {
        bench.enter(mutex(2), 1);
    }
    // The first ends at two ticks; an unrelated leave finds it.
    let step = bench.line.leave(id(9), ticks(0).into(), at(2));
    assert_eq!((step.answer, step.removed, step.admitted), (Left::NotHeld, vec![id(1)], vec![id(2)]));
}

#[test]
fn a_break_with_the_rest_of_the_lease_lets_nobody_in_before_the_holders_deadline() {
    let mut bench = Bench::default();
    bench.enter(mutex(1), 0);
    bench.enter(mutex(2), 0);
    bench.leave(1, 2, 1);
    assert_eq!(bench.renew(1, 9, 1), Renewal::Gone);
    assert!(is_waiting(&bench.enter(mutex(2), 1)));
    assert!(is_waiting(&bench.enter(mutex(2), 2)));
    assert!(token(&bench.enter(mutex(2), 3)).is_some());
}

#[test]
fn extreme_numbers_and_times_do_not_panic() {
    let extremes = [0, 1, u64::MAX - 1, u64::MAX].map(crate::time::Moment::from_nanos);
    let keeps = [std::time::Duration::ZERO, std::time::Duration::MAX];
    for now in extremes {
        for later in extremes {
            for keep in keeps {
                let mut line = Line::default();
                for (who, weight) in [(1, u32::MAX), (2, 1), (3, u32::MAX)] {
                    let claim = Claim { patience: Patience::Queue, ..Ask::new(who, weight, u32::MAX).claim() };
                    line.enter(&claim, now, u64::MAX - 9 + u64::from(who)).unwrap();
                }
                line.renew(id(1), keep, later);
                line.leave(id(1), keep.into(), later);
                line.leave(id(2), keep.into(), now);
                line.view(&crate::name::Name::new("a").unwrap(), later);
            }
        }
    }
}

#[test]
fn a_broken_hold_keeps_the_rest_of_its_lease_and_no_more() {
    let mut bench = Bench::default();
    bench.enter(mutex(1), 0);
    let end = bench.line.get(id(1)).unwrap().expires;
    assert_eq!(bench.line.leave(id(1), Keep::Lease, at(1)).answer, Left::Released);
    let entry = bench.line.get(id(1)).unwrap();
    assert!(entry.left && entry.expires == end);
    assert_eq!(bench.renew(1, 99, 1), Renewal::Gone);
    assert!(is_waiting(&bench.enter(mutex(2), 1)));
    assert_eq!(bench.line.leave(id(2), Keep::Lease, at(1)).removed, [id(2)], "one that only waited is out at once");
}
