//! How runs end that do not go to their end: nothing is left running, and it is said what was wrong.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockkeeper_rig::Identity;
use lockkeeper_verify::arena::Arena;
use lockkeeper_verify::history::Event;
use lockkeeper_verify::plan::{Nemesis, Plan, Work};
use lockkeeper_verify::run::{WorkerProgram, run};

use crate::story::plan;

/// Long enough for anything that happens at once, on any machine.
const SOON: Duration = Duration::from_secs(30);

fn long_plan() -> Plan {
    Plan { for_ms: 300_000, ..plan(Work::Mutex) }
}

/// The processes of the first lives, once all have begun.
async fn workers(folder: &Path, count: u32) -> Vec<Identity> {
    let end = Instant::now() + SOON;
    loop {
        let begun = |worker| {
            let text = std::fs::read_to_string(folder.join(format!("worker-{worker}-0.jsonl"))).ok()?;
            match serde_json::from_str(text.lines().next()?).ok()? {
                Event::Began { pid, .. } => Identity::of(pid),
                other => panic!("{other:?}"),
            }
        };
        let begun: Option<Vec<Identity>> = (0..count).map(begun).collect();
        if let Some(begun) = begun {
            return begun;
        }
        assert!(Instant::now() < end, "the workers do not begin");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_nobody_behind() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let mut plan = Plan { nemesis: vec![Nemesis::PauseHolder], ..long_plan() };
    let count = plan.workers;
    let arena = Arena::start("sqlite", &plan.nemesis, &folder).unwrap();
    let program = WorkerProgram { program: PathBuf::from(env!("CARGO_BIN_EXE_verify-worker")), args: Vec::new() };
    let workers = tokio::select! {
        ran = run(&mut plan, arena, &program, &folder, Arc::new(|_| {})) => panic!("{ran:?}"),
        workers = workers(&folder, count) => workers,
    };
    assert_eq!(workers.len(), count as usize);
    for worker in workers {
        assert!(worker.wait_gone(SOON), "{worker:?} still runs");
    }
}

#[tokio::test]
async fn a_worker_that_ends_by_itself_is_a_trouble_that_says_what_it_said() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let arena = Arena::start("sqlite", &[], &folder).unwrap();
    let args = ["-c", "echo 'it has no mind to' >&2; exit 3"].map(str::to_owned).into();
    let program = WorkerProgram { program: PathBuf::from("/bin/sh"), args };
    let trouble = run(&mut long_plan(), arena, &program, &folder, Arc::new(|_| {})).await.unwrap_err().to_string();
    assert!(trouble.starts_with("worker "), "{trouble}");
    assert!(trouble.contains("exit status: 3") && trouble.contains("it has no mind to"), "{trouble}");
}

#[tokio::test]
async fn a_folder_that_has_a_history_is_not_written_over() {
    let place = tempfile::tempdir().unwrap();
    let arena = Arena::start("sqlite", &[], place.path()).unwrap();
    let [plan, registers] = ["plan.json", "registers.jsonl"].map(|name| place.path().join(name));
    std::fs::write(&plan, "what was to be\n").unwrap();
    std::fs::write(&registers, "what was\n").unwrap();
    let program = WorkerProgram { program: PathBuf::from("/bin/false"), args: Vec::new() };
    let ran = run(&mut long_plan(), arena, &program, place.path(), Arc::new(|_| {})).await;
    assert!(ran.unwrap_err().to_string().contains("registers.jsonl"));
    assert_eq!(std::fs::read_to_string(&plan).unwrap(), "what was to be\n");
    assert_eq!(std::fs::read_to_string(&registers).unwrap(), "what was\n");
}
