//! The laws that ran: reads what the test programs wrote, counts, and prints the closing table.
//!
//! The surprise: silence is a failure. A store that should have run and has no law that passed or failed, or a line that
//! cannot be read, fails the run just as a broken law does.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use lockkeeper_rig::Trouble;
use serde_json::Value;

/// Stores whose laws must have run. A new store adds its line; its server, if it has one, has the same name in the rig.
pub const EXPECTED: &[&str] = &["memory", "sqlite", "redis", "etcd", "etcd-3"];

/// One law on one store.
#[derive(Debug)]
struct Record {
    store: String,
    kind: String,
    law: String,
    outcome: String,
    why: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Everything that was written, and what was wrong with it.
#[derive(Debug, Default)]
pub struct Laws {
    records: Vec<Record>,
    unreadable: Vec<String>,
}

impl Laws {
    /// Reads every file in the folder: one JSON object per line.
    pub fn read(folder: &Path) -> Result<Laws, Trouble> {
        let refused = |e: std::io::Error| Trouble::new(format!("cannot read {}: {e}", folder.display()));
        let mut laws = Laws::default();
        for file in folder.read_dir().map_err(refused)? {
            let path = file.map_err(refused)?.path();
            let text = std::fs::read_to_string(&path).map_err(refused)?;
            laws.add(&path.file_name().unwrap_or_default().to_string_lossy(), &text);
        }
        laws.records.sort_by(|a, b| (&a.store, &a.law).cmp(&(&b.store, &b.law)));
        Ok(laws)
    }

    fn add(&mut self, file: &str, text: &str) {
        for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match Record::parse(line) {
                Some(record) => self.records.push(record),
                None => self.unreadable.push(format!("{file}:{}: {line}", n + 1)),
            }
        }
    }

    /// Why this is not a success, if it is not. `expected` is what had to run.
    pub fn problems(&self, expected: &[&str]) -> Vec<String> {
        let tallies = self.tallies();
        let silent = expected.iter().filter(|store| tallies.get(**store).is_none_or(|t| t.passed + t.failed == 0));
        let silent = silent.map(|store| match tallies.get(store) {
            Some(_) => format!("every law of `{store}` was skipped"),
            None => format!("no law of `{store}` was run"),
        });
        let broken = self.records.iter().filter(|record| record.outcome == "failed");
        let broken = broken.map(|r| format!("`{}` broke `{}`: {}", r.store, r.law, r.why));
        let unreadable = self.unreadable.iter().map(|line| format!("cannot read the result {line}"));
        broken.chain(silent).chain(unreadable).collect()
    }

    /// The tables, each skip with its reason, and the total alone on a line.
    pub fn table(&self) -> String {
        let mut out = self.by_kind();
        let tallies = self.tallies();
        let width = tallies.keys().map(|store| store.len()).max().unwrap_or(0).max("store".len());
        let _ = writeln!(out, "{:<width$}  {:>6}  {:>6}  {:>7}", "store", "passed", "failed", "skipped");
        for (store, t) in &tallies {
            let _ = writeln!(out, "{store:<width$}  {:>6}  {:>6}  {:>7}", t.passed, t.failed, t.skipped);
        }
        let mut skipped: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for record in self.records.iter().filter(|record| record.outcome == "skipped") {
            skipped.entry((&record.store, &record.why)).or_default().push(&record.law);
        }
        if !skipped.is_empty() {
            out.push_str("\nskipped, for want of a promise:\n");
        }
        for ((store, why), laws) in skipped {
            let _ = writeln!(out, "  {store:<width$}  {why}: {}", laws.join(", "));
        }
        let t = tallies.values().fold(Tally::default(), |sum, t| Tally {
            passed: sum.passed + t.passed,
            failed: sum.failed + t.failed,
            skipped: sum.skipped + t.skipped,
        });
        let _ = write!(out, "\n{} passed, {} failed, {} skipped", t.passed, t.failed, t.skipped);
        out
    }

