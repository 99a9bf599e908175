//! `cargo xtask`: set-up, servers, tests, examples, benchmarks, and the tree's own rules.
//!
//! The surprise: it depends on nothing of this workspace but the rig's folder, so it works while everything else is
//! broken.

mod args;
mod bench;
mod examples;
mod help;
mod interop;
mod laws;
mod licences;
mod lifecycle;
mod places;
mod run;
mod setup;
mod test;
mod tidy;
mod verify;

use std::process::ExitCode;

use args::Args;
use lockkeeper_rig::Trouble;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let task = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    match start(&task, rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("error: {trouble}");
            ExitCode::FAILURE
        }
    }
}

fn start(task: &str, rest: Vec<String>) -> Result<(), Trouble> {
    if matches!(task, "-h" | "--help" | "help") {
        println!("{}", help::overview());
        return Ok(());
    }
    let page = help::page(task)?;
    let own_words = rest.iter().take_while(|word| *word != "--");
    if own_words.into_iter().any(|word| word == "-h" || word == "--help") {
        println!("{page}");
        // Which benchmarks there are only their own program knows.
        return if task == "bench" { bench::bench(vec!["--help".to_string()]) } else { Ok(()) };
    }
    let mut args = Args::new(task, rest);
    match task {
        "setup" => {
            let install = args.flag("--install");
            args.finish()?;
            setup::setup(install, None)
        }
        "up" => args.finish().and_then(|()| lifecycle::up()),
        "down" => args.finish().and_then(|()| lifecycle::down()),
        "test" => {
            let options = test::Options {
                only: args.list("--only")?,
                install: args.flag("--install"),
                keep: args.flag("--keep"),
            };
            args.finish()?;
            test::test(&options)
        }
        "examples" => args.finish().and_then(|()| examples::examples()),
        "interop" => {
            let (full, stand_in) = (args.flag("--full"), args.flag("--stand-in"));
            let install = args.flag("--install");
            interop::interop(&interop::Options { full, install, stand_in, peers: args.names()? })
        }
        "bench" => {
            let without_peers = args.flag("--no-peers");
            let words = args.rest();
            if bench::wants_peers(&words) && !without_peers { bench::with_peers(words) } else { bench::bench(words) }
        }
        "verify" => {
            let mut flag = |name: &str| args.flag(name);
            let (smoke, all, quick) = (flag("--smoke"), flag("--all"), flag("--quick"));
            let (record, render, install) = (flag("--record"), flag("--render"), flag("--install"));
            let mutants = flag("--mutants");
            let only = args.list("--only")?;
            args.finish()?;
            if (smoke || mutants) && (all || only.is_some()) {
                let which = if smoke { "--smoke" } else { "--mutants" };
                return Err(
                    Trouble::new(format!("{which} is a run of its own")).hint("leave it away, or --all and --only")
                );
            }
            verify::verify(&verify::Options { all, only, quick, record, mutants, render, install })
        }
        "tidy" => args.finish().and_then(|()| check_tree()),
        "licences" => args.finish().and_then(|()| licences::licences()),
        _ => Err(Trouble::new(format!("`{task}` has a help page and nothing to run; this is a bug"))),
    }
}

fn check_tree() -> Result<(), Trouble> {
    let found = tidy::check(&run::root())?;
    for finding in &found {
        println!("{finding}");
    }
    match found.len() {
        0 => {
            println!("tidy: the tree keeps its rules");
            Ok(())
        }
        count => Err(Trouble::new(format!("the tree breaks its rules in {count} places"))
            .hint("each line says where and what to do")),
    }
}
