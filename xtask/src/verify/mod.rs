//! `verify`: the smoke matrix and the full one, each row a run of `lockkeeper verify`; and the page of what was recorded.
//!
//! The surprise: it runs one row at a time. Two at once would be faster, and would make their times those of a busier
//! machine than the one on the page.

mod page;
mod result;
mod rows;
mod seeded;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lockkeeper_rig::{Process, SERVERS, Spec, Trouble};
use serde_json::{Value, json};

use self::result::{Done, RATE_WANTED};
use self::rows::{Row, Untested};
use crate::{run, setup};

/// Where results are kept, and the page that is made of them.
const RESULTS: &str = "docs/verified.json";
const PAGE: &str = "docs/verified.md";
/// A row waits for the last leases and judges what it has seen; this is more than that takes on a slow machine.
const JUDGING_TAKES: Duration = Duration::from_secs(180);
/// Of what a row that failed said, this much is shown.
const LOG_TAIL_LINES: usize = 12;

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The full matrix.
    pub all: bool,
    /// Of that, these targets only.
    pub only: Option<Vec<String>>,
    /// Short rows in a debug build: to see that it works.
    pub quick: bool,
    /// Keep the results, and make the page of them.
    pub record: bool,
    /// The seeded bugs instead.
    pub mutants: bool,
    /// Only make the page.
    pub render: bool,
    /// Let the set-up use sudo.
    pub install: bool,
}

/// `cargo xtask verify`.
pub fn verify(options: &Options) -> Result<(), Trouble> {
    if options.render {
        return render(&run::root());
    }
    if options.mutants {
        return mutants(options);
    }
    let full = options.all || options.only.is_some();
    if options.record && (!full || options.quick) {
        return Err(Trouble::new("rows as short as these are not recorded").hint("--all --record"));
    }
    let servers: Vec<&'static Spec> = SERVERS.iter().collect();
    setup::setup(options.install, Some(&servers))?;
    let release = full && !options.quick;
    let program = build(if release { &["--release"] } else { &[] }, options.record)?;
    let (mut rows, untested) =
        if full { full_matrix(&program, options.only.as_deref())? } else { (rows::smoke(), vec![]) };
    if options.quick {
        rows::quick(&mut rows);
    }
    let folder = run::root().join("target/verify");
    let began = Instant::now();
    let mut done = Vec::new();
    for (at, row) in rows.into_iter().enumerate() {
        println!("--- {}: {} s", row.name(), row.seconds);
        done.push(run_row(&program, row, &folder));
        if full && !options.quick {
            // By now the row without faults of the same target has run: it comes first. Those of the smoke matrix are too
            // short to be compared.
            result::compare(&mut done);
        }
        println!("{}", done[at].line());
    }
    println!("\nverify: {} rows in {} s", done.len(), began.elapsed().as_secs());
    for slow in done.iter().filter(|done| done.record["rate_ratio"].as_f64().is_some_and(|ratio| ratio < RATE_WANTED)) {
        println!(
            "note: {} is slower outside of its faults than without any: {}",
            slow.row.name(),
            slow.record["rate_ratio"]
        );
    }
    if options.record {
        record(&run::root(), &done, &untested, options.only.as_deref())?;
    }
    conclude(&done, &folder)
}

/// `cargo xtask verify --mutants`.
fn mutants(options: &Options) -> Result<(), Trouble> {
    let servers: Vec<&'static Spec> = SERVERS.iter().collect();
    setup::setup(options.install, Some(&servers))?;
    let program = build(&["--features", "mutants"], false)?;
    let table = seeded::run(&program, &run::root().join("target/mutants"))?;
    if options.record {
        let mut results = kept(&run::root())?;
        results["mutants"] = table.clone();
        keep(&run::root(), &results)?;
    }
    seeded::conclude(&table)
}

/// Anything that failed is a failure of the whole.
fn conclude(done: &[Done], folder: &Path) -> Result<(), Trouble> {
    let mut problems = Vec::new();
    for one in done {
        problems.extend(one.problems.iter().map(|problem| format!("{}: {problem}", one.row.name())));
    }
    if done.is_empty() {
        problems.push("no row was run".to_string());
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Trouble::new(format!("not everything was kept:\n  - {}", problems.join("\n  - "))).hint(format!(
        "the histories of rows that failed are in {}; `lockkeeper verify check DIR` judges one again",
        folder.display()
    )))
}

