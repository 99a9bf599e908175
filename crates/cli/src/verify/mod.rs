//! `verify`: shows what happens to locks under faults, and judges what was shown.
//!
//! Surprise: the workers of a run are this very program, in a hidden mode that is looked for before anything else.

mod asked;
mod mutants;
mod progress;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use lockkeeper_rig::Trouble;
use lockkeeper_verify::arena::Arena;
use lockkeeper_verify::history::History;
use lockkeeper_verify::judgement::Judgement;
use lockkeeper_verify::plan::Nemesis;
use lockkeeper_verify::run::WorkerProgram;
use lockkeeper_verify::targets::{TARGETS, Target};
use lockkeeper_verify::{check, nemesis, report, repro, run, worker};
use serde::Serialize;

use self::asked::Asked;
use self::progress::Line;
use crate::args::{Published, ReproArgs, VerifyAction, VerifyArgs};
use crate::exit::{self, Failure};
use crate::look::{print, print_json};

const WORKER: &str = "__verify-worker";

/// Becomes a worker if this process was started as one.
pub fn hidden_mode() -> Option<ExitCode> {
    let mut args = std::env::args().skip(1);
    if args.next()? != WORKER {
        return None;
    }
    let args: Vec<String> = args.collect();
    let worked = crate::block_on(async { worker::work(&args).await.map(|()| 0).map_err(|trouble| failed(&trouble)) });
    Some(ExitCode::from(worked.unwrap_or_else(|failure| failure.report())))
}

/// Runs, or judges, or lists.
pub async fn verify(store: Option<&str>, args: &VerifyArgs) -> Result<u8, Failure> {
    match &args.other {
        None => {
            let folder = make_history(Asked::new(store, args)?).await?;
            judge(&folder, args.json)
        }
        Some(VerifyAction::Check(args)) => judge(&args.folder, args.json),
        Some(VerifyAction::Mutants(args)) => mutants::mutants(args).await,
        Some(VerifyAction::Targets(args)) => targets(args.json),
        Some(VerifyAction::Repro(args)) => repro(args).await,
    }
}

/// The run itself. Gives the folder of its history.
async fn make_history(asked: Asked) -> Result<PathBuf, Failure> {
    let Asked { target, mut plan, folder } = asked;
    let arena = Arena::start(&target, &plan.nemesis, &folder).map_err(|trouble| failed(&trouble))?;
    // The address that has been read may hold a password; this one never does.
    plan.target = arena.target().to_owned();
    exit::say(&format!("lockkeeper: verifying {}; history in {}", plan.target, folder.display()), None);
    let line = Arc::new(Line::new(plan.for_ms));
    let watch = Arc::clone(&line);
    let program = worker_program()?;
    let ran = run::run(&mut plan, arena, &program, &folder, Arc::new(move |progress| watch.show(progress))).await;
    line.clear();
    ran.map_err(|trouble| failed(&trouble))?;
    Ok(folder)
}

/// How workers are started.
fn worker_program() -> Result<WorkerProgram, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(exit::BUG, format!("this program does not find itself: {error}")))?;
    Ok(WorkerProgram { program, args: vec![WORKER.to_owned()] })
}

/// Judges the history in a folder, and says so there and here.
fn judge(folder: &Path, json: bool) -> Result<u8, Failure> {
    let unreadable = |trouble: Trouble| Failure::new(exit::USAGE, trouble.to_string());
    let history = History::read(folder).map_err(unreadable)?;
    let judgement = check::judge(&history).map_err(unreadable)?;
    save(folder, &judgement, &report::page(&judgement, &report::timeline::draw(&history), folder))?;
    match json {
        true => print_json(&report::report(&judgement, folder))?,
        false => print(&report::text(&judgement, folder))?,
    };
    Ok(if judgement.passed() { 0 } else { exit::FAILED })
}

/// The reports, beside the history that they were made of.
fn save(folder: &Path, judgement: &Judgement, page: &str) -> Result<(), Failure> {
    let json = crate::json::line(&report::report(judgement, folder))?;
    for (name, text) in [("report.json", json.as_str()), ("timeline.html", page)] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| {
            Failure::new(exit::USAGE, format!("`{}` cannot be written: {error}", path.display()))
                .with_hint("copy the folder to a place that you may write to")
        })?;
    }
    Ok(())
}

/// What `verify targets` prints.
#[derive(Serialize)]
struct Targets {
    schema: &'static str,
    targets: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    target: &'static str,
    scheme: &'static str,
    about: &'static str,
    /// Is what it answered on a disk before it answered?
    durable: bool,
    /// Of how many servers it is made.
    members: usize,
    lease_min_ms: u64,
    /// What can be done to it here.
    nemesis: Vec<String>,
    /// What cannot be done to it, and why.
    cannot: Vec<Refused>,
}

#[derive(Serialize)]
struct Refused {
    nemesis: String,
    why: String,
}

impl Row {
    fn new(target: &'static Target) -> Self {
        let facts = target.facts();
        let refused = |nemesis: &Nemesis| {
            let trouble = facts.allow(*nemesis).err()?.to_string();
            // The hint is for somebody who asked for it.
            let why = trouble.lines().next().unwrap_or_default().to_owned();
            Some(Refused { nemesis: nemesis::word(*nemesis), why })
        };
        Self {
            target: target.name,
            scheme: target.scheme,
            about: target.about,
            durable: target.durable,
            members: target.members(),
            lease_min_ms: target.lease_min_ms,
            nemesis: target.nemeses().into_iter().map(nemesis::word).collect(),
            cannot: nemesis::ALL.iter().filter_map(refused).collect(),
        }
    }
}

fn targets(json: bool) -> Result<u8, Failure> {
    let rows: Vec<Row> = TARGETS.iter().map(Row::new).collect();
    if json {
        return print_json(&Targets { schema: "lockkeeper.verify-targets/1", targets: rows });
    }
    let mut text = String::new();
    for row in rows {
        text.push_str(&format!("{}: {}\n  --nemesis {}\n", row.target, row.about, row.nemesis.join(",")));
    }
    print(&text)
}

/// `verify repro`.
async fn repro(args: &ReproArgs) -> Result<u8, Failure> {
    let asked = asked::published(args)?;
    let tell = |side: &str| exit::say(&format!("lockkeeper: {side}"), None);
    let done = match args.which {
        Published::EtcdLock => repro::etcd_lock(&asked, &tell).await.map_err(|trouble| failed(&trouble))?,
    };
    match args.json {
        true => print_json(&done)?,
        false => print(&done.text())?,
    };
    Ok(if done.passed { 0 } else { exit::FAILED })
}

/// A run that could not be carried out. The trouble brings its own hint.
fn failed(trouble: &Trouble) -> Failure {
    Failure::new(exit::STORE, trouble.to_string())
}
