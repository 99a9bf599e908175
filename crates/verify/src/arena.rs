//! The store under test, and everything of it that can be hurt: servers that this run started, and the proxy in front.

use std::path::Path;

use lockkeeper_rig::Trouble;

use crate::history::{Clutter, Fault};
use crate::nemesis::Workers;
use crate::plan::{Nemesis, Plan, Promised};

/// The store of a run.
pub struct Arena {}

impl Arena {
    /// Starts the store that the table of targets has under this name, or takes the one at this address, and puts a proxy
    /// in front of it where it is reached by TCP. Refuses a nemesis that would hurt what it did not start.
    pub fn start(_target: &str, _nemesis: &[Nemesis], _folder: &Path) -> Result<Self, Trouble> {
        Err(Trouble::new("not there yet"))
    }

    /// The address that workers use, through the proxy.
    pub fn worker_url(&self) -> String {
        String::new()
    }

    /// The environment that workers need besides, as for a wall clock that can be stepped.
    pub fn worker_env(&self, _worker: u32) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What the store promises, and its version.
    pub async fn promised(&self) -> Result<(Promised, Option<String>), Trouble> {
        Err(Trouble::new("not there yet"))
    }

    /// Hurts, as the plan says, until `ended` says so; then everything is made whole again. Blocks: it has a thread.
    pub fn rampage(
        &mut self,
        _plan: &Plan,
        _workers: &dyn Workers,
        _ended: &dyn Fn() -> bool,
        _note: &mut dyn FnMut(Fault),
    ) {
    }

    /// What is left at the store now that all workers have gone.
    pub async fn after(&self) -> Clutter {
        Clutter::default()
    }
}
