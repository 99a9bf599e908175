//! What `run` takes, and the terms that it shares with the other commands that run something.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::values::{Patience, Permits, duration, patience, permits};

/// What `run` takes.
#[derive(Debug, Args)]
#[command(after_long_help = RUN_HELP)]
pub struct RunArgs {
    /// The name of the lock; several are taken together or not at all
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<String>,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,

    /// Share the lock with others who say --shared; whoever says --exclusive is alone
    #[arg(long, conflicts_with_all = ["exclusive", "permits"])]
    pub shared: bool,

    /// Take alone a lock that others take with --shared
    #[arg(long, conflicts_with = "permits")]
    pub exclusive: bool,

    /// Take n permits of N instead of the whole lock: `1/3` lets three commands run at a time
    #[arg(long, value_name = "n/N", value_parser = permits)]
    pub permits: Option<Permits>,

    /// How to take and to hold it.
    #[command(flatten)]
    pub terms: Terms,
}

/// How a lock is taken and held while a command runs.
#[derive(Debug, Args)]
pub struct Terms {
    /// How long to wait for the lock: `30s`, `5m`, `forever`
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = patience)]
    pub wait: Patience,

    /// Do not wait: run now or not at all
    #[arg(long, conflicts_with = "wait")]
    pub no_wait: bool,

    /// The exit code if the lock was not free in time (0 suits cron)
    #[arg(long, value_name = "CODE", default_value_t = crate::exit::BUSY)]
    pub busy_exit: u8,

    /// How long the lock stays taken after this program is gone; renewed while the command runs
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub lease: Duration,

    /// End the command after this time; the lock is not renewed
    #[arg(long, value_name = "TIME", conflicts_with = "lease", value_parser = duration)]
    pub at_most: Option<Duration>,

    /// Keep the lock for at least this long since it was taken, also when the command ends sooner
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub at_least: Option<Duration>,

    /// After a crash keep the lock for this much longer than the lease
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub lock_delay: Option<Duration>,

    /// Who holds the lock, as others see it [default: the command's name]
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,

    /// A word to whoever looks at the lock
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub note: String,
}

const RUN_HELP: &str = "\
The command's exit code is passed on. Others: 64 wrong usage, 69 the store cannot be used, 75 not free in time \
(--busy-exit), 76 lost while running, 126 and 127 as in shells, 128 + n if signal n ended the command.

The command runs in a process group of its own and sees LOCKKEEPER_NAME and LOCKKEEPER_TOKEN, or, with several names, \
LOCKKEEPER_NAMES and LOCKKEEPER_TOKENS (a line `name=token` for each). When the lock is lost, or this program is killed or \
stopped, a guard process ends that group before anyone else can hold the lock. Not covered: processes that leave the group \
(daemons, the jobs of an interactive shell), processes of other users (sudo: put it in front of lockkeeper), and a virtual \
machine that is paused. Background processes that outlive the command are left alone.

A name is used in one way at a time: plainly, with --shared and --exclusive, or with --permits and the same N. A plain run \
of names that a plain run around it holds joins that one's hold instead of waiting for it.";
