//! One run, from the plan to the folder with its history.

use std::path::Path;
use std::sync::Arc;

use lockkeeper_rig::Trouble;

use crate::arena::Arena;
use crate::plan::Plan;

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

/// How a worker process is started: a program and its first arguments. The plan's path, the worker's number and life, and
/// the registers' socket follow as arguments; the store's address comes by the environment.
#[derive(Clone, Debug)]
pub struct WorkerProgram {
    /// The program.
    pub program: std::path::PathBuf,
    /// Its first arguments.
    pub args: Vec<String>,
}

/// Runs the plan in a folder, which is made. Tells how it goes a few times a second.
pub async fn run(
    _plan: &mut Plan,
    _arena: Arena,
    _program: &WorkerProgram,
    _folder: &Path,
    _watch: Arc<dyn Fn(&Progress) + Send + Sync>,
) -> Result<(), Trouble> {
    Err(Trouble::new("not there yet"))
}
