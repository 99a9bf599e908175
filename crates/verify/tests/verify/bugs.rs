//! A seeded bug is caught by the check that the table names, and the same run without it is sound. All others take minutes
//! and are run by `lockkeeper verify mutants`.

use std::path::PathBuf;

use lockkeeper_verify::mutants::{SCHEMA, run_all};
use lockkeeper_verify::run::WorkerProgram;

#[tokio::test]
async fn a_seeded_bug_is_caught_and_the_same_run_without_it_is_sound() {
    let program = WorkerProgram { program: PathBuf::from(env!("CARGO_BIN_EXE_verify-worker")), args: Vec::new() };
    let folder = tempfile::tempdir().unwrap();
    let only = ["hand-over-same-token".to_owned()];
    let results = run_all(&program, folder.path(), Some(&only), &|_| {}).await.unwrap();
    assert!(results.passed, "{}", results.text());
    assert_eq!((results.schema, results.mutants.len(), results.controls.len()), (SCHEMA, 1, 2));
    assert_eq!(results.mutants[0].check, "tokens-rise");
}
