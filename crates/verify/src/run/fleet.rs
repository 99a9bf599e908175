//! The worker processes of a run: started, killed, stopped and ended here.
//!
//! Surprise: a worker that ends by itself before its time is a trouble of the run. Its history would be read as that of a
//! worker that had nothing to say.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lockkeeper_rig::{Process, Signal, Trouble};

use super::WorkerProgram;
use crate::arena::Clocks;
use crate::history::write::now;
use crate::history::{Leftover, Life};
use crate::nemesis::Workers;
use crate::plan::Plan;
use crate::registers::Registers;
use crate::worker::STORE;

/// The variable that chooses a seeded bug, in a build that has them.
const MUTANT: &str = "LOCKKEEPER_MUTANT";

/// All workers of a run.
pub(super) struct Fleet {
    berths: Vec<Mutex<Berth>>,
    launch: Launch,
    registers: Arc<Registers>,
    ending: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
}

/// How workers are started.
pub(super) struct Launch {
    pub(super) program: WorkerProgram,
    pub(super) plan_file: PathBuf,
    pub(super) folder: PathBuf,
    pub(super) url: String,
    pub(super) mutant: Option<String>,
    /// Their wall clocks, where they can be stepped.
    pub(super) clocks: Option<Clocks>,
    /// For each worker, what else it finds in its environment.
    pub(super) env: Vec<Vec<(String, String)>>,
    /// When they end.
    pub(super) until: u64,
}

/// One worker in its present life.
struct Berth {
    life: u32,
    process: Process,
    /// Killed so late that no life followed.
    killed: bool,
    /// Closed to end the worker.
    orders: Option<ChildStdin>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fleet {
    /// Starts all workers.
    pub(super) fn start(launch: Launch, registers: Arc<Registers>, plan: &Plan) -> Result<Self, Trouble> {
        let mut berths = Vec::new();
        for worker in 0..plan.workers {
            berths.push(Mutex::new(launch.start(Life { worker, life: 0 }, registers.socket())?));
        }
        Ok(Self { berths, launch, registers, ending: AtomicBool::new(false), trouble: Mutex::new(None) })
    }

    /// The berth of this life, if the worker still lives it.
    fn berth(&self, life: Life) -> Option<MutexGuard<'_, Berth>> {
        let berth = lock(self.berths.get(usize::try_from(life.worker).ok()?)?);
        (berth.life == life.life).then_some(berth)
    }

    fn fail(&self, trouble: Trouble) {
        lock(&self.trouble).get_or_insert(trouble);
    }

    /// How many live. Does not wait for one that is being killed or ended.
    pub(super) fn count(&self) -> usize {
        let lives = |berth: &Mutex<Berth>| berth.try_lock().map_or(true, |mut berth| berth.process.ended().is_none());
        self.berths.iter().filter(|berth| lives(berth)).count()
    }

    /// What went wrong with the workers themselves, if anything did. Does not wait for one that is being killed.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        for (worker, berth) in (0..).zip(&self.berths) {
            let Ok(mut berth) = berth.try_lock() else { continue };
            if !berth.killed
                && let Some(status) = berth.process.ended()
                && (now() < self.launch.until || !status.success())
            {
                let life = Life { worker, life: berth.life };
                let said = self.launch.said(life);
                self.fail(Trouble::new(format!("{life} ended by itself ({status}){said}")));
            }
        }
        lock(&self.trouble).clone()
    }

    /// Ends all workers: by their orders, and by force those that do not end in time, which is a thing to tell.
    pub(super) fn end(&self, at_most: Duration) -> Vec<Leftover> {
        self.ending.store(true, Ordering::SeqCst);
        for berth in &self.berths {
            let mut berth = lock(berth);
            berth.process.signal(Signal::CONT);
            berth.orders.take();
        }
        let deadline = Instant::now() + at_most;
        let mut left = Vec::new();
        for (worker, berth) in (0..).zip(&self.berths) {
            let mut berth = lock(berth);
            let life = Life { worker, life: berth.life };
            match berth.process.wait(deadline.saturating_duration_since(Instant::now())) {
                Ok(status) if status.success() || berth.killed => {}
                Ok(status) => {
                    let said = self.launch.said(life);
                    self.fail(Trouble::new(format!("{life} ended badly ({status}){said}")));
                }
                Err(_) => {
                    left.push(Leftover { what: "process".to_owned(), name: format!("{life} did not end") });
                    let _ = berth.process.kill(); // its drop tries again
                }
            }
        }
        self.launch.tidy();
        left
    }
}

