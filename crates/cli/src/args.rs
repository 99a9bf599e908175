//! The command line: every flag, in one place, with the words that `--help` shows.
//!
//! Surprise: what stands after `--` is taken byte for byte; nothing in it is ever read as a flag of ours.

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

/// Run commands one at a time, across processes and machines.
#[derive(Debug, Parser)]
#[command(name = "lockkeeper", disable_version_flag = true, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// Where the locks are kept, for example `sqlite:/var/lib/app/locks.db`
    ///
    /// By default a file of yours: `lockkeeper/locks.db` under $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, global = true, env = "LOCKKEEPER_STORE", value_name = "URL", hide_env_values = true)]
    pub store: Option<String>,

    /// Print the version and the stores that are built in
    #[arg(long, short = 'V')]
    pub version: bool,

    /// What to do.
    #[command(subcommand)]
    pub action: Option<Action>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Run a command while holding a lock
    Run(RunArgs),
    /// List the locks that are held or waited for
    Ls(LsArgs),
    /// Show who holds a lock and who waits for it
    Show(ShowArgs),
    /// Take a lock away from its holder
    Break(BreakArgs),
}

/// What `run` takes.
#[derive(Debug, Args)]
#[command(after_long_help = RUN_HELP)]
pub struct RunArgs {
    /// The name of the lock
    pub name: String,

    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,

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

The command runs in a process group of its own and sees LOCKKEEPER_NAME and LOCKKEEPER_TOKEN. When the lock is lost, \
or this program is killed or stopped, a guard process ends that group before anyone else can hold the lock. Not covered: \
processes that leave the group (daemons, the jobs of an interactive shell), processes of other users (sudo: put it in \
front of lockkeeper), and a virtual machine that is paused. Background processes that outlive the command are left \
alone.";

/// What `ls` takes.
#[derive(Debug, Args)]
pub struct LsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `show` takes.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The name of the lock
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `break` takes.
#[derive(Debug, Args)]
#[command(after_long_help = BREAK_HELP)]
pub struct BreakArgs {
    /// The name of the lock
    pub name: String,
    /// Free it at once, even if the holder is still at work: there may be two holders for a while
    #[arg(long, requires = "reason")]
    pub now: bool,
    /// Why; it is said on stderr and in the JSON
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const BREAK_HELP: &str = "\
Without --now the hold runs out: it cannot be renewed any more, its holder is told so at its next renewal, and nobody \
else is in before its lease has ended. A lock that nobody holds is left as it is, with exit code 0.";

/// How long `run` waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// So long.
    For(Duration),
    /// Without end.
    Forever,
}

fn patience(text: &str) -> Result<Patience, String> {
    if text == "forever" { Ok(Patience::Forever) } else { duration(text).map(Patience::For) }
}

fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    humantime::parse_duration(text).map_err(|error| format!("{error}; write it like `500ms`, `30s` or `5m`"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_agree_with_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(patience("forever"), Ok(Patience::Forever));
        assert_eq!(patience("0"), Ok(Patience::For(Duration::ZERO)));
        assert_eq!(patience("1m 30s"), Ok(Patience::For(Duration::from_secs(90))));
        assert!(patience("30").is_err() && patience("soon").is_err());
    }
}
