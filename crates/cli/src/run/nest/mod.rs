//! A `run` inside a `run` of the same name: the inner one asks the outer one instead of waiting for it for ever.
//!
//! The outer one listens on a socket in a folder that only its user can enter, and the command inherits the path. An
//! inner one of the same store and names joins: it runs under the outer hold, which is not released before the
//! inner one has ended; it is told every new deadline, and it is told of a loss. Surprise: the inner one has a guard of
//! its own all the same, because its command is in a process group that the outer guard does not know.

mod inner;
mod outer;
mod talk;

pub use self::inner::{Joined, join};
pub use self::outer::{Outer, remove};
pub use self::talk::{Word, owner_id};

/// The variable with the sockets of all outer ones, the nearest first, parted by colons.
pub const VARIABLE: &str = "LOCKKEEPER_OUTER";
