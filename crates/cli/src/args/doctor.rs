//! What `doctor` takes.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lockkeeper::checkup::Requirement;

/// What `doctor` takes.
#[derive(Debug, Args)]
#[command(after_long_help = DOCTOR_HELP)]
pub struct DoctorArgs {
    /// The store to look over: a URL, or a name from the config file [default: the store that is in use]
    #[arg(value_name = "URL")]
    pub place: Option<String>,

    /// Fail unless this is promised; several with commas between
    ///
    /// usable: a lock can be taken, handed over and released.
    /// writable-primary: locks are decided here, it is no copy.
    /// restart: locks that were given survive a restart of the store.
    /// power-loss: they survive a power loss.
    /// failover: they survive the loss of the store's machine.
    /// no-eviction: none is thrown away when memory is short.
    /// tokens: every hold has a token above those before it.
    /// push: those who wait are told.
    /// fair: first come, first served, where that is asked for.
    /// no-danger, no-warning: no finding is as bad as that.
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = requirement(), verbatim_doc_comment)]
    pub require: Vec<Requirement>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const DOCTOR_HELP: &str = "\
Looks only, except that a lock is taken and released under a name of its own. Exit code 0 if the store answers and all \
that is required is promised, 78 if not, 69 if it does not answer. What could not be seen is not promised.";

fn requirement() -> impl TypedValueParser<Value = Requirement> {
    PossibleValuesParser::new(Requirement::names()).try_map(|text| text.parse::<Requirement>())
}
