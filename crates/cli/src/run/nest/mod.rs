//! A `run` inside a `run` of the same name: the inner one asks the outer one instead of waiting for it for ever.
//!
//! The outer one listens on a socket in a folder that only its user can enter, and the command inherits the path. An
//! inner one of the same store and names joins: it runs under the outer hold, which is not released before the
//! inner one has ended; it is told every new deadline, and it is told of a loss. Surprise: the inner one has a guard of
//! its own all the same, because its command is in a process group that the outer guard does not know.

mod inner;
mod outer;

pub use self::inner::{Joined, join};
pub use self::outer::{Outer, remove};

use serde::{Deserialize, Serialize};

/// The variable with the sockets of all outer ones, the nearest first, parted by colons.
pub const VARIABLE: &str = "LOCKKEEPER_OUTER";

/// What is said is far shorter; a longer line is not ours.
const LINE_BYTES: usize = 32 * 1024;

/// What the inner one asks, on one line.
#[derive(Debug, Serialize, Deserialize)]
struct Ask {
    store: String,
    names: Vec<String>,
}

/// What the outer one says, each on one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// It may run under the outer hold.
    Joined {
        /// The tokens in the order of the names.
        tokens: Vec<Option<u64>>,
        /// Nanoseconds on the machine's clock.
        deadline: u64,
    },
    /// It may not: these are other names, or another store.
    Stranger,
    /// The hold was renewed until then.
    Deadline(u64),
    /// The hold is lost, and why.
    Lost(String),
}
