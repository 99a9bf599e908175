//! Figures: ratios against the raw limit, measured in one run.
//!
//! `cargo run --release -p lockkeeper-bench -- [memory] [sqlite] [redis] [etcd] [--quick] [--record] [--render]`. How a ratio is
//! made stands in `harness`; the benchmarks know nothing of it but the trait `Arm`. Surprise: some benchmarks start
//! this program again as a child, in hidden modes that begin with the word `child`.

mod etcd;
mod handed;
mod harness;
mod local;
mod machine;
mod memory;
mod pairs;
mod peers;
mod player;
mod redis;
mod render;
mod report;
mod sqlite;
mod stats;
mod turns;

use std::path::{Path, PathBuf};

use harness::Plan;
use report::{Record, Report};

/// What a step of a benchmark comes to; any error ends the run.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "\
usage: lockkeeper-bench [memory] [sqlite] [redis] [etcd] [--quick] [--record [--note TEXT]] [--render] [--dir PATH]
       lockkeeper-bench redis-lanes [--quick]    every way to take and release a free lock, side by side

  memory, sqlite, redis, etcd
                  what to measure; all if none is named
  --quick         fewer and shorter slices: to see that it works, not a record
  --record        write bench/results/NAME.json and docs/bench.md
  --note TEXT     words that stand with the record
  --render        only make docs/bench.md from bench/results
  --dir PATH      where the files of the stores are made (a folder under target/)
  --peers PATH    where `cargo xtask bench` has installed other people's clients
";

/// The benchmarks by name.
const ALL: &[&str] = &["memory", "sqlite", "redis", "etcd"];

#[derive(Debug)]
struct Options {
    names: Vec<&'static str>,
    plan: Plan,
    record: bool,
    render: bool,
    note: Option<String>,
    folder: PathBuf,
    peers: Option<PathBuf>,
}

fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, rest)) if first == "child" => child(rest),
        Some((first, rest)) if first == "redis-lanes" => {
            redis::lanes(if rest.iter().any(|word| word == "--quick") { Plan::QUICK } else { Plan::RECORD })
        }
        _ => parse(&args).and_then(|options| options.map_or_else(help, |options| run(&options))),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn help() -> Outcome<()> {
    print!("{USAGE}");
    Ok(())
}

/// The root of the tree: two folders above this crate.
fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).unwrap_or(crate_folder).to_owned()
}

/// `None` asks for help.
fn parse(args: &[String]) -> Outcome<Option<Options>> {
    let mut options = Options {
        names: Vec::new(),
        plan: Plan::RECORD,
        record: false,
        render: false,
        note: None,
        folder: root().join("target/bench"),
        peers: None,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("`{arg}` needs a value\n{USAGE}"));
        match arg.as_str() {
            "--quick" => options.plan = Plan::QUICK,
            "--record" => options.record = true,
            "--render" => options.render = true,
            "--note" => options.note = Some(value()?.clone()),
            "--dir" => options.folder = value()?.into(),
            "--peers" => options.peers = Some(value()?.into()),
            "--help" | "-h" => return Ok(None),
            name => match ALL.iter().find(|known| **known == name) {
                Some(known) => options.names.push(known),
                None => return Err(format!("`{name}` is not known here\n{USAGE}").into()),
            },
        }
    }
    if options.names.is_empty() && !options.render {
        options.names = ALL.to_vec();
    }
    if options.record && options.plan.quick {
        return Err("`--quick` is not a record; hint: leave out one of `--quick` and `--record`".into());
    }
    Ok(Some(options))
}

fn run(options: &Options) -> Outcome<()> {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; hint: cargo run --release");
        if options.record {
            return Err("a debug build is not recorded; hint: cargo run --release".into());
        }
    }
    std::fs::create_dir_all(&options.folder)?;
    let machine = machine::facts(&options.folder)?;
    if machine::load() > 0.5 {
        eprintln!(
            "warning: the load is {:.2}; figures are better on a machine that does nothing else",
            machine::load()
        );
    }
    let root = root();
    let record = Record { root: &root, plan: options.plan, machine: &machine, note: options.note.as_deref() };
    for name in &options.names {
        let report = measure(name, options)?;
        report.print(options.plan);
        if options.record {
            report.write(&record)?;
        }
    }
    if options.record || options.render {
        render::render(&root)?;
    }
    Ok(())
}

fn measure(name: &str, options: &Options) -> Outcome<Report> {
    match name {
        "memory" => memory::run(options.plan),
        "sqlite" => sqlite::run(options.plan, &options.folder),
        "redis" => redis::run(options.plan, options.peers.as_deref()),
        "etcd" => etcd::run(options.plan, options.peers.as_deref()),
        other => Err(format!("`{other}` is not known here").into()),
    }
}

/// The hidden modes.
fn child(args: &[String]) -> Outcome<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["rss", whose, count] => memory::child(whose, count.parse()?),
        ["alone", side, seconds] => sqlite::alone(side, seconds.parse()?),
        ["handover", path] => sqlite::child(path),
        ["another", path, millis] => {
            sqlite::another(Path::new(path), std::time::Duration::from_millis(millis.parse()?))
        }
        ["redis", rest @ ..] => redis::child(rest),
        ["etcd", rest @ ..] => etcd::child(rest),
        _ => Err("this mode is for this program alone".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Outcome<Option<Options>> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn nothing_named_is_everything() {
        let options = parsed("").unwrap().unwrap();
        assert_eq!(options.names, ALL);
        assert!(!options.plan.quick && options.plan.pairs >= 30 && options.plan.slice.as_millis() >= 500);
        assert!(parsed("--render").unwrap().unwrap().names.is_empty());
        assert!(parsed("memory --quick").unwrap().unwrap().plan.quick);
        assert!(parsed("--help").unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_usage() {
        assert!(parsed("memroy").unwrap_err().to_string().contains("usage:"));
        assert!(parsed("--note").unwrap_err().to_string().contains("needs a value"));
        assert!(parsed("--quick --record").unwrap_err().to_string().contains("hint:"));
    }
}
