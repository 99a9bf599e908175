//! The model, the kinds and the client of Lockkeeper. No network in here.
//!
//! > A lock is an ordered line of claims. Who holds it is a pure function of the line.
//!
//! Read `admit` (the rule), `line` (the model), `store` (the seam), `acquire` (the one loop), `watchdog` (the one
//! background task), in that order. Programs use the `lockkeeper` crate, which re-exports what they need.

pub mod access;
mod acquire;
mod admit;
pub mod cell;
pub mod checkup;
mod claim;
pub mod deadlock;
mod error;
mod hold;
mod keeper;
pub mod kinds;
pub mod layers;
pub mod limits;
pub mod line;
mod local;
mod meters;
#[doc(hidden)]
pub mod mutants;
mod name;
mod reentry;
pub mod store;
pub mod stores;
pub mod time;
mod watchdog;

pub use admit::{Spot, Verdict, admit};
pub use claim::{Claim, ClaimId, LockKind, Owner, Patience, Token};
pub use error::{Effect, Error, ErrorKind, Result};
pub use hold::{Hold, Lost};
pub use keeper::{Builder, Keeper};
pub use name::Name;
