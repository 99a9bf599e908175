//! Runs without a nemesis: what workers and registers wrote down agrees, and nothing is lost or left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockkeeper_verify::arena::Arena;
use lockkeeper_verify::history::{By, Clutter, Event, Guard, Life, LockKind, Register, Step, Verdict, Written};
use lockkeeper_verify::plan::{MadeOf, Plan, Promised, Work};
use lockkeeper_verify::run::{Progress, WorkerProgram, run};
use serde::de::DeserializeOwned;

/// A short plan for three workers of two tasks on two locks.
fn plan(work: Work) -> Plan {
    Plan {
        target: "sqlite".to_owned(),
        nemesis: Vec::new(),
        work,
        for_ms: 2_000,
        seed: 7,
        workers: 3,
        tasks: 2,
        locks: 2,
        lease_ms: 2_000,
        delay_ms: 0,
        think_us: 200,
        mutant: None,
        store: Promised {
            scheme: String::new(),
            tokens: false,
            fifo: false,
            push: false,
            has_time: false,
            expiry_slack_ms: 0,
            durable: false,
        },
        made_of: MadeOf { lockkeeper: String::new(), commit: None, server: None, began: String::new() },
    }
}

/// What a run left in its folder.
struct Story {
    plan: Plan,
    workers: Vec<(Life, Vec<Event>)>,
    registers: Vec<Register>,
    after: Clutter,
    told: u64,
    acknowledged: u64,
}

async fn story(work: Work) -> Story {
    story_of(plan(work)).await
}

async fn story_of(mut plan: Plan) -> Story {
    let place = tempfile::tempdir().unwrap();
    // Deep enough that the path of the socket alone would be too long for the system.
    let folder = place.path().join("a-folder-with-a-name-that-is-long".repeat(3)).join("run");
    let arena = Arena::start("sqlite", &[], place.path()).unwrap();
    let program = WorkerProgram { program: PathBuf::from(env!("CARGO_BIN_EXE_verify-worker")), args: Vec::new() };
    let (told, acknowledged) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let watch = {
        let (told, acknowledged) = (told.clone(), acknowledged.clone());
        move |progress: &Progress| {
            told.fetch_add(1, Ordering::SeqCst);
            acknowledged.store(progress.acknowledged, Ordering::SeqCst);
        }
    };
    run(&mut plan, arena, &program, &folder, Arc::new(watch)).await.unwrap();
    let workers = (0..plan.workers).map(|worker| {
        let life = Life { worker, life: 0 };
        (life, lines(&folder.join(format!("worker-{worker}-0.jsonl"))))
    });
    assert!(!folder.join("registers.sock").exists());
    Story {
        plan: serde_json::from_slice(&std::fs::read(folder.join("plan.json")).unwrap()).unwrap(),
        workers: workers.collect(),
        registers: lines(&folder.join("registers.jsonl")),
        after: serde_json::from_slice(&std::fs::read(folder.join("after.json")).unwrap()).unwrap(),
        told: told.load(Ordering::SeqCst),
        acknowledged: acknowledged.load(Ordering::SeqCst),
    }
}

fn lines<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

impl Story {
    fn events(&self) -> impl Iterator<Item = &Event> {
        self.workers.iter().flat_map(|(_, events)| events)
    }

    fn count(&self, which: impl Fn(&Event) -> bool) -> usize {
        self.events().filter(|event| which(event)).count()
    }

    fn holds(&self) -> usize {
        self.count(|event| matches!(event, Event::Held { .. }))
    }

    /// Acknowledged writes and the value in the end, of all registers with this guard together.
    fn writes(&self, guard: Guard) -> (u64, u64) {
        let mut registers: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for entry in &self.registers {
            if (entry.guard, entry.step, entry.answer) == (guard, Step::Write, Verdict::Done) {
                let register = registers.entry(&entry.lock).or_default();
                *register = (register.0 + 1, entry.value);
            }
        }
        registers.values().fold((0, 0), |sum, register| (sum.0 + register.0, sum.1 + register.1))
    }

    /// Every worker began first and ended last, and every acquisition has its beginning and its end.
    fn is_complete(&self) {
        for (life, events) in &self.workers {
            assert!(matches!(events.first(), Some(Event::Began { life: began, .. }) if began == life), "{life}");
            assert!(matches!(events.last(), Some(Event::Ended { .. })), "{life}");
            let mut open = BTreeMap::new();
            for event in events {
                match event {
                    Event::Asked(asked) => {
                        open.insert(asked.op, 1);
                    }
                    Event::Held { op, .. } => assert!(open.insert(*op, 2).is_some()),
                    Event::NotHeld { op, .. } => assert_eq!(open.remove(op), Some(1)),
                    Event::Left { op, .. } => assert_eq!(open.remove(op), Some(2)),
                    _ => {}
                }
            }
            assert!(open.is_empty(), "{life} has not finished {open:?}");
        }
        assert!(self.told >= 2, "somebody watched");
        let taken = self.count(|event| matches!(event, Event::Left { .. }));
        assert_eq!(self.acknowledged, taken as u64);
    }

