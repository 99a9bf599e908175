//! One run, from the plan to the folder with its history.
//!
//! Surprise: nothing is judged here. A run that goes as it should may have lost every update; a trouble means that there is
//! no history worth judging.

mod fleet;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use lockkeeper::Keeper;
use lockkeeper_rig::Trouble;
use tokio::task::JoinSet;

use self::fleet::{Fleet, Launch};
use crate::arena::Arena;
use crate::history::write::{FAULTS, Lines, now, write_after, write_plan};
use crate::history::{Fault, Leftover, On};
use crate::nemesis::word;
use crate::plan::{Plan, Work};
use crate::registers::Registers;
use crate::worker::{PASSWORD, access, names_between};

/// How often it tells how it goes.
const TELLS_EVERY: Duration = Duration::from_millis(200);
/// How long the nemesis may take to make everything whole again.
const HEALS_WITHIN: Duration = Duration::from_secs(60);
/// How many cells are removed at a time.
const REMOVED_AT_ONCE: usize = 32;

/// How a run is going, for those who watch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Since the workers began.
    pub ran_ms: u64,
    /// Questions for locks so far.
    pub attempted: u64,
    /// Of these, held.
    pub acknowledged: u64,
    /// Writes that registers took.
    pub written: u64,
    /// Writes that were lost so far, of the bare register and of the fenced one.
    pub lost_bare: u64,
    /// The same of the fenced one.
    pub lost_fenced: u64,
    /// Workers alive.
    pub alive: u32,
    /// What hurts now.
    pub hurting: Option<String>,
}

/// How a worker process is started: a program and its first arguments. The plan's path, the worker's number and life, the
/// registers' socket and the moment of its end follow as arguments; the store's address comes by the environment.
#[derive(Clone, Debug)]
pub struct WorkerProgram {
    /// The program.
    pub program: std::path::PathBuf,
    /// Its first arguments.
    pub args: Vec<String>,
}

/// Runs the plan in a folder, which is made. Tells how it goes a few times a second.
///
/// # Cancel safety
/// Dropping the future ends the workers and the nemesis; the folder then has a history without an end.
pub async fn run(
    plan: &mut Plan,
    arena: Arena,
    program: &WorkerProgram,
    folder: &Path,
    watch: Arc<dyn Fn(&Progress) + Send + Sync>,
) -> Result<(), Trouble> {
    std::fs::create_dir_all(folder)
        .map_err(|error| Trouble::new(format!("`{}` cannot be made: {error}", folder.display())))?;
    (plan.store, plan.made_of.server) = arena.promised().await?;
    if plan.lease_ms < plan.store.lease_min_ms {
        let least = plan.store.lease_min_ms;
        return Err(Trouble::new(format!("a lease of {} ms is shorter than `{}` gives", plan.lease_ms, plan.target))
            .hint(format!("the shortest is {least} ms: `--lease {least}ms`")));
    }
    plan.made_of.began = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    // Before the plan: what refuses to write over another run's history keeps its plan too.
    let registers = Arc::new(Registers::open(folder)?);
    let faults = Lines::begin(&folder.join(FAULTS))?;
    let plan_file = write_plan(folder, plan)?;
    let url = arena.worker_url();
    let began = now();
    let launch = Launch {
        program: program.clone(),
        plan_file,
        folder: folder.to_owned(),
        url: url.clone(),
        mutant: plan.mutant.clone(),
        clocks: arena.clocks(),
        env: (0..plan.workers).map(|worker| arena.worker_env(worker)).collect(),
        until: began + plan.for_ms * 1_000_000,
    };
    let until = launch.until;
    let given = launch.env.iter().flatten().find(|(name, _)| name == PASSWORD).map(|(_, password)| password.clone());
    let password = given.or_else(|| std::env::var(PASSWORD).ok());
    let fleet = Arc::new(Fleet::start(launch, registers.clone(), plan)?);
    let course = Course { plan, fleet, registers, began, until, watch, hurting: Arc::default() };
    let (arena, result) = course.hurt_and_watch(arena, faults).await?;
    let stragglers = course.end_workers().await?;
    result?;
    if let Some(trouble) = course.fleet.trouble().or(course.registers.trouble()) {
        return Err(trouble);
    }
    remove_cells(plan, &url, password, began).await;
    let mut clutter = arena.after(plan).await;
    clutter.left.extend(stragglers);
    write_after(folder, &clutter)?;
    (course.watch)(&course.progress());
    Ok(())
}

/// A run under way.
struct Course<'a> {
    plan: &'a Plan,
    fleet: Arc<Fleet>,
    registers: Arc<Registers>,
    began: u64,
    until: u64,
    watch: Arc<dyn Fn(&Progress) + Send + Sync>,
    hurting: Arc<Mutex<Hurting>>,
}

/// What hurts now: faults that have not healed.
#[derive(Debug, Default)]
struct Hurting(Vec<(u64, String)>);

