//! Writes down how each law ended, so that `cargo xtask test` can close with a table.
//!
//! One JSON line per law in the folder named by `LOCKKEEPER_LAWS_DIR`, one file per process; nothing without it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

pub(crate) fn law(store: &str, law: &str, outcome: &str, why: &str) {
    let Some(folder) = std::env::var_os("LOCKKEEPER_LAWS_DIR") else { return };
    let line = serde_json::json!({ "store": store, "law": law, "outcome": outcome, "why": why });
    let path = PathBuf::from(folder).join(format!("{}.jsonl", std::process::id()));
    // One write per line: lines of tests that run side by side do not mix.
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    if let Err(error) = written {
        panic!("the outcome of a law could not be written to {}: {error}", path.display());
    }
}
