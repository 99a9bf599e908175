//! Are the checks worth anything? Each seeded bug is run, and a check that the table names must see it.
//!
//! Two controls stand beside that. Without any lock the registers must lose much, or a run that loses nothing says nothing;
//! and every run of the table is made once without a bug and must pass, or a check that fails says nothing either.
//!
//! Surprise: only the workers have the bug. Whoever starts them, keeps the registers and judges is as it always is.

mod caught;
mod table;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lockkeeper::mutants::{BUILT_IN, VARIABLE};
use lockkeeper_rig::Trouble;

pub use self::caught::{Caught, Results, SCHEMA};
pub use self::table::{NO_LOCK, ROWS, Row, Setup};
use crate::arena::Arena;
use crate::check;
use crate::judgement::Judgement;
use crate::plan::{MadeOf, Plan, Promised};
use crate::run::{WorkerProgram, run};

/// How many runs are made at a time.
const AT_A_TIME: usize = 2;
/// The share that is lost without any lock, at the least.
const HEAVY_LOSS: f64 = 0.05;

/// What one run is to show.
#[derive(Clone, Copy, Debug)]
pub enum Task {
    /// A bug is caught.
    Bug(&'static Row),
    /// Without a bug everything passes.
    Sound(&'static Setup),
    /// Without a lock much is lost.
    NoLock,
}

impl Task {
    /// The name of its row.
    pub fn name(self) -> String {
        match self {
            Task::Bug(row) => row.mutant.name().to_owned(),
            Task::Sound(setup) => format!("no-bug/{}", setup.name),
            Task::NoLock => NO_LOCK.name.to_owned(),
        }
    }

    fn setup(self) -> &'static Setup {
        match self {
            Task::Bug(row) => row.setup,
            Task::Sound(setup) => setup,
            Task::NoLock => &NO_LOCK,
        }
    }
}

/// All runs, or those of the bugs with these names and what they are compared with.
///
/// # Errors
/// If there is no such bug.
pub fn tasks(only: Option<&[String]>) -> Result<Vec<Task>, Trouble> {
    if let Some(unknown) = only.into_iter().flatten().find(|name| !ROWS.iter().any(|row| row.mutant.name() == *name)) {
        let names: Vec<&str> = ROWS.iter().map(|row| row.mutant.name()).collect();
        return Err(Trouble::new(format!("there is no seeded bug `{unknown}`"))
            .hint(format!("there are: {}", names.join(", "))));
    }
    let chosen = |row: &&Row| only.is_none_or(|only| only.iter().any(|name| name == row.mutant.name()));
    let rows: Vec<&'static Row> = ROWS.iter().filter(chosen).collect();
    let mut tasks = vec![Task::NoLock];
    for (at, row) in rows.iter().enumerate() {
        if !rows[..at].iter().any(|earlier| earlier.setup.name == row.setup.name) {
            tasks.push(Task::Sound(row.setup));
        }
    }
    tasks.extend(rows.into_iter().map(Task::Bug));
    Ok(tasks)
}

/// Makes all runs, or those of some bugs, with a folder for each, and says what was caught. Tells of each as it is done.
///
/// # Errors
/// If this build has no bugs, or there is none of a name. A run that could not be carried out is in the results.
pub async fn run_all(
    program: &WorkerProgram,
    folder: &Path,
    only: Option<&[String]>,
    tell: &(dyn Fn(&Caught) + Sync),
) -> Result<Results, Trouble> {
    if !BUILT_IN {
        return Err(Trouble::new("this build has no seeded bugs, and no release has any")
            .hint("in a clone: `cargo run -p lockkeeper-cli --features mutants -- verify mutants`"));
    }
    if std::env::var_os(VARIABLE).is_some() {
        return Err(Trouble::new(format!(
            "{VARIABLE} is set, so that this process has the bug that its workers are to have"
        ))
        .hint("unset it: each run chooses its own"));
    }
    Ok(Results::new(run_these(program, folder, tasks(only)?, tell).await))
}

/// Makes these runs, a few at a time.
pub async fn run_these(
    program: &WorkerProgram,
    folder: &Path,
    all: Vec<Task>,
    tell: &(dyn Fn(&Caught) + Sync),
) -> Vec<Caught> {
    let mut rows: Vec<Option<Caught>> = vec![None; all.len()];
    let todo = Mutex::new(all.into_iter().enumerate());
    let done = Mutex::new(&mut rows);
    let lane = || async {
        loop {
            let next = todo.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, task)) = next else { return };
            let caught = one(program, folder, task, at as u64).await;
            tell(&caught);
            done.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(caught);
        }
    };
    const { assert!(AT_A_TIME == 2) };
    tokio::join!(lane(), lane());
    rows.into_iter().flatten().collect()
}

