//! What a run is to do, and what is known of the store before it. Written to `plan.json` in the run's folder.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Everything a worker, the nemesis and the checks have to know of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The store, as it was asked for: one that the run starts itself, by the name in the table of targets, or an address
    /// without its password.
    pub target: String,
    /// What is done to it and to the workers, in turn.
    pub nemesis: Vec<Nemesis>,
    /// What the workers do.
    pub work: Work,
    /// How long the workers work.
    pub for_ms: u64,
    /// Everything that is drawn by lot is drawn from it.
    pub seed: u64,
    /// How many worker processes.
    pub workers: u32,
    /// How many tasks in each.
    pub tasks: u32,
    /// How many locks they share.
    pub locks: u32,
    /// The lease of every hold.
    pub lease_ms: u64,
    /// Its lock-delay.
    pub delay_ms: u64,
    /// How long a holder dwells between reading and writing.
    pub think_us: u64,
    /// How far apart faults begin, where that is not drawn by lot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
    /// The seeded bug, in a build that has them.
    pub mutant: Option<String>,
    /// What the store promises.
    pub store: Promised,
    /// Of what, and when.
    pub made_of: MadeOf,
}

impl Plan {
    /// What all names of the run begin with, so that a store's other names are left alone.
    pub fn prefix(&self) -> String {
        format!("verify/{}/", self.seed)
    }

    /// The name of a lock.
    pub fn lock(&self, number: u32) -> String {
        format!("{}l{number}", self.prefix())
    }

    /// How long a worker waits for a lock: longer than a dead holder can keep it.
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.lease_ms * 3 + self.delay_ms + self.store.expiry_slack_ms + 2_000)
    }

    /// How long a holder may dwell at all registers of all that it holds.
    pub fn longest_round(&self) -> Duration {
        let names = if self.work == Work::Multi { 2 } else { 1 };
        // Half as long again as it should, at each of the four.
        Duration::from_micros(self.think_us.saturating_mul(6 * names))
    }

    /// How long a worker gives one call to the store: an answer that comes after the lease is of no use.
    pub fn call_limit(&self) -> Duration {
        Duration::from_millis(self.lease_ms.clamp(500, 10_000))
    }
}

/// What hurts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Nemesis {
    /// A worker is killed, and another takes its place.
    KillWorker,
    /// The worker that holds a lock is killed.
    KillHolder,
    /// A worker is stopped for longer than its lease, and goes on.
    PauseWorker,
    /// The worker that holds a lock is stopped between its read and its write.
    PauseHolder,
    /// The wall clock of a worker is stepped.
    StepClient,
    /// A server is killed and started again: of a cluster, the one that leads.
    KillStore,
    /// A server is stopped for longer than the lease, and goes on: of a cluster, the one that leads.
    PauseStore,
    /// The server's wall clock is stepped forward and back.
    StepStore,
    /// The server's data is wiped.
    WipeStore,
    /// Connections are cut.
    Cut,
    /// Everything takes longer on its way.
    Delay,
    /// Connections stay open, and nothing comes through.
    HalfOpen,
    /// Requests arrive, and the replies are lost.
    LoseReplies,
}

/// What the workers do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Mutexes and their registers, with some cells and counters between.
    #[default]
    Mutex,
    /// Readers and writers.
    ReadWrite,
    /// Permits.
    Semaphore,
    /// Several names at once.
    Multi,
    /// An owner that comes in again while it holds.
    Reentrant,
    /// No lock at all: what the registers lose then shows that they can.
    Nothing,
}

/// What the store says of itself; the default stands for one that is not up yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Promised {
    /// The scheme of its address.
    pub scheme: String,
    /// Has it tokens?
    pub tokens: bool,
    /// Does it serve its line in order?
    pub fifo: bool,
    /// Does it wake who waits?
    pub push: bool,
    /// Has it a clock of its own?
    pub has_time: bool,
    /// How much later than its end a claim may be gone.
    pub expiry_slack_ms: u64,
    /// Is what it answered on a disk before it answered?
    pub durable: bool,
    /// Is it a cluster that does with most of its members?
    #[serde(default)]
    pub quorum: bool,
    /// Does a leader that was stopped and comes back end leases that its successor has kept alive?
    #[serde(default)]
    pub ends_early: bool,
    /// The shortest lease that it gives.
    #[serde(default)]
    pub lease_min_ms: u64,
}

/// What ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MadeOf {
    /// The version of Lockkeeper.
    pub lockkeeper: String,
    /// The commit it was built from, if that is known.
    pub commit: Option<String>,
    /// The store's own version, if it tells.
    pub server: Option<String>,
    /// When it began, RFC 3339 in UTC.
    pub began: String,
}