impl Workers for Fleet {
    fn alive(&self) -> Vec<Life> {
        let living = |(worker, berth): (u32, &Mutex<Berth>)| {
            let mut berth = lock(berth);
            berth.process.ended().is_none().then_some(Life { worker, life: berth.life })
        };
        (0..).zip(&self.berths).filter_map(living).collect()
    }

    fn holder(&self) -> Option<Life> {
        self.registers.holder()
    }

    fn kill(&self, life: Life) {
        let Some(mut berth) = self.berth(life) else { return };
        if let Err(trouble) = berth.process.kill() {
            return self.fail(trouble);
        }
        berth.killed = true;
        if self.ending.load(Ordering::SeqCst) || now() >= self.launch.until {
            return;
        }
        match self.launch.start(Life { life: life.life + 1, ..life }, self.registers.socket()) {
            Ok(next) => *berth = next,
            Err(trouble) => self.fail(trouble),
        }
    }

    fn stop(&self, life: Life) {
        // One that has ended meanwhile cannot be stopped, and need not be.
        if let Some(mut berth) = self.berth(life) {
            let _ = berth.process.pause();
        }
    }

    fn go_on(&self, life: Life) {
        if let Some(mut berth) = self.berth(life) {
            let _ = berth.process.resume();
        }
    }

    fn step_clock(&self, life: Life, ahead: Duration, behind: bool) -> Option<()> {
        self.launch.clocks.as_ref()?.step(life.worker, ahead, behind)
    }
}

impl Launch {
    fn start(&self, life: Life, socket: &Path) -> Result<Berth, Trouble> {
        let words = self.words_file(life);
        let stderr =
            File::create(&words).map_err(|e| Trouble::new(format!("`{}` cannot be made: {e}", words.display())))?;
        let mut command = Command::new(&self.program.program);
        command.args(&self.program.args).arg(&self.plan_file);
        command.args([life.worker.to_string(), life.life.to_string()]).arg(socket).arg(self.until.to_string());
        command.env(STORE, &self.url);
        if let Some(mutant) = &self.mutant {
            command.env(MUTANT, mutant);
        }
        if let Some(env) = usize::try_from(life.worker).ok().and_then(|worker| self.env.get(worker)) {
            command.envs(env.iter().map(|(name, value)| (name, value)));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(stderr);
        let mut process = Process::spawn(&mut command)?;
        let orders = process.stdin();
        Ok(Berth { life: life.life, process, killed: false, orders })
    }

    /// Where a worker's words to people go.
    fn words_file(&self, life: Life) -> PathBuf {
        self.folder.join(format!("worker-{}-{}.err", life.worker, life.life))
    }

    /// The last of what it said, to be added to a sentence.
    fn said(&self, life: Life) -> String {
        let words = fs::read(self.words_file(life)).unwrap_or_default();
        let last = String::from_utf8_lossy(&words[words.len().saturating_sub(2_000)..]).trim().to_owned();
        if last.is_empty() { last } else { format!(": {last}") }
    }

    /// Silence need not be kept.
    fn tidy(&self) {
        for file in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let is_words = file.path().extension().is_some_and(|extension| extension == "err");
            if is_words && file.metadata().is_ok_and(|about| about.len() == 0) {
                let _ = fs::remove_file(file.path());
            }
        }
    }
}