impl Hurting {
    fn note(&mut self, fault: &Fault) {
        match fault {
            Fault::Hurt { id, nemesis, on, .. } => {
                let whom = match on {
                    On::Worker { life } => format!(" {life}"),
                    On::Node { node } => format!(" node {node}"),
                    On::Connections => String::new(),
                };
                self.0.push((*id, word(*nemesis) + &whom));
            }
            Fault::Healed { id, .. } => self.0.retain(|(hurting, _)| hurting != id),
        }
    }
}

/// Tells the nemesis to stop when the run is over, also when it is dropped half-way.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Course<'_> {
    /// Lets the workers work and the nemesis hurt until the time is over. The inner result is how that went; the arena
    /// comes back whole either way.
    async fn hurt_and_watch(&self, arena: Arena, faults: Lines) -> Result<(Arena, Result<(), Trouble>), Trouble> {
        let stop = Stop(Arc::default());
        let nemesis = self.nemesis(arena, faults, stop.0.clone());
        let mut result = Ok(());
        while now() < self.until && result.is_ok() {
            tokio::time::sleep(TELLS_EVERY).await;
            (self.watch)(&self.progress());
            if let Some(trouble) = self.fleet.trouble().or(self.registers.trouble()) {
                result = Err(trouble);
            }
        }
        drop(stop);
        match tokio::time::timeout(HEALS_WITHIN, self.watched(nemesis)).await {
            Ok(Ok((arena, written))) => Ok((arena, result.and(written))),
            Ok(Err(error)) => Err(Trouble::new(format!("the nemesis ended badly: {error}"))),
            Err(_) => Err(Trouble::new(format!("the nemesis did not make everything whole within {HEALS_WITHIN:?}"))),
        }
    }

    /// Waits for something, and tells meanwhile how it goes.
    async fn watched<F: Future>(&self, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                output = &mut work => return output,
                () = tokio::time::sleep(TELLS_EVERY) => (self.watch)(&self.progress()),
            }
        }
    }

    /// Hurts, on a thread of its own.
    fn nemesis(
        &self,
        mut arena: Arena,
        faults: Lines,
        stop: Arc<AtomicBool>,
    ) -> tokio::task::JoinHandle<(Arena, Result<(), Trouble>)> {
        let (plan, fleet, until) = (self.plan.clone(), self.fleet.clone(), self.until);
        let hurting = self.hurting.clone();
        tokio::task::spawn_blocking(move || {
            let mut written = Ok(());
            let ended = || stop.load(Ordering::SeqCst) || now() >= until;
            let hurt = arena.rampage(&plan, &*fleet, &ended, &mut |fault| {
                hurting.lock().unwrap_or_else(PoisonError::into_inner).note(&fault);
                if let Err(trouble) = faults.write(&fault) {
                    written = Err(trouble);
                }
            });
            (arena, hurt.and(written))
        })
    }

    fn progress(&self) -> Progress {
        let tally = self.registers.tally();
        let hurting = self.hurting.lock().unwrap_or_else(PoisonError::into_inner);
        let hurting: Vec<String> = hurting.0.iter().map(|(_, what)| what.clone()).collect();
        Progress {
            ran_ms: now().saturating_sub(self.began) / 1_000_000,
            attempted: tally.asked,
            acknowledged: tally.held,
            written: tally.written,
            lost_bare: tally.lost_bare,
            lost_fenced: tally.lost_fenced,
            alive: u32::try_from(self.fleet.count()).unwrap_or(u32::MAX),
            hurting: (!hurting.is_empty()).then(|| hurting.join(", ")),
        }
    }

    /// Ends the workers; those that had to be killed are left over.
    async fn end_workers(&self) -> Result<Vec<Leftover>, Trouble> {
        // One that waits for a lock waits to the end, and then a few calls go unanswered.
        let grace = self.plan.patience() * 2 + self.plan.call_limit() * 4 + Duration::from_secs(5);
        let fleet = self.fleet.clone();
        let ended = self.watched(tokio::task::spawn_blocking(move || fleet.end(grace))).await;
        ended.map_err(|error| Trouble::new(format!("the workers could not be ended: {error}")))
    }
}

/// Takes the cells out that the workers may have made. What cannot be removed now is forgotten by the store after a while,
/// and is found by those who look.
async fn remove_cells(plan: &Plan, url: &str, password: Option<String>, began: u64) {
    if plan.work != Work::Mutex {
        return;
    }
    let Ok(store) = lockkeeper::open_as(url, &access(url, password)).await else { return };
    let keeper = Keeper::with_store(store);
    let mut removing = JoinSet::new();
    for name in names_between(plan, began, now()) {
        if removing.len() >= REMOVED_AT_ONCE {
            removing.join_next().await;
        }
        let keeper = keeper.clone();
        removing.spawn(async move { keeper.cell(&name).remove().await });
    }
    removing.join_all().await;
    let _ = keeper.close().await;
}
