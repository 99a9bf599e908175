//! Runs, judged: what is promised is kept, and where nobody holds anything that is seen.

use std::path::PathBuf;
use std::sync::Arc;

use lockkeeper_verify::arena::Arena;
use lockkeeper_verify::check::check;
use lockkeeper_verify::judgement::{Judgement, Outcome, Promise};
use lockkeeper_verify::plan::{Nemesis, Plan, Work};
use lockkeeper_verify::run::{WorkerProgram, run};

use crate::story::plan;

async fn judged(mut plan: Plan) -> Judgement {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let arena = Arena::start(&plan.target, &plan.nemesis, &folder).unwrap();
    let program = WorkerProgram { program: PathBuf::from(env!("CARGO_BIN_EXE_verify-worker")), args: Vec::new() };
    run(&mut plan, arena, &program, &folder, Arc::new(|_| {})).await.unwrap();
    let judged = check(&folder).unwrap();
    let again = check(&folder).unwrap();
    let json = |judgement| serde_json::to_string(judgement).unwrap();
    assert_eq!(json(&judged), json(&again), "the same folder gives the same bytes");
    judged
}

fn with(judgement: &Judgement, outcome: Outcome) -> Vec<&str> {
    judgement.checks.iter().filter(|finding| finding.outcome == outcome).map(|finding| finding.check.as_str()).collect()
}

#[tokio::test]
async fn every_kind_of_work_keeps_what_is_promised() {
    for work in [Work::Mutex, Work::ReadWrite, Work::Semaphore, Work::Multi, Work::Reentrant] {
        let judged = judged(plan(work)).await;
        assert!(judged.passed(), "{work:?}: {judged:#?}");
        assert_eq!((judged.promise, judged.figures.faults), (Promise::Holds, 0));
        for check in ["holds-exclude", "held-is-true", "nothing-is-left", "everybody-is-answered"] {
            assert!(with(&judged, Outcome::Passed).contains(&check), "{work:?}: {check} in {judged:#?}");
        }
    }
}

#[tokio::test]
async fn a_mutex_has_something_for_nearly_every_check() {
    let judged = judged(plan(Work::Mutex)).await;
    let not_run = with(&judged, Outcome::NotRun);
    // Nobody loses its hold, nobody only reads and there is no server; and on a busy machine few may have waited.
    let may_be_without =
        ["lost-is-sticky", "readers-wait-behind-writers", "recovers-in-time", "fair-enough", "woken-by-push"];
    assert!(not_run.iter().all(|check| may_be_without.contains(check)), "{judged:#?}");
}

#[tokio::test]
async fn where_nobody_holds_anything_that_is_seen() {
    let judged = judged(plan(Work::Nothing)).await;
    let failed = with(&judged, Outcome::Failed);
    for check in ["holds-exclude", "mutex-is-linearizable", "bare-loses-nothing", "deadline-loses-nothing"] {
        assert!(failed.contains(&check), "{check} in {judged:#?}");
    }
}

#[tokio::test]
async fn holders_that_are_stopped_or_killed_are_judged_by_what_was_promised() {
    let nemesis = vec![Nemesis::PauseHolder, Nemesis::KillHolder];
    let judged = judged(Plan { nemesis, for_ms: 8_000, lease_ms: 500, ..plan(Work::Mutex) }).await;
    assert_eq!(judged.promise, Promise::PassesOn);
    assert!(judged.figures.faults > 0);
    // How long things take is not for a busy machine to judge; what is safe is.
    let failed: Vec<&str> = with(&judged, Outcome::Failed);
    let of_time = ["nobody-is-stuck", "holds-last", "woken-by-push", "fair-enough", "everybody-is-answered"];
    assert!(failed.iter().all(|check| of_time.contains(check)), "{judged:#?}");
}
