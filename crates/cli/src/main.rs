//! The `lockkeeper` program: run commands one at a time, and look at the locks.
//!
//! Read `args` for what it can do, `run` for how a command is guarded. Surprise: this program also starts itself in
//! two hidden modes, which are looked for before anything else so that they start fast.

mod args;
mod client;
mod exit;
mod run;
mod words;

use std::process::ExitCode;

use clap::Parser;

use self::args::{Action, Cli};

fn main() -> ExitCode {
    if let Some(code) = run::hidden_mode() {
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
    let code = match &cli.action {
        Some(Action::Run(args)) => run::run(store, args),
        _ => 0,
    };
    // Not by returning: a thread that still waits for signals is not waited for.
    std::process::exit(code.into())
}
