//! The store under test, and everything of it that can be hurt: servers that this run started, and the proxy in front.

use std::path::Path;

use lockkeeper::store::{Order, StoreTime, Survives, Tokens, Wake};
use lockkeeper_rig::Trouble;

use crate::history::write::now;
use crate::history::{Clutter, Fault, Leftover};
use crate::nemesis::Workers;
use crate::plan::{Nemesis, Plan, Promised};

/// The store of a run.
pub struct Arena {
    url: String,
}

impl Arena {
    /// Starts the store that the table of targets has under this name, or takes the one at this address, and puts a proxy
    /// in front of it where it is reached by TCP. Refuses a nemesis that would hurt what it did not start.
    pub fn start(_target: &str, _nemesis: &[Nemesis], folder: &Path) -> Result<Self, Trouble> {
        Ok(Self { url: format!("sqlite:{}/locks.db", folder.display()) })
    }

    /// The address that workers use, through the proxy.
    pub fn worker_url(&self) -> String {
        self.url.clone()
    }

    /// The environment that workers need besides, as for a wall clock that can be stepped.
    pub fn worker_env(&self, _worker: u32) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What the store promises, and its version.
    pub async fn promised(&self) -> Result<(Promised, Option<String>), Trouble> {
        let store = lockkeeper::open(&self.url).await.map_err(|error| Trouble::new(error.to_string()))?;
        let profile = store.profile();
        let promised = Promised {
            scheme: profile.scheme.to_owned(),
            tokens: profile.tokens != Tokens::None,
            fifo: profile.order == Order::Fifo,
            push: profile.wake == Wake::Push,
            has_time: profile.time == StoreTime::Store,
            expiry_slack_ms: u64::try_from(profile.late.as_millis()).unwrap_or(u64::MAX),
            durable: profile.survives != Survives::Nothing,
        };
        Ok((promised, None))
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
        let mut clutter = Clutter { at: now(), ..Clutter::default() };
        match lockkeeper::open(&self.url).await {
            Ok(store) => {
                let lines = lockkeeper::Keeper::with_store(store).list(None, 100).await.unwrap_or_default();
                let left = |line: &lockkeeper::store::LockView| Leftover {
                    what: "claim".to_owned(),
                    name: line.name.to_string(),
                };
                clutter.left = lines.iter().map(left).collect();
            }
            Err(error) => clutter.unseen.push(error.to_string()),
        }
        clutter
    }
}
