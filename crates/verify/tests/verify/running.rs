//! Runs without a nemesis: what workers and registers wrote down agrees, and nothing is lost or left.

use lockkeeper_verify::history::{By, Event, Guard, LockKind, Step, Verdict};
use lockkeeper_verify::plan::{Plan, Work};

use crate::story::{ALL, plan, story};

#[tokio::test]
async fn mutexes_lose_nothing() {
    let story = story(plan(Work::Mutex)).await;
    story.is_complete();
    story.registers_agree();
    story.nothing_lost(&ALL);
    story.nothing_left();
    assert!(story.plan.store.tokens && story.plan.store.scheme == "sqlite");
    assert!(!story.plan.made_of.began.is_empty());
    for (life, events) in &story.workers {
        assert!(events.iter().any(|event| matches!(event, Event::Held { token: Some(_), .. })), "{life} came in");
    }
    let by = |how| story.count(|event| matches!(event, Event::Held { by, .. } if *by == how));
    assert!(by(By::Push) > 0, "somebody was woken");
    assert!(by(By::Asking) > 0, "somebody found it free");
    assert!(story.count(|event| matches!(event, Event::Called { .. })) > 0);
    assert_eq!(story.count(|event| matches!(event, Event::Lost { .. })), 0);
    assert_eq!(story.faults, Vec::new());
}

#[tokio::test]
async fn nothing_loses_heavily() {
    let story = story(plan(Work::Nothing)).await;
    story.is_complete();
    story.registers_agree();
    let (acknowledged, value) = story.writes(Guard::Bare);
    assert!(acknowledged > 100 && value < acknowledged * 9 / 10, "{value} of {acknowledged} are there");
    assert!(story.registers.iter().all(|entry| entry.token.is_none()));
}

#[tokio::test]
async fn readers_and_writers_lose_nothing() {
    let story = story(plan(Work::ReadWrite)).await;
    story.is_complete();
    story.registers_agree();
    story.nothing_lost(&ALL);
    story.nothing_left();
    for kind in [LockKind::Read, LockKind::Write] {
        assert!(story.count(|event| matches!(event, Event::Asked(asked) if asked.kind == kind)) > 10);
    }
    assert!(story.registers.iter().any(|entry| entry.shared && entry.step == Step::Enter));
    assert!(story.registers.iter().all(|entry| entry.answer == Verdict::Done), "nobody was stale");
}

#[tokio::test]
async fn permits_are_taken_without_registers() {
    let story = story(plan(Work::Semaphore)).await;
    story.is_complete();
    story.nothing_left();
    assert!(story.registers.is_empty());
    assert!(story.holds() > 10);
}

#[tokio::test]
async fn several_at_once_lose_nothing() {
    let story = story(Plan { locks: 4, ..plan(Work::Multi) }).await;
    story.is_complete();
    story.registers_agree();
    story.nothing_lost(&ALL);
    story.nothing_left();
    let holds = story.holds();
    let named = story.count(|event| matches!(event, Event::Held { lock: Some(_), .. }));
    assert!(holds > 10 && named == holds, "each of two has a line: {named} of {holds}");
}

#[tokio::test]
async fn owners_that_come_in_again_lose_nothing() {
    let story = story(plan(Work::Reentrant)).await;
    story.is_complete();
    story.registers_agree();
    story.nothing_lost(&ALL);
    story.nothing_left();
    assert!(story.count(|event| matches!(event, Event::Asked(asked) if asked.again)) > 10);
}
