//! Fuzzes for as long as you like: `cargo run --profile fuzz -p lockkeeper-fuzz -- TARGET… --for 10m`.
//!
//! Surprise: an input that takes longer than [`STALL`] is a finding too. It is kept, and the program ends.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lockkeeper_fuzz::{TARGETS, Target, corpus, mutate, target, trial};

/// No input takes this long.
const STALL: Duration = Duration::from_secs(10);
const SAY_EVERY: Duration = Duration::from_secs(10);

const HELP: &str = "usage: fuzz TARGET… [--for 10m] [--seed S] [--corpus DIR] [--input FILE]

Mutates the corpus of each TARGET (or of `all`), for a minute each or as --for says. What fails is made short and kept
in the folder `fuzz-found` of cargo's target folder. --input runs one file, once. --corpus takes inputs from DIR/TARGET.";

struct Args {
    targets: Vec<&'static Target>,
    each: Duration,
    seed: u64,
    corpus: PathBuf,
    input: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = match read_args(std::env::args().skip(1).collect()) {
        Ok(Some(args)) => args,
        Ok(None) => {
            println!("{HELP}\n");
            TARGETS.iter().for_each(|target| println!("  {:16} {}", target.name, target.about));
            return ExitCode::SUCCESS;
        }
        Err(why) => return fails(&why),
    };
    let mut failed = false;
    for target in &args.targets {
        let done = match &args.input {
            Some(path) => once(target, path),
            None => fuzz(target, &args),
        };
        if let Err(why) = done {
            fails(&why);
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn fails(why: &str) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::FAILURE
}

fn read_args(words: Vec<String>) -> Result<Option<Args>, String> {
    let mut args = Args {
        targets: Vec::new(),
        each: Duration::from_secs(60),
        seed: fastrand::u64(..),
        corpus: corpus::folder(),
        input: None,
    };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
        match word.as_str() {
            "--for" => args.each = humantime::parse_duration(&value()?).map_err(|error| format!("--for: {error}"))?,
            "--seed" => args.seed = value()?.parse().map_err(|error| format!("--seed: {error}"))?,
            "--corpus" => args.corpus = value()?.into(),
            "--input" => args.input = Some(value()?.into()),
            "-h" | "--help" => return Ok(None),
            "all" => args.targets = TARGETS.iter().collect(),
            name => match target(name) {
                Some(target) => args.targets.push(target),
                None => return Err(format!("there is no target `{name}`\n  hint: `--help` lists them")),
            },
        }
    }
    Ok((!args.targets.is_empty()).then_some(args))
}

fn once(target: &Target, path: &PathBuf) -> Result<(), String> {
    let input = std::fs::read(path).map_err(|error| format!("`{}` cannot be read: {error}", path.display()))?;
    trial::holds(target, &input)?;
    println!("{}: {} holds", target.name, path.display());
    Ok(())
}

fn fuzz(target: &'static Target, args: &Args) -> Result<(), String> {
    let inputs = corpus::read(&args.corpus, target.name).map_err(|error| format!("the corpus: {error}"))?;
    let inputs: Vec<Vec<u8>> = inputs.into_iter().map(|(_, input)| input).collect();
    println!("{}: {} inputs, seed {}, for {:?}", target.name, inputs.len(), args.seed, args.each);
    let now = Arc::new(Mutex::new((Instant::now(), Vec::new())));
    let (_watched, ended) = std::sync::mpsc::channel::<()>();
    let seen = now.clone();
    std::thread::spawn(move || {
        while ended.recv_timeout(Duration::from_secs(1)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            stalled(target, &seen);
        }
    });
    let begun = Instant::now();
    let (mut runs, mut said) = (0u64, Instant::now());
    while begun.elapsed() < args.each {
        let input = mutate::input(&inputs, target.words, args.seed.wrapping_add(runs));
        let mut current = now.lock().unwrap_or_else(PoisonError::into_inner);
        *current = (Instant::now(), input.clone());
        drop(current);
        if let Err(why) = trial::holds(target, &input) {
            let report = trial::report(target, &input, &why);
            return Err(format!("{report}\n(seed {}, after {runs} others)", args.seed));
        }
        runs += 1;
        if said.elapsed() > SAY_EVERY {
            said = Instant::now();
            println!("{}: {}", target.name, rate(runs, begun.elapsed()));
        }
    }
    println!("{}: done, {}, nothing found", target.name, rate(runs, begun.elapsed()));
    Ok(())
}

fn rate(runs: u64, time: Duration) -> String {
    format!("{runs} executions, {:.0} a second", runs as f64 / time.as_secs_f64().max(0.001))
}

/// Ends the program if the input under way has been under way for too long.
fn stalled(target: &Target, now: &Mutex<(Instant, Vec<u8>)>) {
    let current = now.lock().unwrap_or_else(PoisonError::into_inner);
    if current.0.elapsed() < STALL {
        return;
    }
    let kept = trial::keep(target, &current.1).map(|path| trial::command(target, &path));
    fails(&format!("target `{}`: an input takes longer than {STALL:?}: {kept:?}", target.name));
    std::process::exit(1);
}