/// One run and what came of it.
async fn one(program: &WorkerProgram, folder: &Path, task: Task, number: u64) -> Caught {
    let began = Instant::now();
    let name = task.name().replace('/', "-");
    let mut made = made(program, folder.join(&name), task, number).await;
    if made.is_err() {
        // One that could not be carried out, as on a machine without a free port. A bug that was missed is not tried again.
        made = self::made(program, folder.join(name + "-again"), task, number).await;
    }
    let judged = match made {
        Ok(folder) => judge(folder).await,
        Err(trouble) => Err(trouble),
    };
    let after_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Caught::new(task, after_ms, judged)
}

/// Makes the history.
async fn made(program: &WorkerProgram, folder: PathBuf, task: Task, number: u64) -> Result<PathBuf, Trouble> {
    let mut plan = plan(task, number);
    let arena = Arena::start(&plan.target, &plan.nemesis, &folder)?;
    run(&mut plan, arena, program, &folder, Arc::new(|_| {})).await?;
    Ok(folder)
}

/// Judging takes a while, and is no work for a thread that others wait for.
async fn judge(folder: PathBuf) -> Result<Judgement, Trouble> {
    let judged = tokio::task::spawn_blocking(move || check::check(&folder)).await;
    judged.unwrap_or_else(|error| Err(Trouble::new(format!("a check ended badly: {error}"))))
}

fn plan(task: Task, number: u64) -> Plan {
    let setup = task.setup();
    Plan {
        target: setup.target.to_owned(),
        nemesis: setup.nemesis.to_vec(),
        work: setup.work,
        for_ms: setup.seconds * 1_000,
        seed: 1 + number,
        workers: setup.workers,
        tasks: setup.tasks,
        locks: setup.locks,
        lease_ms: setup.lease_ms,
        delay_ms: 0,
        think_us: setup.think_us,
        every_ms: None,
        mutant: match task {
            Task::Bug(row) => Some(row.mutant.name().to_owned()),
            Task::Sound(_) | Task::NoLock => None,
        },
        // The store says so when it is up.
        store: Promised::default(),
        made_of: MadeOf {
            lockkeeper: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("LOCKKEEPER_COMMIT").filter(|commit| !commit.is_empty()).map(str::to_owned),
            server: None,
            began: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use lockkeeper::mutants::Mutant;

    use super::*;

    #[test]
    fn every_bug_has_one_row_and_at_most_two_checks() {
        assert!(ROWS.len() >= 20);
        assert_eq!(ROWS.len(), Mutant::ALL.len());
        for mutant in Mutant::ALL {
            assert_eq!(ROWS.iter().filter(|row| row.mutant == *mutant).count(), 1, "{}", mutant.name());
        }
        assert!(ROWS.iter().all(|row| matches!(row.checks.len(), 1..=2)));
    }

    #[test]
    fn no_run_takes_two_minutes_and_each_name_means_one_run() {
        for row in ROWS {
            // Workers may need a while to end, and checks to judge.
            assert!(row.setup.seconds <= 60, "{}", row.setup.name);
            let same = ROWS.iter().filter(|other| other.setup.name == row.setup.name);
            assert!(same.into_iter().all(|other| other.setup == row.setup), "{}", row.setup.name);
        }
    }

    #[test]
    fn what_is_chosen_comes_with_its_controls() {
        let names = |only: &[&str]| -> Vec<String> {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            tasks(Some(&only)).unwrap().into_iter().map(Task::name).collect()
        };
        assert_eq!(names(&["no-renew"]), ["no-lock", "no-bug/long", "no-renew"]);
        let both = ["no-lock", "no-bug/long", "no-renew", "new-claim-on-retry"];
        assert_eq!(names(&["new-claim-on-retry", "no-renew"]), both);
        let error = tasks(Some(&["no-such".to_owned()])).unwrap_err().to_string();
        assert!(error.contains("no-such") && error.contains("blind-delete"), "{error}");
        let all = tasks(None).unwrap();
        assert!(all.len() > ROWS.len() + 10);
    }
}
