//! What the checks found in a history: the one thing that reports are made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::history::Guard;
use crate::plan::Plan;

/// A history, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// What was run.
    pub plan: Plan,
    /// What the store promises under these faults, as the table of promises has it.
    pub promise: Promise,
    /// How the questions for locks were answered, together.
    pub acquisitions: Tally,
    /// How the registers fared, by their guard.
    pub updates: BTreeMap<Guard, Updates>,
    /// Every check by its name, in a fixed order.
    pub checks: Vec<Finding>,
    /// Figures that are not judged, or are what a check was made with.
    pub figures: Figures,
}

impl Judgement {
    /// Did nothing fail?
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|finding| finding.outcome != Outcome::Failed)
    }
}

/// What the lock itself keeps under a fault: the worst of all faults of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Holders exclude each other (H), perhaps after a while in which nobody can hold (A).
    Holds,
    /// The lock may pass on while its old holder acts (L): a fenced resource is safe.
    PassesOn,
    /// It may break even for fenced resources (X).
    Breaks,
}

/// How questions were answered. Always printed together: no loss is worth nothing where everything was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Asked.
    pub attempted: u64,
    /// Answered yes.
    pub acknowledged: u64,
    /// Answered no.
    pub refused: u64,
    /// Not answered.
    pub unknown: u64,
}

/// How the registers of one guard fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Updates {
    /// How the read-modify-writes were answered.
    pub tally: Tally,
    /// Acknowledged, and not in the end's value.
    pub lost: u64,
    /// With 95 % confidence no greater share than this is lost.
    pub lost_at_most: f64,
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name: a sentence with dashes, `tokens-rise`.
    pub check: String,
    /// What came of it.
    pub outcome: Outcome,
    /// What it saw, in one line: figures, and the bound they were held to.
    pub saw: String,
    /// The first few pieces of evidence, one line each.
    pub evidence: Vec<String>,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It holds.
    Passed,
    /// It does not, and it was promised.
    Failed,
    /// It does not, and it was not promised: this is what the fault does.
    Reported,
    /// There was nothing to check, as it says.
    NotRun,
}

/// Figures of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// From the first question to the last answer.
    pub ran_ms: u64,
    /// Acquisitions per second outside of the faults and the time they need to heal.
    pub per_second_outside: f64,
    /// For how much of the time something was hurt or healing.
    pub hurt_ms: u64,
    /// How many faults.
    pub faults: u64,
    /// The longest time a lock was wanted and nobody got it.
    pub longest_stuck_ms: u64,
    /// What that was held to.
    pub stuck_bound_ms: u64,
    /// Waits of holders: half were no longer than this.
    pub wait_p50_us: u64,
    /// Of a hundred, ninety-nine were no longer than this.
    pub wait_p99_us: u64,
    /// Of those who waited and came in, the share that a wake-up told.
    pub push_share: Option<f64>,
    /// Jain's index over the workers' acquisitions: 1 is even.
    pub fairness: f64,
    /// How long it took to have a lock again after a server was killed or stopped.
    #[serde(default)]
    pub recovery: Option<Recovery>,
}

/// From the moment that a server was gone to the next lock that the store gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovery {
    /// How often that was.
    pub times: u64,
    /// The shortest.
    pub least_ms: u64,
    /// Half were no longer than this.
    pub median_ms: u64,
    /// The longest.
    pub most_ms: u64,
    /// What that was held to.
    pub bound_ms: u64,
}
