//! The table: each seeded bug, the run that shows it, and the checks of which one must fail.
//!
//! A bug costs nobody anything until something happens to it, so most of a row is the run that lets that happen: holds that
//! outlast their lease where renewals are wrong, a killed holder where waiting is, a stopped one where leaving is. A check
//! that would only report what the fault does by itself is not good enough: it has to be one that was promised.
//!
//! Not here: *the count of `WAIT` ignored*. No store waits for replicas yet, so there is nothing to get wrong.

use lockkeeper::mutants::Mutant;

use crate::plan::{Nemesis, Work};

/// A run that shows a bug. Four dwells have to fit into lease and a second, or holders alone would look stuck. Those of the
/// same name are the same, and are also made once without any bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// What it is called.
    pub name: &'static str,
    /// The store.
    pub target: &'static str,
    /// What hurts.
    pub nemesis: &'static [Nemesis],
    /// What the workers do.
    pub work: Work,
    /// How many worker processes.
    pub workers: u32,
    /// How many tasks in each.
    pub tasks: u32,
    /// How many locks they share.
    pub locks: u32,
    /// The lease.
    pub lease_ms: u64,
    /// How long a holder dwells, four times in one hold.
    pub think_us: u64,
    /// How long it takes.
    pub seconds: u64,
}

/// A bug, and how it is caught.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The bug.
    pub mutant: Mutant,
    /// The run that shows it.
    pub setup: &'static Setup,
    /// The checks of which one must fail.
    pub checks: &'static [&'static str],
}

/// Many short holds of few locks, and nothing hurts.
const BUSY: Setup = Setup {
    name: "busy",
    target: "redis",
    nemesis: &[],
    work: Work::Mutex,
    workers: 4,
    tasks: 2,
    locks: 2,
    lease_ms: 1_000,
    think_us: 1_000,
    seconds: 8,
};

/// Many tasks that share counters, and few that share a lock.
const CROWD: Setup = Setup { name: "crowd", tasks: 5, locks: 40, think_us: 200, seconds: 15, ..BUSY };

/// Holds that outlast their lease, and nothing hurts.
const LONG: Setup = Setup { name: "long", tasks: 4, locks: 4, lease_ms: 500, think_us: 200_000, seconds: 15, ..BUSY };

/// Many holds that are renewed a few times and then released, while others are being renewed.
const RENEWED: Setup =
    Setup { name: "renewed", workers: 3, tasks: 8, locks: 12, lease_ms: 400, think_us: 50_000, seconds: 15, ..BUSY };

/// One lock, and its holder is killed.
const KILLED: Setup = Setup {
    name: "killed-holders",
    nemesis: &[Nemesis::KillHolder],
    workers: 3,
    locks: 1,
    lease_ms: 500,
    think_us: 5_000,
    seconds: 15,
    ..BUSY
};

/// Many locks that are mostly free, and workers are killed.
const KILLED_FREE: Setup = Setup {
    name: "killed-takers",
    nemesis: &[Nemesis::KillWorker],
    workers: 3,
    tasks: 6,
    locks: 60,
    lease_ms: 500,
    think_us: 50,
    seconds: 20,
    ..BUSY
};

/// Readers and writers, and workers are killed, most of whom wait.
const KILLED_WAITING: Setup = Setup {
    name: "killed-waiters",
    nemesis: &[Nemesis::KillWorker],
    work: Work::ReadWrite,
    workers: 2,
    tasks: 10,
    locks: 1,
    lease_ms: 1_500,
    think_us: 10_000,
    seconds: 25,
    ..BUSY
};

/// Holders are stopped between their read and their write.
const PAUSED: Setup = Setup {
    name: "paused-holders",
    nemesis: &[Nemesis::PauseHolder],
    workers: 4,
    locks: 2,
    lease_ms: 500,
    think_us: 8_000,
    seconds: 15,
    ..BUSY
};

/// The same on a file.
const PAUSED_FILE: Setup = Setup { name: "paused-holders-of-a-file", target: "sqlite", think_us: 5_000, ..PAUSED };

/// Workers are stopped while many of their questions are on the way.
const PAUSED_ASKING: Setup = Setup {
    name: "paused-askers",
    nemesis: &[Nemesis::PauseWorker],
    workers: 3,
    tasks: 8,
    locks: 12,
    // A pause of two of these is shorter than what a call may take: the answer is not too late for the call.
    lease_ms: 180,
    think_us: 500,
    seconds: 25,
    ..BUSY
};

/// Holders of many locks are stopped, who dwell for as long as they are.
const PAUSED_LONG: Setup = Setup {
    name: "paused-long-holders",
    nemesis: &[Nemesis::PauseHolder],
    workers: 3,
    tasks: 12,
    locks: 16,
    lease_ms: 300,
    think_us: 170_000,
    seconds: 35,
    ..BUSY
};

/// The wall clocks of holders are stepped while they hold.
const STEPPED: Setup = Setup {
    name: "stepped-clocks",
    nemesis: &[Nemesis::StepClient],
    workers: 2,
    tasks: 6,
    locks: 4,
    lease_ms: 500,
    think_us: 200_000,
    seconds: 30,
    ..BUSY
};

/// The server, which keeps nothing, is killed.
const FORGETFUL: Setup =
    Setup { name: "killed-server", nemesis: &[Nemesis::KillStore], lease_ms: 500, seconds: 12, ..BUSY };