/// The program, freshly built; in release mode for the rows that are recorded.
fn build(how: &[&str], with_commit: bool) -> Result<PathBuf, Trouble> {
    let mut command = run::cargo();
    command.args(["build", "--locked", "--package", "lockkeeper-cli", "--message-format=json"]);
    command.args(how);
    if with_commit {
        command.env("LOCKKEEPER_COMMIT", commit());
    }
    let said = run::output(&mut command)?;
    let program = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
        let is_it = message["target"]["name"] == "lockkeeper" && message["target"]["kind"][0] == "bin";
        message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
    });
    program.ok_or_else(|| Trouble::new("cargo does not say where the program `lockkeeper` is"))
}

/// The commit that is checked out, marked where the tree has changes.
fn commit() -> String {
    let git = |args: &[&str]| {
        let out = Command::new("git").args(args).current_dir(run::root()).output();
        out.ok().filter(|out| out.status.success()).map(|out| String::from_utf8_lossy(&out.stdout).trim().to_string())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return String::new() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty());
    if changed { format!("{commit}-changed") } else { commit }
}

/// Every target against all that can be done to it. That the machine lacks something is no reason to leave it out.
fn full_matrix(program: &Path, only: Option<&[String]>) -> Result<(Vec<Row>, Vec<Untested>), Trouble> {
    let said = run::output(Command::new(program).args(["verify", "targets", "--json"]))?;
    let said: Value = serde_json::from_str(&said).map_err(|e| Trouble::new(format!("`verify targets`: {e}")))?;
    let (mut rows, mut untested) = rows::all(&said)?;
    if let Some(missing) = untested.iter().find(|one| one.why.contains("not installed")) {
        return Err(Trouble::new(missing.why.clone()).hint("cargo xtask setup --install"));
    }
    if let Some(only) = only {
        let known: Vec<&str> =
            said["targets"].as_array().into_iter().flatten().filter_map(|t| t["target"].as_str()).collect();
        if let Some(unknown) = only.iter().find(|name| !known.contains(&name.as_str())) {
            return Err(
                Trouble::new(format!("there is no target `{unknown}`")).hint(format!("one of: {}", known.join(", ")))
            );
        }
        rows.retain(|row| only.contains(&row.target));
        untested.retain(|one| only.contains(&one.target));
    }
    Ok((rows, untested))
}

/// One row. Its history is kept only if it failed.
fn run_row(program: &Path, row: Row, folder: &Path) -> Done {
    let place = folder.join(row.name());
    match report_of(program, &row, &place) {
        Ok(report) => {
            let done = Done::new(row, &report);
            if done.problems.is_empty() {
                let _ = fs::remove_dir_all(&place);
            }
            done
        }
        Err(trouble) => Done::failed(row, trouble.to_string()),
    }
}

fn report_of(program: &Path, row: &Row, place: &Path) -> Result<Value, Trouble> {
    let refused =
        |what: &str, error: std::io::Error| Trouble::new(format!("cannot {what} {}: {error}", place.display()));
    let _ = fs::remove_dir_all(place); // of an earlier run
    fs::create_dir_all(place).map_err(|e| refused("make", e))?;
    let [out, log] = ["said.json", "log.txt"].map(|name| place.join(name));
    let mut command = Command::new(program);
    command.args(row.args()).arg("--report").arg(place.join("history")).stdin(Stdio::null());
    command.stdout(File::create(&out).map_err(|e| refused("write to", e))?);
    command.stderr(File::create(&log).map_err(|e| refused("write to", e))?);
    for (key, _) in std::env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("LOCKKEEPER_")) {
        command.env_remove(key); // a store of the developer's own must not be used
    }
    let ended = Process::spawn(&mut command)?.wait(Duration::from_secs(row.seconds.into()) + JUDGING_TAKES)?;
    // 1 is a judgement too: a check failed, and the report says which.
    if !matches!(ended.code(), Some(0 | 1)) {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n      ");
        return Err(Trouble::new(format!("it could not be run ({ended}):\n      {tail}")));
    }
    let said = fs::read_to_string(&out).map_err(|e| refused("read from", e))?;
    serde_json::from_str(&said).map_err(|e| Trouble::new(format!("what it printed is not JSON: {e}")))
}

