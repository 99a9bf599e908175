//! `verify --mutants`: every seeded bug, in a build that has them, and the table of what caught it.
//!
//! The surprise: this build is never an optimised one; the feature refuses to be.

use std::path::Path;
use std::process::Command;

use lockkeeper_rig::Trouble;
use serde_json::{Value, json};

use crate::run;

/// Runs all of them. What is kept is one line for each.
pub fn run(program: &Path, folder: &Path) -> Result<Value, Trouble> {
    let _ = std::fs::remove_dir_all(folder); // of an earlier run
    let mut command = Command::new(program);
    command.args(["verify", "mutants", "--json", "--report"]).arg(folder);
    // A table with a bug that was not caught is an answer too, and a failure below.
    let out = command.stderr(std::process::Stdio::inherit()).output();
    let out = out.map_err(|e| Trouble::new(format!("cannot run {}: {e}", program.display())))?;
    let said: Value = serde_json::from_slice(&out.stdout)
        .map_err(|e| Trouble::new(format!("`verify mutants` printed no table ({}): {e}", out.status)))?;
    Ok(record(&said))
}

fn record(said: &Value) -> Value {
    let lines = |field: &str| -> Vec<Value> {
        let keep = |row: &Value| {
            json!({
                "name": row["name"], "what": row["what"], "run": row["run"], "check": row["check"],
                "caught": row["caught"], "after_ms": row["after_ms"], "saw": row["evidence"][0],
            })
        };
        said[field].as_array().into_iter().flatten().map(keep).collect()
    };
    json!({ "passed": said["passed"], "commit": super::commit(), "bugs": lines("mutants"), "controls": lines("controls") })
}

/// Nothing may have been missed.
pub fn conclude(table: &Value) -> Result<(), Trouble> {
    let rows = ["bugs", "controls"].into_iter().flat_map(|field| table[field].as_array().into_iter().flatten());
    let missed: Vec<String> = rows
        .filter(|row| row["caught"] != true)
        .map(|row| {
            format!("{}: {}", row["name"].as_str().unwrap_or("?"), row["saw"].as_str().unwrap_or("nothing was seen"))
        })
        .collect();
    if table["passed"] == true && missed.is_empty() {
        return Ok(());
    }
    Err(Trouble::new(format!(
        "not every seeded bug was caught, or a run without one was not sound:\n  - {}",
        missed.join("\n  - ")
    ))
    .hint(format!("the histories are in {}/target/mutants", run::root().display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_that_was_not_caught_fails_the_whole() {
        let row = |caught: bool| json!({ "name": "blind-delete", "caught": caught, "evidence": ["held-is-true: 0"] });
        let table =
            |caught: bool| record(&json!({ "passed": caught, "mutants": [row(caught)], "controls": [row(true)] }));
        assert!(conclude(&table(true)).is_ok());
        let trouble = conclude(&table(false)).unwrap_err().to_string();
        assert!(trouble.contains("blind-delete: held-is-true: 0"), "{trouble}");
        assert!(conclude(&json!({})).is_err(), "no table is no success");
    }
}
