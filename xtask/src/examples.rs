//! `examples`: builds every example and runs it, so that none is only text.
//!
//! The surprise: they run with a state folder of their own, so that an example that uses the default store does not meet
//! the developer's locks.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use lockkeeper_rig::{Process, Trouble, rig_dir};
use serde_json::Value;

/// An example shows something and ends.
const ONE_TAKES: Duration = Duration::from_secs(60);

/// `cargo xtask examples`.
pub fn examples() -> Result<(), Trouble> {
    let examples = build()?;
    if examples.is_empty() {
        println!("examples: there are none yet");
        return Ok(());
    }
    let mut failed = Vec::new();
    for (name, program) in &examples {
        let began = Instant::now();
        println!("--- example {name}");
        match run_one(name, program) {
            Ok(()) => println!("--- example {name}: ok in {:.1} s", began.elapsed().as_secs_f32()),
            Err(trouble) => {
                println!("--- example {name}: FAILED: {trouble}");
                failed.push(name.as_str());
            }
        }
    }
    if failed.is_empty() {
        println!("examples: {} ran", examples.len());
        return Ok(());
    }
    Err(Trouble::new(format!("{} of {} examples failed: {}", failed.len(), examples.len(), failed.join(", "))))
}

/// Name and program of every example of the workspace, freshly built.
fn build() -> Result<Vec<(String, PathBuf)>, Trouble> {
    let mut command = run_cargo();
    command.args(["build", "--workspace", "--examples", "--all-features", "--locked", "--message-format=json"]);
    let said = crate::run::output(&mut command)?;
    let mut examples: Vec<(String, PathBuf)> = said.lines().filter_map(example_in).collect();
    examples.sort();
    examples.dedup();
    Ok(examples)
}

fn run_cargo() -> Command {
    let mut command = crate::run::cargo();
    command.env("CARGO_TERM_QUIET", "true");
    command
}

/// The example that one line of cargo's messages is about, if it is about one.
fn example_in(line: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(line).ok()?;
    let target = &message["target"];
    let is_example = target["kind"].as_array()?.iter().any(|kind| kind == "example");
    let program = message["executable"].as_str().filter(|_| is_example)?;
    Some((target["name"].as_str()?.to_string(), PathBuf::from(program)))
}

fn run_one(name: &str, program: &Path) -> Result<(), Trouble> {
    let state = rig_dir().join(format!("example-{}-{name}", std::process::id()));
    fs::create_dir_all(&state).map_err(|e| Trouble::new(format!("cannot make {}: {e}", state.display())))?;
    let ran = run_in(&state, program);
    let _ = fs::remove_dir_all(&state);
    ran
}

fn run_in(state: &Path, program: &Path) -> Result<(), Trouble> {
    let mut command = Command::new(program);
    command.current_dir(crate::run::root()).stdin(Stdio::null());
    for (key, _) in env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("LOCKKEEPER_")) {
        command.env_remove(key); // a store of the developer's own must not be used
    }
    command.env("XDG_STATE_HOME", state).env("XDG_CONFIG_HOME", state).env("HOME", state);
    let mut process = Process::spawn(&mut command)?;
    let status = process.wait(ONE_TAKES)?;
    if status.success() { Ok(()) } else { Err(Trouble::new(format!("it ended with {status}"))) }
}

#[cfg(test)]
mod tests {
    use super::example_in;

    #[test]
    fn only_examples_are_taken_from_what_cargo_says() {
        let line = r#"{"reason":"compiler-artifact","target":{"kind":["example"],"name":"a"},"executable":"/t/a"}"#;
        assert_eq!(example_in(line), Some(("a".to_string(), "/t/a".into())));
        for other in [line.replace("example", "bin"), line.replace("\"/t/a\"", "null"), "not json".to_string()] {
            assert_eq!(example_in(&other), None, "{other}");
        }
    }
}
