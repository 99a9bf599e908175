//! `verify mutants`: seeded bugs, each of which a check must catch. A release has none of them.

use std::path::PathBuf;

use lockkeeper::mutants::{BUILT_IN, Mutant};
use lockkeeper_verify::mutants::{self, Caught};

use super::{asked, worker_program};
use crate::args::MutantsArgs;
use crate::exit::{self, Failure};
use crate::look::{print, print_json};

/// Runs with every seeded bug in turn.
pub async fn mutants(args: &MutantsArgs) -> Result<u8, Failure> {
    built_in()?;
    let only = (!args.only.is_empty()).then_some(args.only.as_slice());
    // A wrong name is refused before a folder is made.
    mutants::tasks(only).map_err(|trouble| Failure::new(exit::USAGE, trouble.to_string()))?;
    let folder = args.report.clone().unwrap_or_else(|| PathBuf::from("verify-mutants"));
    asked::make(&folder)?;
    let told = |caught: &Caught| exit::say(&format!("lockkeeper: {}", caught.line().trim_end()), None);
    let ran = mutants::run_all(&worker_program()?, &folder, only, &told).await;
    let results = ran.map_err(|trouble| Failure::new(exit::STORE, trouble.to_string()))?;
    match args.json {
        true => print_json(&results)?,
        false => print(&results.text())?,
    };
    Ok(if results.passed { 0 } else { exit::FAILED })
}

/// Is there such a bug, in this build?
pub fn known(name: &str) -> Result<(), Failure> {
    built_in()?;
    if Mutant::ALL.iter().any(|mutant| mutant.name() == name) {
        return Ok(());
    }
    let names: Vec<&str> = Mutant::ALL.iter().map(|mutant| mutant.name()).collect();
    Err(Failure::new(exit::USAGE, format!("there is no seeded bug `{name}`"))
        .with_hint(format!("there are: {}", names.join(", "))))
}

fn built_in() -> Result<(), Failure> {
    if BUILT_IN {
        return Ok(());
    }
    Err(Failure::new(exit::USAGE, "this build has no seeded bugs, and no release has any")
        .with_hint("in a clone: `cargo run -p lockkeeper-cli --features mutants -- verify mutants`"))
}
