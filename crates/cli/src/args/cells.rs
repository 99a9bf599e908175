//! What `limit`, `counter` and `cell` take.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::values::{Patience, Rate, patience, rate};

/// What `limit` takes.
#[derive(Debug, Args)]
#[command(after_long_help = LIMIT_HELP)]
pub struct LimitArgs {
    /// The name of the limit
    pub name: String,

    /// So many per so long: `10/1m`
    #[arg(long, value_name = "N/TIME", value_parser = rate)]
    pub rate: Rate,

    /// How many to take
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub take: u64,

    /// Wait this long for the limit to allow it [default: do not wait]
    #[arg(long, value_name = "TIME", value_parser = patience)]
    pub wait: Option<Patience>,

    /// A window that starts anew every period, instead of an even flow
    #[arg(long)]
    pub fixed: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const LIMIT_HELP: &str = "\
Exit code 0 if it may go ahead, 75 if not now; stderr then says when. All who use a name should say the same rate.";

/// What `counter` takes.
#[derive(Debug, Args)]
pub struct CounterArgs {
    /// The name of the counter
    pub name: String,

    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,

    /// What to do with it.
    #[command(subcommand)]
    pub action: CounterAction,
}

/// What to do with a counter.
#[derive(Debug, Subcommand)]
pub enum CounterAction {
    /// Print the number; 0 if nobody has counted yet
    Get,
    /// Add to it and print what it is then
    Add {
        /// How much; may be negative
        #[arg(value_name = "N", allow_hyphen_values = true)]
        by: i64,
    },
    /// Take from it and print what is left; exit code 75 if there are too few
    Take {
        /// How much
        #[arg(value_name = "N")]
        by: u64,
        /// The least that may be left
        #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
        floor: i64,
    },
}

/// What `cell` takes.
#[derive(Debug, Args)]
pub struct CellArgs {
    /// The name of the cell
    pub name: String,

    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,

    /// What to do with it.
    #[command(subcommand)]
    pub action: CellAction,
}

/// What to do with a cell.
#[derive(Debug, Subcommand)]
pub enum CellAction {
    /// Print its bytes as they are; exit code 75 if there are none
    Get,
    /// Set it, whatever is there, and print the new version
    Put {
        /// The bytes, or `-` to read them from stdin
        #[arg(allow_hyphen_values = true)]
        value: OsString,
    },
    /// Set it if its version is still this one; exit code 75 if it is not
    Cas {
        /// The version that `get --json` or `put` has told; 0 for a cell that is not there
        version: u64,
        /// The bytes, or `-` to read them from stdin
        #[arg(allow_hyphen_values = true)]
        value: OsString,
    },
    /// Remove it, whatever is there
    Rm,
}
