//! The command line: every flag, with the words that `--help` shows. `values` reads what stands behind the flags.
//!
//! Surprise: what stands after `--` is taken byte for byte; nothing in it is ever read as a flag of ours.

mod cells;
mod doctor;
mod elect;
mod once;
mod run;
mod values;
mod verify;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use self::cells::{CellAction, CellArgs, CounterAction, CounterArgs, LimitArgs};
pub use self::doctor::DoctorArgs;
pub use self::elect::ElectArgs;
pub use self::once::OnceArgs;
pub use self::run::{RunArgs, Terms};
pub use self::values::{Patience, Permits};
pub use self::verify::{Hurt, MutantsArgs, Published, ReproArgs, VerifyAction, VerifyArgs};

/// Run commands one at a time, across processes and machines.
#[derive(Debug, Parser)]
#[command(name = "lockkeeper", disable_version_flag = true, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    /// Where the locks are kept: a URL like `sqlite:/var/lib/app/locks.db`, or a store named in the config file
    ///
    /// The variable LOCKKEEPER_STORE says the same. By default it is what the config file says, or else a file of
    /// yours: `lockkeeper/locks.db` under $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, global = true, value_name = "STORE")]
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
    /// Run a command while leading, or watch who leads
    Elect(ElectArgs),
    /// Run a command once per key, and keep what it printed
    Once(OnceArgs),
    /// Take from a rate that all processes share
    Limit(LimitArgs),
    /// Count, or take from a stock that is never oversold
    Counter(CounterArgs),
    /// Read and change a small value with a version
    Cell(CellArgs),
    /// List the locks that are held or waited for
    Ls(LsArgs),
    /// Show who holds a lock and who waits for it
    Show(ShowArgs),
    /// Show the locks as they change
    Watch(WatchArgs),
    /// Look a store over: can it be trusted with locks?
    Doctor(DoctorArgs),
    /// Hurt a store and its clients, and show what happens to the locks
    Verify(Box<VerifyArgs>),
    /// Show which settings are in effect, and where each comes from
    Config(ConfigArgs),
    /// Take a lock away from its holder
    Break(BreakArgs),
    /// Print a script that completes commands and flags in a shell
    Completions(CompletionsArgs),
    /// Print the manual page of this program, or of one of its commands
    Man(ManArgs),
}

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

/// What `watch` takes.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The name of the lock [default: all of them]
    pub name: Option<String>,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

/// What `config` takes.
#[derive(Debug, Args)]
pub struct ConfigArgs {
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

/// What `completions` takes.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// For which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// The shells that are completed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// What `man` takes.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The command [default: the whole program]
    pub command: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_agree_with_each_other() {
        Cli::command().debug_assert();
    }
}
