//! What `verify --json` prints.
//!
//! Fields are only ever added. Times are whole milliseconds, or microseconds, and say so in their names; the seed is a
//! string, because many readers of JSON round large numbers.

use std::path::Path;

use serde::Serialize;

use super::text::repeat;
use super::words::word;
use crate::history::Guard;
use crate::judgement::{Judgement, Recovery, Tally, Updates};

/// What `verify` prints as JSON.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    passed: bool,
    target: String,
    nemesis: Vec<String>,
    work: String,
    seed: String,
    for_ms: u64,
    workers: u32,
    tasks: u32,
    locks: u32,
    lease_ms: u64,
    delay_ms: u64,
    think_us: u64,
    every_ms: Option<u64>,
    mutant: Option<String>,
    lockkeeper: String,
    commit: Option<String>,
    server: Option<String>,
    began: String,
    /// `holds`, `passes-on` or `breaks`.
    promise: String,
    acquisitions: Answers,
    updates: Vec<Register>,
    checks: Vec<Check>,
    figures: Measured,
    /// Where the history is.
    folder: String,
    /// The command that does the same again.
    repeat: String,
}

#[derive(Debug, Serialize)]
struct Answers {
    attempted: u64,
    acknowledged: u64,
    refused: u64,
    unknown: u64,
}

#[derive(Debug, Serialize)]
struct Register {
    /// `bare`, `deadline`, `fenced-writes` or `fenced`.
    guard: String,
    #[serde(flatten)]
    answers: Answers,
    lost: u64,
    lost_at_most: f64,
}

#[derive(Debug, Serialize)]
struct Check {
    check: String,
    /// `passed`, `failed`, `reported` or `not-run`.
    outcome: String,
    saw: String,
    evidence: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Measured {
    ran_ms: u64,
    faults: u64,
    hurt_ms: u64,
    per_second_outside: f64,
    longest_stuck_ms: u64,
    stuck_bound_ms: u64,
    wait_p50_us: u64,
    wait_p99_us: u64,
    push_share: Option<f64>,
    fairness: f64,
    /// From a server's end to the next lock, where servers were killed or stopped.
    recovery: Option<Recovery>,
}

/// The judgement as programs read it.
pub fn report(judgement: &Judgement, folder: &Path) -> Report {
    let Judgement { plan, promise, acquisitions, updates, checks, figures } = judgement;
    Report {
        schema: "lockkeeper.verify/1",
        passed: judgement.passed(),
        target: plan.target.clone(),
        nemesis: plan.nemesis.iter().map(word).collect(),
        work: word(&plan.work),
        seed: plan.seed.to_string(),
        for_ms: plan.for_ms,
        workers: plan.workers,
        tasks: plan.tasks,
        locks: plan.locks,
        lease_ms: plan.lease_ms,
        delay_ms: plan.delay_ms,
        think_us: plan.think_us,
        every_ms: plan.every_ms,
        mutant: plan.mutant.clone(),
        lockkeeper: plan.made_of.lockkeeper.clone(),
        commit: plan.made_of.commit.clone(),
        server: plan.made_of.server.clone(),
        began: plan.made_of.began.clone(),
        promise: word(promise),
        acquisitions: Answers::new(acquisitions),
        updates: updates.iter().map(|(guard, updates)| Register::new(*guard, updates)).collect(),
        checks: checks
            .iter()
            .map(|finding| Check {
                check: finding.check.clone(),
                outcome: word(&finding.outcome),
                saw: finding.saw.clone(),
                evidence: finding.evidence.clone(),
            })
            .collect(),
        figures: Measured {
            ran_ms: figures.ran_ms,
            faults: figures.faults,
            hurt_ms: figures.hurt_ms,
            per_second_outside: figures.per_second_outside,
            longest_stuck_ms: figures.longest_stuck_ms,
            stuck_bound_ms: figures.stuck_bound_ms,
            wait_p50_us: figures.wait_p50_us,
            wait_p99_us: figures.wait_p99_us,
            push_share: figures.push_share,
            fairness: figures.fairness,
            recovery: figures.recovery,
        },
        folder: folder.display().to_string(),
        repeat: repeat(plan),
    }
}

impl Answers {
    fn new(tally: &Tally) -> Self {
        let Tally { attempted, acknowledged, refused, unknown } = *tally;
        Self { attempted, acknowledged, refused, unknown }
    }
}

impl Register {
    fn new(guard: Guard, updates: &Updates) -> Self {
        let answers = Answers::new(&updates.tally);
        Self { guard: word(&guard), answers, lost: updates.lost, lost_at_most: updates.lost_at_most }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::report::sample;

    #[test]
    fn the_schema_is_as_programs_know_it() {
        let report = serde_json::to_value(report(&sample::judgement(), Path::new("out"))).expect("JSON");
        let expected: Value = serde_json::from_str(include_str!("sample.json")).expect("JSON");
        assert_eq!(report, expected, "\n{report:#}");
    }

    #[test]
    fn one_failed_check_is_a_failed_run() {
        let report = serde_json::to_value(report(&sample::failed(), Path::new("out"))).expect("JSON");
        assert_eq!((&report["passed"], &report["checks"][0]["outcome"]), (&json!(false), &json!("failed")));
    }
}