    /// What workers say they wrote is what registers say was written.
    fn registers_agree(&self) {
        let mut said: Vec<_> = Vec::new();
        for (life, events) in &self.workers {
            for event in events {
                if let Event::Wrote { op, lock, guard, read, answer: Written::Done, .. } = event {
                    said.push((*life, *op, lock.clone(), *guard, read + 1));
                }
            }
        }
        let writes = self.registers.iter().filter(|entry| entry.step == Step::Write && entry.answer == Verdict::Done);
        let mut written: Vec<_> =
            writes.map(|entry| (entry.life, entry.op, entry.lock.clone(), entry.guard, entry.value)).collect();
        said.sort();
        written.sort();
        assert_eq!(said, written);
    }

    fn nothing_lost_or_left(&self, guards: &[Guard]) {
        for &guard in guards {
            let (acknowledged, value) = self.writes(guard);
            assert!(acknowledged > 10, "{guard:?} was written {acknowledged} times");
            assert_eq!(acknowledged, value, "{guard:?} lost updates");
        }
        assert_eq!(self.after.left, Vec::new());
        assert_eq!(self.count(|event| matches!(event, Event::Lost { .. })), 0);
    }
}

const ALL: [Guard; 4] = [Guard::Bare, Guard::Deadline, Guard::FencedWrites, Guard::Fenced];

#[tokio::test]
async fn mutexes_lose_nothing() {
    let story = story(Work::Mutex).await;
    story.is_complete();
    story.registers_agree();
    story.nothing_lost_or_left(&ALL);
    assert!(story.plan.store.tokens && story.plan.store.scheme == "sqlite");
    assert!(!story.plan.made_of.began.is_empty());
    for (life, events) in &story.workers {
        assert!(events.iter().any(|event| matches!(event, Event::Held { token: Some(_), .. })), "{life} came in");
    }
    let by = |how| story.count(|event| matches!(event, Event::Held { by, .. } if *by == how));
    assert!(by(By::Push) > 0, "somebody was woken");
    assert!(by(By::Asking) > 0, "somebody found it free");
    assert!(story.count(|event| matches!(event, Event::Called { .. })) > 0);
}

#[tokio::test]
async fn nothing_loses_heavily() {
    let story = story(Work::Nothing).await;
    story.is_complete();
    story.registers_agree();
    let (acknowledged, value) = story.writes(Guard::Bare);
    assert!(acknowledged > 100 && value < acknowledged * 9 / 10, "{value} of {acknowledged} are there");
    assert!(story.registers.iter().all(|entry| entry.token.is_none()));
}

#[tokio::test]
async fn readers_and_writers_lose_nothing() {
    let story = story(Work::ReadWrite).await;
    story.is_complete();
    story.registers_agree();
    story.nothing_lost_or_left(&ALL);
    for kind in [LockKind::Read, LockKind::Write] {
        assert!(story.count(|event| matches!(event, Event::Asked(asked) if asked.kind == kind)) > 10);
    }
    assert!(story.registers.iter().any(|entry| entry.shared && entry.step == Step::Enter));
    assert!(story.registers.iter().all(|entry| entry.answer == Verdict::Done), "nobody was stale");
}

#[tokio::test]
async fn permits_are_taken_without_registers() {
    let story = story(Work::Semaphore).await;
    story.is_complete();
    story.nothing_lost_or_left(&[]);
    assert!(story.registers.is_empty());
    assert!(story.holds() > 10);
}

#[tokio::test]
async fn several_at_once_lose_nothing() {
    let story = story_of(Plan { locks: 4, ..plan(Work::Multi) }).await;
    story.is_complete();
    story.registers_agree();
    story.nothing_lost_or_left(&ALL);
    let holds = story.holds();
    let named = story.count(|event| matches!(event, Event::Held { lock: Some(_), .. }));
    assert!(holds > 10 && named == holds, "each of two has a line: {named} of {holds}");
}

#[tokio::test]
async fn owners_that_come_in_again_lose_nothing() {
    let story = story(Work::Reentrant).await;
    story.is_complete();
    story.registers_agree();
    story.nothing_lost_or_left(&ALL);
    assert!(story.count(|event| matches!(event, Event::Asked(asked) if asked.again)) > 10);
}
