//! What `once` takes.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::values::{Patience, duration, patience};

/// What `once` takes.
#[derive(Debug, Args)]
#[command(after_long_help = ONCE_HELP)]
pub struct OnceArgs {
    /// The key: what is to be done once, for example `report/2026-11-15`
    pub key: String,

    /// The command and its arguments
    #[arg(last = true, required_unless_present = "forget", value_name = "COMMAND")]
    pub command: Vec<OsString>,

    /// If it was done before, print what the command printed then
    #[arg(long)]
    pub print: bool,

    /// Run nothing: forget that it was done, or that a run died
    #[arg(long, conflicts_with_all = ["command", "print", "skip", "keep", "at_most", "at_least", "never_again"])]
    pub forget: bool,

    /// How long to wait for one that is running now: `30s`, `5m`, `forever`
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = patience)]
    pub wait: Patience,

    /// Do not wait for one that is running now
    #[arg(long, conflicts_with = "wait")]
    pub skip: bool,

    /// The exit code if one was running now and did not end in time (0 suits cron)
    #[arg(long, value_name = "CODE", default_value_t = crate::exit::BUSY)]
    pub busy_exit: u8,

    /// How long it is remembered [default: for ever]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub keep: Option<Duration>,

    /// How long the key stays taken after this program is gone; renewed while the command runs
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub lease: Duration,

    /// End the command after this time; the key is not renewed
    #[arg(long, value_name = "TIME", conflicts_with = "lease", value_parser = duration)]
    pub at_most: Option<Duration>,

    /// Keep the key taken for at least this long, also when the command ends sooner
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub at_least: Option<Duration>,

    /// Do not run it again after a run that died half-way
    #[arg(long)]
    pub never_again: bool,

    /// Who runs it, as others see it [default: the command's name]
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
}

const ONCE_HELP: &str = "\
A command that ends with 0 is recorded, with the first 60 KiB of what it printed; from then on this prints nothing (or \
that, with --print) and ends with 0. A command that fails is not recorded, and its exit code is passed on. One that dies \
half-way, with this program or its machine, is run again by the next call, unless all say --never-again: then that call \
ends with 76. Other exit codes and the guard are those of `run`.

The command's output goes through this program: it is not a terminal, and background processes that outlive the command \
lose it.";
