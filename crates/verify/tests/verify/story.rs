//! A run and what is in its folder then, as the tests want to see it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockkeeper_verify::arena::Arena;
use lockkeeper_verify::history::{Clutter, Event, Fault, Guard, Life, Register, Step, Verdict, Written};
use lockkeeper_verify::plan::{MadeOf, Plan, Promised, Work};
use lockkeeper_verify::run::{Progress, WorkerProgram, run};
use serde::de::DeserializeOwned;

/// A short plan for three workers of two tasks on two locks.
pub fn plan(work: Work) -> Plan {
    Plan {
        target: "sqlite".to_owned(),
        nemesis: Vec::new(),
        work,
        for_ms: 2_000,
        seed: 7,
        workers: 3,
        tasks: 2,
        locks: 2,
        // Long: on a busy machine no hold of a run without faults may be lost.
        lease_ms: 20_000,
        delay_ms: 0,
        think_us: 200,
        every_ms: None,
        mutant: None,
        store: Promised::default(),
        made_of: MadeOf { lockkeeper: String::new(), commit: None, server: None, began: String::new() },
    }
}

/// What a run left in its folder.
pub struct Story {
    pub plan: Plan,
    pub workers: Vec<(Life, Vec<Event>)>,
    pub registers: Vec<Register>,
    pub faults: Vec<Fault>,
    pub after: Clutter,
    told: u64,
    acknowledged: u64,
}

/// Runs the plan.
pub async fn story(mut plan: Plan) -> Story {
    let place = tempfile::tempdir().unwrap();
    // Deep enough that the path of the socket would be too long for the system.
    let folder = place.path().join("a-folder-with-a-name-that-is-long".repeat(3)).join("run");
    let arena = Arena::start(&plan.target, &plan.nemesis, &folder).unwrap();
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
    assert!(!folder.join("registers.sock").exists());
    Story {
        plan: serde_json::from_slice(&std::fs::read(folder.join("plan.json")).unwrap()).unwrap(),
        workers: lives(&folder),
        registers: lines(&folder.join("registers.jsonl"), false),
        faults: lines(&folder.join("faults.jsonl"), false),
        after: serde_json::from_slice(&std::fs::read(folder.join("after.json")).unwrap()).unwrap(),
        told: told.load(Ordering::SeqCst),
        acknowledged: acknowledged.load(Ordering::SeqCst),
    }
}

fn lives(folder: &Path) -> Vec<(Life, Vec<Event>)> {
    let mut lives = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let numbers = name.strip_prefix("worker-").and_then(|name| name.strip_suffix(".jsonl"));
        if let Some((worker, life)) = numbers.and_then(|numbers| numbers.split_once('-')) {
            let life = Life { worker: worker.parse().unwrap(), life: life.parse().unwrap() };
            lives.push((life, lines(&folder.join(&name), true)));
        }
    }
    lives.sort_by_key(|(life, _)| *life);
    lives
}

/// The lines of a file; the last one may be cut short if its writer was killed.
fn lines<T: DeserializeOwned>(path: &Path, may_be_cut: bool) -> Vec<T> {
    let text = std::fs::read_to_string(path).unwrap();
    let whole = if may_be_cut { text.rfind('\n').map_or("", |end| &text[..end]) } else { &text };
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

impl Story {
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.workers.iter().flat_map(|(_, events)| events)
    }

    pub fn count(&self, which: impl Fn(&Event) -> bool) -> usize {
        self.events().filter(|event| which(event)).count()
    }

    pub fn holds(&self) -> usize {
        self.count(|event| matches!(event, Event::Held { .. }))
    }

    /// Acknowledged writes and the value in the end, of all registers with this guard together.
    pub fn writes(&self, guard: Guard) -> (u64, u64) {
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
    pub fn is_complete(&self) {
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
    pub fn registers_agree(&self) {
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

    pub fn nothing_lost(&self, guards: &[Guard]) {
        for &guard in guards {
            let (acknowledged, value) = self.writes(guard);
            assert!(acknowledged > 10, "{guard:?} was written {acknowledged} times");
            assert_eq!(acknowledged, value, "{guard:?} lost updates");
        }
    }

    pub fn nothing_left(&self) {
        assert_eq!(self.after.left, Vec::new());
    }
}

/// All guards.
pub const ALL: [Guard; 4] = [Guard::Bare, Guard::Deadline, Guard::FencedWrites, Guard::Fenced];
