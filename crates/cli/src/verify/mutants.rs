//! `verify mutants`: seeded bugs, each of which a check must catch. A release has none of them.

use crate::args::MutantsArgs;
use crate::exit::{self, Failure};

/// Runs with every seeded bug in turn.
pub async fn mutants(_args: &MutantsArgs) -> Result<u8, Failure> {
    Err(Failure::new(exit::USAGE, "this build has no seeded bugs, as every release")
        .with_hint("in a clone: `cargo run -p lockkeeper-cli --features mutants -- verify mutants`"))
}
