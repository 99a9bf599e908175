//! Reading the folder of a run, whole and damaged, and the judgement of it.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::check::check;
use crate::check::sketch::{Sketch, take};
use crate::history::read::worker_events;
use crate::history::{Event, Guard, History, Life};
use crate::plan::Nemesis;

fn sketch() -> Sketch {
    let mut sketch = Sketch::new();
    for worker in 0..2 {
        sketch.note(worker, Event::Began { at: 0, life: Life { worker, life: 0 }, pid: 7 });
    }
    let op = sketch.hold(0, take(0, 10, 50));
    sketch.update(0, op, Guard::Bare, 0, 20);
    sketch.hold(1, take(5, 51, 90));
    sketch.hurt(Nemesis::Delay, 30, 40);
    sketch.end(100);
    sketch
}

fn lines<T: serde::Serialize>(values: &[T]) -> String {
    values.iter().map(|value| serde_json::to_string(value).unwrap() + "\n").collect()
}

fn written(history: &History) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("plan.json", serde_json::to_string(&history.plan).unwrap());
    for lived in &history.lives {
        write(&format!("worker-{}-{}.jsonl", lived.life.worker, lived.life.life), lines(&lived.events));
    }
    write("registers.jsonl", lines(&history.registers));
    write("faults.jsonl", lines(&history.faults));
    write("after.json", serde_json::to_string(&history.after).unwrap());
    folder
}

#[test]
fn a_folder_is_read_as_it_was_written() {
    let sketch = sketch();
    let folder = written(&sketch.history);
    assert_eq!(History::read(folder.path()).unwrap(), sketch.history);
}

#[test]
fn the_same_folder_gives_the_same_bytes() {
    let folder = written(&sketch().history);
    let judged = || serde_json::to_string(&check(folder.path()).unwrap()).unwrap();
    assert_eq!(judged(), judged());
}

fn append(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::write(&path, fs::read_to_string(&path).unwrap() + text).unwrap();
}

fn trouble(folder: &Path) -> String {
    check(folder).unwrap_err().to_string()
}

#[test]
fn the_last_line_of_a_worker_may_be_cut_short() {
    let sketch = sketch();
    let folder = written(&sketch.history);
    append(folder.path(), "worker-1-0.jsonl", "{\"event\":\"seen\",\"at\":1");
    let read = History::read(folder.path()).unwrap();
    assert_eq!(read.lives[1].events, sketch.history.lives[1].events);
    assert_eq!((read.lives[0].cut_short, read.lives[1].cut_short), (false, true));
}

#[test]
fn anything_else_that_is_damaged_is_named_with_its_line() {
    let damage = [
        ("worker-1-0.jsonl", "{\"event\":\"seen\",\"at\":1\n", "line 6 of `worker-1-0.jsonl`"),
        ("worker-1-0.jsonl", "\n", "line 6 of `worker-1-0.jsonl`"),
        ("registers.jsonl", "{\"at\":", "line 3 of `registers.jsonl` cannot be read: it is cut short"),
        ("faults.jsonl", "{}\n", "line 3 of `faults.jsonl`"),
        ("after.json", "}", "`after.json` cannot be read"),
        ("plan.json", "}", "`plan.json` cannot be read"),
    ];
    for (name, text, told) in damage {
        let folder = written(&sketch().history);
        append(folder.path(), name, text);
        assert!(trouble(folder.path()).contains(told), "{name}: {}", trouble(folder.path()));
    }
}

#[test]
fn what_is_missing_or_strange_is_named() {
    let folder = written(&sketch().history);
    fs::remove_file(folder.path().join("registers.jsonl")).unwrap();
    assert!(trouble(folder.path()).contains("registers.jsonl"));

    let folder = tempfile::tempdir().unwrap();
    assert!(trouble(folder.path()).contains("there is no `"), "{}", trouble(folder.path()));
    fs::write(folder.path().join("plan.json"), serde_json::to_string(&sketch().history.plan).unwrap()).unwrap();
    assert!(trouble(folder.path()).contains("no worker wrote anything"));

    let folder = written(&sketch().history);
    fs::write(folder.path().join("worker-x-0.jsonl"), "").unwrap();
    assert!(trouble(folder.path()).contains("`worker-x-0.jsonl` is not the name of a worker's file"));

    let folder = written(&sketch().history);
    fs::rename(folder.path().join("worker-0-0.jsonl"), folder.path().join("worker-2-0.jsonl")).unwrap();
    assert!(trouble(folder.path()).contains("was written by worker 0.0"), "{}", trouble(folder.path()));
}

#[test]
fn absurd_lines_are_refused() {
    let long = format!("{{\"event\":\"{}\"}}\n", "x".repeat(70_000));
    let told = worker_events("w", long.as_bytes()).unwrap_err().to_string();
    assert!(told.contains("line 1 of `w` cannot be read: it is longer than 65536 bytes"), "{told}");
    let token =
        "{\"event\":\"held\",\"at\":1,\"op\":1,\"claim\":\"c\",\"token\":\"-1\",\"deadline\":1,\"by\":\"push\"}\n";
    let told = worker_events("w", token.as_bytes()).unwrap_err().to_string();
    assert!(told.contains("its token is not a number"), "{told}");
}

#[test]
fn an_answer_without_a_question_is_refused() {
    let mut sketch = sketch();
    sketch.seen(0, 99, 5, true);
    let folder = written(&sketch.history);
    assert!(trouble(folder.path()).contains("the history of worker 0.0 has an answer in op 99 that nobody asked for"));
}

#[test]
fn moments_at_the_end_of_time_do_no_harm() {
    let mut sketch = Sketch::new();
    let never = u64::MAX / crate::check::facts::MS - 3_000;
    let op = sketch.hold(0, take(0, never, never));
    sketch.seen(0, op, never, true);
    sketch.hurt(Nemesis::PauseStore, never, never);
    sketch.hurt_worker(Nemesis::PauseWorker, 0, 5, never);
    sketch.update(0, op, Guard::Bare, u64::MAX - 1, 1);
    assert_eq!(sketch.judged().acquisitions.attempted, 1);
}
