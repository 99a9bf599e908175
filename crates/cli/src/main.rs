//! The `lockkeeper` program: run commands one at a time, and look at the locks.
//!
//! Read `args` for what it can do, `run` for how a command is guarded. Surprise: this program also starts itself in
//! three hidden modes, which are looked for before anything else so that they start fast.

mod args;
mod breaking;
mod cells;
mod client;
mod config;
mod doctor;
mod exit;
mod json;
mod look;
mod manual;
mod run;
mod verify;
mod words;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use lockkeeper::mutants;

use self::args::{Action, Cli};
use self::exit::Failure;

fn main() -> ExitCode {
    if let Some(code) = run::hidden_mode().or_else(verify::hidden_mode) {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { 0 });
        }
    };
    let store = cli.store.as_deref();
    let done = match &cli.action {
        _ if cli.version => version(),
        _ if mutants::BUILT_IN && std::env::var_os(mutants::VARIABLE).is_some() => Err(bug_chosen()),
        Some(Action::Run(args)) => run::run(store, args),
        Some(Action::Elect(args)) => run::elect(store, args),
        Some(Action::Once(args)) => run::once(store, args),
        Some(Action::Watch(args)) => run::watch(store, args),
        Some(Action::Config(args)) => config::show(store, args),
        Some(Action::Completions(args)) => manual::completions(args.shell),
        Some(Action::Man(args)) => manual::page(args.command.as_deref()),
        Some(Action::Doctor(args)) => block_on(doctor::doctor(store, args)),
        Some(Action::Verify(args)) => block_on(verify::verify(store, args)),
        Some(action) => block_on(answer(store, action)),
        None => {
            let _ = Cli::command().print_help();
            Ok(exit::USAGE)
        }
    };
    let code = done.unwrap_or_else(|failure| failure.report());
    // Not by returning: a thread that still waits for signals is not waited for.
    std::process::exit(code.into())
}

fn block_on(work: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::new(exit::BUG, format!("the runtime cannot be started: {error}")))?;
    runtime.block_on(work)
}

/// The commands that talk to the store and end.
async fn answer(store: Option<&str>, action: &Action) -> Result<u8, Failure> {
    let keeper = client::connect(store, None).await?.keeper;
    let code = match action {
        Action::Ls(args) => look::ls(&keeper, args).await,
        Action::Show(args) => look::show(&keeper, args).await,
        Action::Break(args) => breaking::break_lock(&keeper, args).await,
        Action::Limit(args) => cells::limit(&keeper, args).await,
        Action::Counter(args) => cells::counter(&keeper, args).await,
        Action::Cell(args) => cells::cell(&keeper, args).await,
        _ => Err(Failure::new(exit::BUG, "a command was taken for another")),
    };
    // Nothing was taken, so there is nothing that a store which does not close could keep.
    let _ = tokio::time::timeout(std::time::Duration::from_secs(2), keeper.close()).await;
    code
}

/// The version, and the stores that can be named with `--store`.
fn version() -> Result<u8, Failure> {
    let stores: Vec<&str> = lockkeeper::STORES
        .iter()
        .filter(|(scheme, built_in)| *built_in && *scheme != "memory")
        .map(|(scheme, _)| *scheme)
        .collect();
    let mut text = format!("lockkeeper {}\nstores: {}\n", env!("CARGO_PKG_VERSION"), stores.join(" "));
    if mutants::BUILT_IN {
        text.push_str("with seeded bugs, for `lockkeeper verify mutants` only\n");
    }
    look::print(&text)
}

/// Only workers of `verify`, which are found out before this, may have a seeded bug.
fn bug_chosen() -> Failure {
    let message = format!("{} chooses a bug for this program's locks", mutants::VARIABLE);
    Failure::new(exit::USAGE, message).with_hint("unset it: `verify --mutant NAME` gives it to the workers alone")
}
