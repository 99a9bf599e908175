//! What `verify` takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use lockkeeper_verify::plan::{Nemesis, Work};
use lockkeeper_verify::report::words::{self, NEMESES, WORKS};
use lockkeeper_verify::targets;

use super::values::duration;

/// What `verify` takes.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = verify_help())]
pub struct VerifyArgs {
    /// What to do instead of a run.
    #[command(subcommand)]
    pub other: Option<VerifyAction>,

    /// The store: one that is started for the run, as `sqlite` or `redis`; or a URL; or a name from the config file
    #[arg(value_name = "TARGET")]
    pub place: Option<String>,

    /// What hurts, in turn, with commas between; `none`, or `all` that can be done to this store
    /// [default: the workers, and connections where there are any]
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = hurt(), hide_possible_values = true)]
    pub nemesis: Vec<Hurt>,

    /// Begin a fault this often, or as soon as the one before it has healed [default: drawn by lot, after a calm of
    /// more than a lease]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub every: Option<Duration>,

    /// For how long the workers work
    #[arg(long = "for", value_name = "TIME", default_value = "1m", value_parser = duration)]
    pub time: Duration,

    /// Repeat what was drawn by lot in the run with this seed
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Where the history and the reports go: a new folder, or an empty one [default: verify-SEED, here]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,

    /// What the workers do
    #[arg(long, value_name = "WORK", default_value = "mutex", value_parser = work())]
    pub work: Work,

    /// How many worker processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,

    /// How many tasks in each of them
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub tasks: u32,

    /// How many locks they share
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub locks: u32,

    /// The lease of every hold
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub lease: Duration,

    /// After a crash keep the lock for this much longer than the lease
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration)]
    pub lock_delay: Duration,

    /// How long a holder dwells between reading and writing
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = duration)]
    pub think: Duration,

    /// The seeded bug that the workers have, in a build with bugs.
    #[arg(long, value_name = "NAME", hide = true)]
    pub mutant: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `verify` does instead of a run.
#[derive(Debug, Subcommand)]
pub enum VerifyAction {
    /// Judge a history again: the same folder gives the same judgement, always
    Check(CheckArgs),
    /// Run with seeded bugs, each of which a check must catch
    Mutants(MutantsArgs),
    /// List the stores that are started for a run, and what can be done to them
    Targets(TargetsArgs),
    /// Do a published run again, with the lock that it is about and with this one
    #[command(after_long_help = REPRO_HELP)]
    Repro(ReproArgs),
}

/// What `verify check` takes.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The folder of a run
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `verify mutants` takes.
#[derive(Debug, Args)]
pub struct MutantsArgs {
    /// These bugs only, with commas between, and the controls that go with them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Where the histories go: a new folder, or an empty one [default: verify-mutants, here]
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `verify targets` takes.
#[derive(Debug, Args)]
pub struct TargetsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What `verify repro` takes.
#[derive(Debug, Args)]
pub struct ReproArgs {
    /// Which one
    #[arg(value_enum)]
    pub which: Published,
    /// For how long each side runs
    #[arg(long = "for", value_name = "TIME", default_value = "1m", value_parser = duration)]
    pub time: Duration,
    /// Repeat what was drawn by lot in the run with this seed
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A run that somebody has published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Published {
    /// etcd's own lock, with its members stopped and going on by turns: it loses updates that it acknowledged
    EtcdLock,
}

const REPRO_HELP: &str = "\
`etcd-lock` starts an etcd cluster twice, for etcd's own Lock RPC and for this program's mutex, and stops members of it for 5 s \
of every 10. Clients take the lock with a lease of 2 s, read a set, dwell, and write it back with an element added. What \
counts is the share of acknowledged elements that are not in the set at the end.

Exit code 0 if nothing is lost behind this program's fence, 1 if something is, 69 if the cluster cannot be started.";

/// What is asked for by `--nemesis`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hurt {
    /// This.
    One(Nemesis),
    /// Nothing.
    Nothing,
    /// All that can be done.
    All,
}

fn hurt() -> impl TypedValueParser<Value = Hurt> {
    let names = NEMESES.iter().map(|(_, word, about)| PossibleValue::new(*word).help(*about));
    let names = names.chain([PossibleValue::new("none"), PossibleValue::new("all")]);
    PossibleValuesParser::new(names).try_map(|text| match text.as_str() {
        "none" => Ok(Hurt::Nothing),
        "all" => Ok(Hurt::All),
        word => words::from_word(word).map(Hurt::One).ok_or("there is no such nemesis"),
    })
}

fn work() -> impl TypedValueParser<Value = Work> {
    let names = WORKS.iter().map(|(_, word, about)| PossibleValue::new(*word).help(*about));
    PossibleValuesParser::new(names).try_map(|text| words::from_word::<Work>(&text).ok_or("there is no such work"))
}

fn verify_help() -> String {
    let hurts: Vec<String> = NEMESES.iter().map(|(_, word, about)| format!("    {word:14} {about}")).collect();
    format!(
        "Worker processes take locks and change registers, guarded in four ways: by nothing but the lock, by the hold's \
         deadline, by a fence for writes, by a fence for reads and writes. Meanwhile things are hurt. Everybody writes down \
         what they saw, and what is promised is held against it. Only what this command started is hurt; at a store \
         of your own it uses names that begin with `verify/`.\n\n\
         TARGET:\n{}\n--nemesis:\n{}\n\n\
         Exit code 0 if all checks passed, 1 if one failed, 69 if the store cannot be used. What a fault may do by the \
         promises of the store is reported, and is no failure.",
        targets::listed(),
        hurts.join("\n"),
    )
}