/// Keeps the results; those of targets that were left out stay as they were.
fn record(root: &Path, done: &[Done], untested: &[Untested], only: Option<&[String]>) -> Result<(), Trouble> {
    let stays = |row: &&Value| only.is_some_and(|only| !only.iter().any(|name| row["target"] == name.as_str()));
    let mut results = kept(root)?;
    let before =
        |field: &str| results[field].as_array().into_iter().flatten().filter(stays).cloned().collect::<Vec<_>>();
    let (mut rows, mut cannot) = (before("rows"), before("untested"));
    rows.extend(done.iter().map(|done| done.record.clone()).filter(|record| !record.is_null()));
    cannot.extend(untested.iter().map(|one| json!({ "target": one.target, "nemesis": one.nemesis, "why": one.why })));
    (results["rows"], results["untested"]) = (json!(rows), json!(cannot));
    keep(root, &results)
}

/// What was kept before.
fn kept(root: &Path) -> Result<Value, Trouble> {
    match fs::read_to_string(root.join(RESULTS)) {
        Ok(text) => serde_json::from_str(&text).map_err(|e| Trouble::new(format!("{RESULTS} cannot be read: {e}"))),
        Err(_) => Ok(json!({ "schema": "lockkeeper.verified/1", "rows": [], "untested": [] })),
    }
}

/// Keeps it, and makes the page of it.
fn keep(root: &Path, results: &Value) -> Result<(), Trouble> {
    fs::write(root.join(RESULTS), written(results))
        .map_err(|e| Trouble::new(format!("cannot write {RESULTS}: {e}")))?;
    render(root)
}

/// A line for each row: changes show which they are, and the file stays small.
fn written(results: &Value) -> String {
    let field = |(name, value): (&String, &Value)| match value.as_array() {
        Some(rows) => {
            let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
            format!("{}: [\n{}\n]", json!(name), rows.join(",\n"))
        }
        None => format!("{}: {value}", json!(name)),
    };
    let fields: Vec<String> = results.as_object().into_iter().flatten().map(field).collect();
    format!("{{\n{}\n}}\n", fields.join(",\n"))
}

/// Makes the page of what is kept.
fn render(root: &Path) -> Result<(), Trouble> {
    let text = fs::read_to_string(root.join(RESULTS))
        .map_err(|e| Trouble::new(format!("cannot read {RESULTS}: {e}")).hint("cargo xtask verify --all --record"))?;
    let results: Value =
        serde_json::from_str(&text).map_err(|e| Trouble::new(format!("{RESULTS} cannot be read: {e}")))?;
    fs::write(root.join(PAGE), page::page(&results)).map_err(|e| Trouble::new(format!("cannot write {PAGE}: {e}")))?;
    println!("made {PAGE}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let results =
            json!({ "schema": "x", "rows": [{ "a": 1.5 }, { "b": "\n" }], "none": [], "mutants": { "c": [2] } });
        let text = written(&results);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), results);
        assert_eq!(text.lines().filter(|line| line.starts_with("{\"")).count(), 2, "{text}");
    }

    #[test]
    fn the_page_is_made_of_what_is_kept() {
        let root = run::root();
        let page = fs::read_to_string(root.join(PAGE));
        let results = fs::read_to_string(root.join(RESULTS)).expect("what was recorded");
        let results: Value = serde_json::from_str(&results).expect("JSON");
        assert_eq!(page.expect("the page"), page::page(&results), "run `cargo xtask verify --render`");
    }

    #[test]
    fn a_row_that_failed_fails_the_whole() {
        let row = rows::smoke().remove(0);
        let failed = Done::failed(row, "it could not be run".to_string());
        let trouble = conclude(&[failed], Path::new("target/verify")).unwrap_err().to_string();
        assert!(trouble.contains("sqlite-none-nothing: it could not be run"), "{trouble}");
        assert!(conclude(&[], Path::new("x")).is_err(), "nothing run is nothing shown");
    }
}
