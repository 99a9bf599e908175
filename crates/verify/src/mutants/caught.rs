//! What came of the runs, for people and for programs.

use std::fmt::Write;

use lockkeeper_rig::Trouble;
use serde::Serialize;

use super::{HEAVY_LOSS, Task};
use crate::history::Guard;
use crate::judgement::{Finding, Judgement, Outcome};

/// The form of the JSON.
pub const SCHEMA: &str = "lockkeeper.verify-mutants/1";

/// What came of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Caught {
    /// The bug's name; of a control, what it is.
    pub name: String,
    /// What the bug is, in a sentence; of a control, what it must show.
    pub what: String,
    /// The run by its name in the table.
    pub run: String,
    /// The check that caught it; if none did, those that had to.
    pub check: String,
    /// Was it? Of a control: did it show what it must?
    pub caught: bool,
    /// How long the run and its judgement took.
    pub after_ms: u64,
    /// What the check saw, and the first pieces of evidence; if it was not caught, what came instead.
    pub evidence: Vec<String>,
    /// All checks that failed.
    pub failed: Vec<String>,
    #[serde(skip)]
    is_control: bool,
}

impl Caught {
    pub(super) fn new(task: Task, after_ms: u64, judged: Result<Judgement, Trouble>) -> Self {
        let (what, checks) = match task {
            Task::Bug(row) => (row.mutant.what(), row.checks.join(" or ")),
            Task::Sound(_) => ("without a bug every check passes", "all".to_owned()),
            Task::NoLock => ("without any lock much is lost", "lost updates".to_owned()),
        };
        let mut caught = Self {
            name: task.name(),
            what: what.to_owned(),
            run: task.setup().name.to_owned(),
            check: checks,
            caught: false,
            after_ms,
            evidence: Vec::new(),
            failed: Vec::new(),
            is_control: !matches!(task, Task::Bug(_)),
        };
        match judged {
            Ok(judgement) => caught.judge(task, &judgement),
            Err(trouble) => caught.evidence.push(format!("the run could not be carried out: {trouble}")),
        }
        caught
    }

    fn judge(&mut self, task: Task, judgement: &Judgement) {
        let failed = |finding: &&Finding| finding.outcome == Outcome::Failed;
        let all: Vec<&Finding> = judgement.checks.iter().filter(failed).collect();
        self.failed = all.iter().map(|finding| finding.check.clone()).collect();
        match task {
            Task::Bug(row) => {
                let named = row.checks.iter().find_map(|check| all.iter().find(|finding| finding.check == *check));
                if let Some(finding) = named {
                    (self.caught, self.check) = (true, finding.check.clone());
                    self.evidence = told(finding);
                } else {
                    let others = judgement.checks.iter().filter(|finding| row.checks.contains(&finding.check.as_str()));
                    self.evidence.extend(others.map(|finding| format!("{}: {}", finding.check, finding.saw)));
                }
            }
            Task::Sound(_) => {
                self.caught = all.is_empty();
                self.evidence = all.iter().flat_map(|finding| told(finding)).collect();
                let tally = judgement.acquisitions;
                self.evidence.push(format!("{} of {} questions were held", tally.acknowledged, tally.attempted));
            }
            Task::NoLock => {
                let bare = judgement.updates.get(&Guard::Bare).copied().unwrap_or_default();
                let (lost, of) = (bare.lost, bare.tally.acknowledged);
                self.caught = of > 0 && lost as f64 >= HEAVY_LOSS * of as f64;
                self.evidence.push(format!("{lost} of {of} updates were lost"));
            }
        }
    }
}

fn told(finding: &Finding) -> Vec<String> {
    let first = format!("{}: {}", finding.check, finding.saw);
    std::iter::once(first).chain(finding.evidence.iter().cloned()).collect()
}

/// What came of all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Was every bug caught, and did every control show what it must?
    pub passed: bool,
    /// The bugs.
    pub mutants: Vec<Caught>,
    /// The controls.
    pub controls: Vec<Caught>,
}

impl Results {
    pub(super) fn new(rows: Vec<Caught>) -> Self {
        let passed = !rows.is_empty() && rows.iter().all(|row| row.caught);
        let (controls, mutants) = rows.into_iter().partition(|row| row.is_control);
        Self { schema: SCHEMA, passed, mutants, controls }
    }

    /// The table, for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in self.controls.iter().chain(&self.mutants) {
            text.push_str(&row.line());
        }
        let caught = |rows: &[Caught]| rows.iter().filter(|row| row.caught).count();
        let (mutants, controls) = (&self.mutants, &self.controls);
        let _ = writeln!(
            text,
            "{} of {} bugs caught, {} of {} controls sound",
            caught(mutants),
            mutants.len(),
            caught(controls),
            controls.len()
        );
        text
    }
}

impl Caught {
    /// Its line in the table; with what came instead, if it was not caught.
    pub fn line(&self) -> String {
        let word = match (self.caught, self.is_control) {
            (true, false) => "caught",
            (false, false) => "MISSED",
            (true, true) => "sound",
            (false, true) => "NOT SOUND",
        };
        let seconds = self.after_ms.div_ceil(1_000);
        let mut line = format!("{word:9} {:34} {:28} {seconds:3} s  {}\n", self.name, self.check, self.what);
        if !self.caught {
            for evidence in &self.evidence {
                let _ = writeln!(line, "          {evidence}");
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::ROWS;
    use super::*;

    #[test]
    fn a_run_that_failed_is_a_miss_and_says_why() {
        let missed = Caught::new(Task::Bug(&ROWS[0]), 1_500, Err(Trouble::new("no server")));
        assert!(!missed.caught);
        let results = Results::new(vec![missed]);
        assert!(!results.passed);
        let text = results.text();
        assert!(text.contains("MISSED") && text.contains("no server") && text.contains("0 of 1 bugs"), "{text}");
        let json = serde_json::to_value(&results).unwrap();
        assert_eq!(json["schema"], SCHEMA);
        for field in ["name", "what", "check", "caught", "after_ms", "evidence"] {
            assert!(!json["mutants"][0][field].is_null(), "{field}");
        }
    }

    #[test]
    fn nothing_at_all_is_no_success() {
        assert!(!Results::new(Vec::new()).passed);
    }
}
