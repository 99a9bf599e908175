//! Small histories, and what is drawn of them.

use super::*;
use crate::history::{Asked, By, Lived};
use crate::report::sample;

const MS: u64 = 1_000_000;

fn life(worker: u32) -> Life {
    Life { worker, life: 0 }
}

fn asked(at: u64, op: u64, lock: &str) -> Event {
    Event::Asked(Asked { at: at * MS, op, lock: lock.to_owned(), kind: LockKind::Mutex, again: false })
}

fn held(at: u64, op: u64, token: u64) -> Event {
    let deadline = (at + 100) * MS;
    Event::Held {
        at: at * MS,
        op,
        lock: None,
        claim: "c".to_owned(),
        token: Some(token.to_string()),
        deadline,
        by: By::Push,
    }
}

fn left(at: u64, op: u64) -> Event {
    Event::Left { sent: at * MS, at: (at + 1) * MS, op, answer: "released".to_owned() }
}

fn drawn(lives: &[Vec<Event>], registers: &[Register], faults: &[Fault]) -> Timeline {
    let lived =
        |(at, events): (usize, &Vec<Event>)| Lived { life: life(at as u32), events: events.clone(), cut_short: false };
    let lives = lives.iter().enumerate().map(lived).collect();
    let (registers, faults) = (registers.to_vec(), faults.to_vec());
    draw(&History { plan: sample::plan(), lives, registers, faults, after: None })
}

fn sorts(timeline: &Timeline) -> Vec<(u32, u64, Sort)> {
    let of = |lane: &Lane| lane.marks.iter().map(|mark| (lane.worker, mark.at / 1_000, mark.sort)).collect::<Vec<_>>();
    timeline.lanes.iter().flat_map(of).collect()
}

#[test]
fn holds_that_take_turns_are_drawn_side_by_side() {
    let one = vec![asked(10, 1, "b"), held(11, 1, 7), asked(12, 2, "a"), left(20, 1), held(21, 2, 8), left(30, 2)];
    let two = vec![asked(15, 1, "b"), held(20, 1, 9), left(31, 1)];
    let timeline = drawn(&[one, two], &[], &[]);
    assert_eq!((timeline.length, &timeline.locks[..]), (22_000, &["a".to_owned(), "b".to_owned()][..]));
    let bar = |lane: usize, at: usize| {
        let bar = &timeline.lanes[lane].bars[at];
        (bar.row, bar.asked, bar.held, bar.ended, bar.lock)
    };
    assert_eq!(bar(0, 0), (0, 0, Some(1_000), 10_000, 1));
    assert_eq!(
        bar(0, 1),
        (1, 2_000, Some(11_000), 20_000, 0),
        "it was asked for while another was held: a row of its own"
    );
    assert_eq!(bar(1, 0), (0, 5_000, Some(10_000), 21_000, 1));
    assert_eq!((timeline.lanes[0].rows, timeline.lanes[1].rows, timeline.left_out), (2, 1, 0));
    assert_eq!(sorts(&timeline), []);
    let said = &timeline.lanes[1].bars[0].said;
    assert_eq!(said, "worker 1.0 op 1 of b\nwaited 5.0 ms, held for 11.0 ms, left: released\ntoken 9 by push");
}

#[test]
fn two_at_once_are_marked_and_a_deadline_ends_belief() {
    let one = vec![asked(0, 1, "a"), held(0, 1, 7), left(500, 1)];
    let two = vec![asked(50, 1, "a"), held(60, 1, 8), left(70, 1), asked(80, 2, "a"), held(120, 2, 9), left(130, 2)];
    let timeline = drawn(&[one, two], &[], &[]);
    assert_eq!(sorts(&timeline), [(1, 60, Sort::Two)], "at 120 the first one's deadline of 100 has passed");
}

#[test]
fn what_is_overwritten_refused_lost_and_killed_is_marked() {
    let line = |at: u64, worker: u32, step, value, answer| Register {
        at: at * MS,
        lock: "a".to_owned(),
        guard: Guard::Fenced,
        life: life(worker),
        op: 1,
        step,
        shared: false,
        token: None,
        value,
        answer,
    };
    let registers = [
        line(10, 0, Step::Write, 1, Verdict::Done),
        line(11, 1, Step::Write, 1, Verdict::Done),
        line(12, 1, Step::Read, 1, Verdict::Done),
        line(13, 0, Step::Write, 2, Verdict::Stale),
        line(14, 1, Step::Write, 2, Verdict::Done),
    ];
    let one = vec![
        asked(0, 1, "a"),
        held(0, 1, 7),
        Event::Lost { at: 90 * MS, op: 1, why: "expired".to_owned() },
        Event::Left { sent: 91 * MS, at: 92 * MS, op: 1, answer: "not-held".to_owned() },
    ];
    let two = vec![asked(200, 1, "a"), held(201, 1, 8)];
    let hurt = |at: u64, id, nemesis, on| Fault::Hurt { at: at * MS, done: None, id, nemesis, on };
    let faults = [
        hurt(5, 1, Nemesis::PauseHolder, On::Worker { life: life(0) }),
        Fault::Healed { at: 80 * MS, id: 1 },
        hurt(210, 2, Nemesis::KillHolder, On::Worker { life: life(1) }),
        hurt(220, 3, Nemesis::Cut, On::Connections),
    ];
    let timeline = drawn(&[one, two], &registers, &faults);
    let expected = [(0, 13, Sort::Refused), (0, 90, Sort::Lost), (1, 11, Sort::Overwritten), (1, 210, Sort::Killed)];
    assert_eq!(sorts(&timeline), expected);
    let window = |from, to, said: &str| Window { from, to, said: said.to_owned() };
    assert_eq!(timeline.lanes[0].windows, [window(5_000, 80_000, "pause-holder worker 0.0")]);
    assert_eq!(timeline.windows, [window(220_000, 220_000, "cut connections")], "never healed: until the end");
    let last = &timeline.lanes[1].bars[0];
    assert_eq!((last.ended, last.said.contains("killed")), (210_000, true));
}

#[test]
fn of_very_many_the_telling_ones_are_drawn() {
    let many = DRAWN as u64 * 3;
    let mut events = Vec::new();
    for op in 0..many {
        // One is longer than all others, and one is lost.
        let long = if op == 77 { 5 } else { 0 };
        events.extend([asked(op * 10, op, "a"), held(op * 10 + 1, op, op)]);
        if op == 99 {
            events.push(Event::Lost { at: (op * 10 + 2) * MS, op, why: "broken".to_owned() });
        }
        events.push(left(op * 10 + 2 + long, op));
    }
    let timeline = drawn(&[events.clone()], &[], &[]);
    assert_eq!((timeline.lanes[0].bars.len(), timeline.left_out), (DRAWN, many - DRAWN as u64));
    for op in [77, 99] {
        let said = format!("worker 0.0 op {op} of");
        assert!(timeline.lanes[0].bars.iter().any(|bar| bar.said.starts_with(&said)), "{said}");
    }
    assert_eq!(timeline, drawn(&[events], &[], &[]), "the same history is drawn in the same way");
}

#[test]
fn nothing_is_drawn_of_nothing() {
    assert_eq!(drawn(&[], &[], &[]), Timeline::default());
}
