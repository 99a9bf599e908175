//! What `elect` takes.

use std::ffi::OsString;

use clap::Args;

use super::run::Terms;

/// What `elect` takes.
#[derive(Debug, Args)]
#[command(after_long_help = ELECT_HELP)]
pub struct ElectArgs {
    /// The name of the election
    pub name: String,

    /// The command to run while leading, and its arguments
    #[arg(last = true, required_unless_present = "watch", value_name = "COMMAND")]
    pub command: Vec<OsString>,

    /// Do not stand for election: print who leads, and again whenever that changes
    #[arg(long, conflicts_with_all = TERMS)]
    pub watch: bool,

    /// Print one JSON object per line
    #[arg(long, requires = "watch", conflicts_with = "command")]
    pub json: bool,

    /// How to stand and to lead.
    #[command(flatten)]
    pub terms: Terms,
}

/// What makes no sense for somebody who only looks.
const TERMS: [&str; 10] =
    ["command", "wait", "no_wait", "busy_exit", "lease", "at_most", "at_least", "lock_delay", "label", "note"];

const ELECT_HELP: &str = "\
Waits until nobody else leads, runs the command as the leader, and steps down when it ends: one term of office, not a loop. \
What --note says is what others see of the leader. Exit codes and the guard are those of `run`. The command sees \
LOCKKEEPER_NAME and LOCKKEEPER_TOKEN.";
