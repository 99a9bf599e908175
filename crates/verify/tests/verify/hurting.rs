//! Runs with a nemesis: workers are killed and stopped, and fenced registers lose nothing.

use std::io::Write;
use std::time::Duration;

use lockkeeper_verify::history::{Event, Fault, Guard, On};
use lockkeeper_verify::plan::{Nemesis, Plan, Work};
use lockkeeper_verify::repro::{Asked, etcd_lock};

use crate::story::{Story, plan, story};

/// Did anybody ask for servers? If not, that is said aloud.
fn servers_wanted() -> bool {
    let wanted = lockkeeper_rig::wanted();
    if !wanted {
        // To the stream itself: the test harness swallows `eprintln!`.
        let line = "\nNOT RUN: runs of verify on a real redis or etcd; `cargo xtask test` runs them\n";
        drop(writeln!(std::io::stderr(), "{line}"));
    }
    wanted
}

async fn hurt(target: &str, nemesis: &[Nemesis]) -> Story {
    let plan = plan(Work::Mutex);
    story(Plan { target: target.to_owned(), nemesis: nemesis.to_vec(), for_ms: 8_000, lease_ms: 500, ..plan }).await
}

fn hits(story: &Story) -> Vec<On> {
    let on = |fault: &Fault| match fault {
        Fault::Hurt { on, .. } => Some(*on),
        Fault::Healed { .. } => None,
    };
    story.faults.iter().filter_map(on).collect()
}

#[tokio::test]
async fn a_holder_that_is_killed_is_followed_by_its_next_life() {
    let story = hurt("sqlite", &[Nemesis::KillHolder]).await;
    story.nothing_lost(&[Guard::Fenced]);
    story.nothing_left();
    let hits = hits(&story);
    assert!(hits.len() >= 2, "{hits:?}");
    for hit in &hits {
        let On::Worker { life: killed } = hit else { panic!("{hit:?}") };
        let events = &story.workers.iter().find(|(life, _)| life == killed).unwrap().1;
        assert!(!events.iter().any(|event| matches!(event, Event::Ended { .. })), "{killed} was killed");
        let next = story.workers.iter().find(|(life, _)| (life.worker, life.life) == (killed.worker, killed.life + 1));
        assert!(next.is_some_and(|(_, events)| events.len() > 1), "{killed} is followed");
    }
}

#[tokio::test]
async fn a_holder_that_is_stopped_finds_out_and_a_fence_keeps_it_out() {
    let story = hurt("sqlite", &[Nemesis::PauseHolder]).await;
    story.registers_agree();
    story.is_complete();
    story.nothing_lost(&[Guard::Fenced]);
    story.nothing_left();
    assert!(hits(&story).len() >= 2);
    assert!(story.count(|event| matches!(event, Event::Lost { .. } | Event::Seen { held: false, .. })) > 0);
}

#[tokio::test]
async fn a_redis_that_is_hurt_loses_nothing_behind_a_fence() {
    if !servers_wanted() {
        return;
    }
    let nemesis = [Nemesis::Cut, Nemesis::LoseReplies, Nemesis::HalfOpen, Nemesis::PauseStore, Nemesis::StepClient];
    let story = hurt("redis", &nemesis).await;
    story.registers_agree();
    story.is_complete();
    story.nothing_lost(&[Guard::Fenced]);
    story.nothing_left();
    assert!(hits(&story).len() >= 2);
}

/// How much etcd's own lock loses is the machine's business, in so short a time; ours loses nothing behind its fence.
#[tokio::test]
async fn the_published_schedule_takes_nothing_from_a_fence() {
    if !servers_wanted() {
        return;
    }
    let asked = Asked { time: Duration::from_secs(12), seed: 3 };
    let done = etcd_lock(&asked, &|_| ()).await.unwrap();
    assert_eq!(
        done.sides.iter().map(|side| side.side).collect::<Vec<_>>(),
        ["etcd-lock", "lockkeeper", "lockkeeper-fenced"]
    );
    assert!(done.sides.iter().all(|side| side.acknowledged > 0), "{done:?}");
    assert!(done.passed && done.sides[2].lost == 0, "{done:?}");
}