/// The server, which keeps everything, is killed, and is back before most leases are over. What is stuck has to be so while
/// nothing is hurt, so there is the step of a clock between, which hurts nobody.
const RESTARTED: Setup = Setup {
    name: "restarted-server",
    target: "redis-durable",
    nemesis: &[Nemesis::KillStore, Nemesis::StepClient],
    tasks: 4,
    locks: 4,
    seconds: 20,
    ..BUSY
};

/// Connections are half-open for longer than a lease, while holders dwell on.
const HALF_OPEN: Setup = Setup {
    name: "half-open",
    nemesis: &[Nemesis::HalfOpen],
    tasks: 10,
    locks: 20,
    lease_ms: 300,
    think_us: 200_000,
    seconds: 30,
    ..BUSY
};

/// Everything takes longer on its way.
const DELAYED: Setup = Setup { name: "delayed", nemesis: &[Nemesis::Delay], tasks: 6, locks: 24, seconds: 30, ..BUSY };

/// Permits.
const PERMITS: Setup =
    Setup { name: "permits", work: Work::Semaphore, tasks: 4, locks: 2, think_us: 3_000, seconds: 8, ..BUSY };

/// Readers and writers.
const READERS: Setup = Setup {
    name: "readers-and-writers",
    work: Work::ReadWrite,
    tasks: 4,
    locks: 1,
    think_us: 2_000,
    seconds: 8,
    ..BUSY
};

/// Two locks at a time.
const SEVERAL: Setup =
    Setup { name: "several-at-once", work: Work::Multi, tasks: 3, locks: 3, lease_ms: 500, seconds: 20, ..BUSY };

/// Owners that come in again.
const AGAIN: Setup = Setup { name: "coming-in-again", work: Work::Reentrant, tasks: 3, ..BUSY };

/// Without any lock: what the registers lose then shows that they can.
pub const NO_LOCK: Setup = Setup { name: "no-lock", target: "sqlite", work: Work::Nothing, seconds: 4, ..BUSY };

/// Every seeded bug.
pub const ROWS: &[Row] = &[
    Row { mutant: Mutant::BlindDelete, setup: &PAUSED, checks: &["held-is-true", "holds-exclude"] },
    Row { mutant: Mutant::BlindRenew, setup: &RENEWED, checks: &["nobody-is-stuck"] },
    Row { mutant: Mutant::NoRenew, setup: &LONG, checks: &["holds-exclude", "held-is-true"] },
    Row { mutant: Mutant::DeadlineAfterReply, setup: &PAUSED_ASKING, checks: &["held-is-true", "tokens-rise"] },
    Row { mutant: Mutant::WallClockDeadline, setup: &STEPPED, checks: &["holds-exclude", "held-is-true"] },
    Row { mutant: Mutant::NewClaimOnRetry, setup: &LONG, checks: &["nobody-is-stuck"] },
    Row { mutant: Mutant::PlainCounterToken, setup: &FORGETFUL, checks: &["tokens-rise"] },
    Row { mutant: Mutant::WriteOnlyFence, setup: &PAUSED_LONG, checks: &["fenced-loses-nothing", "fenced-order"] },
    Row { mutant: Mutant::SetThenExpire, setup: &KILLED_FREE, checks: &["nobody-is-stuck", "nothing-is-left"] },
    Row { mutant: Mutant::NewsOnly, setup: &KILLED, checks: &["nobody-is-stuck"] },
    Row { mutant: Mutant::RetryIsReentry, setup: &RESTARTED, checks: &["nobody-is-stuck"] },
    Row { mutant: Mutant::WatchdogNotCancelled, setup: &RESTARTED, checks: &["nobody-is-stuck"] },
    Row { mutant: Mutant::SemaphoreByCount, setup: &PERMITS, checks: &["holds-exclude"] },
    Row { mutant: Mutant::ReaderPastWriter, setup: &READERS, checks: &["readers-wait-behind-writers"] },
    Row { mutant: Mutant::PartialMultiKept, setup: &SEVERAL, checks: &["nobody-is-stuck"] },
    Row { mutant: Mutant::UnlockByKey, setup: &PAUSED_FILE, checks: &["held-is-true", "holds-exclude"] },
    Row { mutant: Mutant::LostOnlyFromServer, setup: &PAUSED, checks: &["held-is-true"] },
    Row { mutant: Mutant::WakesNobody, setup: &BUSY, checks: &["woken-by-push"] },
    Row { mutant: Mutant::HandOverSameToken, setup: &BUSY, checks: &["tokens-rise"] },
    Row { mutant: Mutant::DeadWaitersGranted, setup: &KILLED_WAITING, checks: &["nobody-is-stuck"] },
    Row { mutant: Mutant::NoSweep, setup: &KILLED, checks: &["nobody-is-stuck"] },
    Row { mutant: Mutant::UnknownIsRenewed, setup: &HALF_OPEN, checks: &["held-is-true", "holds-exclude"] },
    Row {
        mutant: Mutant::CounterRepeated,
        setup: &DELAYED,
        checks: &["counters-are-linearizable", "cells-are-linearizable"],
    },
    Row { mutant: Mutant::CounterInTwoSteps, setup: &CROWD, checks: &["counters-are-linearizable"] },
    Row { mutant: Mutant::SwapIgnoresVersion, setup: &BUSY, checks: &["cells-are-linearizable"] },
    Row { mutant: Mutant::ReentryByName, setup: &AGAIN, checks: &["holds-exclude"] },
    Row { mutant: Mutant::InnerReleaseFrees, setup: &AGAIN, checks: &["holds-last"] },
];