    /// Laws kept, per kind and store that stands on its own; `3 of 5` where some were skipped or broken.
    fn by_kind(&self) -> String {
        let mut kinds: BTreeMap<&str, BTreeMap<&str, (usize, usize)>> = BTreeMap::new();
        for record in self.records.iter().filter(|record| EXPECTED.contains(&record.store.as_str())) {
            let (kept, all) = kinds.entry(&record.kind).or_default().entry(&record.store).or_default();
            *kept += usize::from(record.outcome == "passed");
            *all += 1;
        }
        let width = kinds.keys().map(|kind| kind.len()).max().unwrap_or(0).max("laws of".len());
        let mut out = format!("{:<width$}", "laws of");
        for store in EXPECTED {
            let _ = write!(out, "  {store:>9}");
        }
        out.push('\n');
        for (kind, stores) in &kinds {
            let _ = write!(out, "{kind:<width$}");
            for store in EXPECTED {
                let cell = match stores.get(store) {
                    None => "-".to_string(),
                    Some((kept, all)) if kept == all => kept.to_string(),
                    Some((kept, all)) => format!("{kept} of {all}"),
                };
                let _ = write!(out, "  {cell:>9}");
            }
            out.push('\n');
        }
        out.push('\n');
        out
    }

    fn tallies(&self) -> BTreeMap<&str, Tally> {
        let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
        for record in &self.records {
            let tally = tallies.entry(&record.store).or_default();
            match record.outcome.as_str() {
                "passed" => tally.passed += 1,
                "failed" => tally.failed += 1,
                _ => tally.skipped += 1,
            }
        }
        tallies
    }
}

impl Record {
    fn parse(line: &str) -> Option<Record> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value[key].as_str().map(str::to_string);
        let record = Record {
            store: text("store")?,
            kind: text("kind").unwrap_or_default(),
            law: text("law")?,
            outcome: text("outcome")?,
            why: text("why").unwrap_or_default(),
        };
        // A skip without its reason hides something.
        let known = match record.outcome.as_str() {
            "passed" | "failed" => true,
            "skipped" => !record.why.is_empty(),
            _ => false,
        };
        known.then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laws(lines: &[&str]) -> Laws {
        let mut laws = Laws::default();
        laws.add("1.jsonl", &lines.join("\n"));
        laws
    }

    const PASSED: &str = r#"{"store":"memory","law":"two_never_hold_at_once","outcome":"passed"}"#;
    const FAILED: &str = r#"{"store":"memory","law":"capacity_must_agree","outcome":"failed","why":"it did not"}"#;
    const SKIPPED: &str = r#"{"store":"sqlite","law":"first_come","outcome":"skipped","why":"order: Fifo"}"#;

    #[test]
    fn the_total_stands_alone_on_the_last_line() {
        let table = laws(&[PASSED, FAILED, SKIPPED]).table();
        assert_eq!(table.lines().last(), Some("1 passed, 1 failed, 1 skipped"));
        assert!(table.contains("memory       1       1        0"), "{table}");
        assert!(table.contains("order: Fifo: first_come"), "{table}");
        assert!(table.contains("1 of 2"), "{table}");
        assert_eq!(laws(&[]).table().lines().last(), Some("0 passed, 0 failed, 0 skipped"));
    }

    #[test]
    fn all_well_is_no_problem() {
        assert_eq!(laws(&[PASSED, "", PASSED]).problems(&["memory"]), Vec::<String>::new());
    }

    #[test]
    fn a_broken_law_is_a_problem() {
        assert_eq!(laws(&[PASSED, FAILED]).problems(&["memory"]), ["`memory` broke `capacity_must_agree`: it did not"]);
    }

    #[test]
    fn silence_is_a_problem() {
        assert_eq!(laws(&[PASSED]).problems(&["memory", "sqlite"]), ["no law of `sqlite` was run"]);
        assert_eq!(laws(&[PASSED, SKIPPED]).problems(&["memory", "sqlite"]), ["every law of `sqlite` was skipped"]);
    }

    #[test]
    fn what_cannot_be_read_is_a_problem() {
        for line in [
            "{\"store\":\"memory\",",
            r#"{"store":"memory","law":"x","outcome":"fine"}"#,
            r#"{"store":"memory","law":"x","outcome":"skipped"}"#,
            r#"{"law":"x","outcome":"passed"}"#,
        ] {
            assert_eq!(
                laws(&[PASSED, line]).problems(&["memory"]),
                [format!("cannot read the result 1.jsonl:2: {line}")]
            );
        }
    }
}
