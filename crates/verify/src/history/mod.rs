//! The history of a run: what everybody saw, one JSON object in a line, in a folder.
//!
//! ```text
//! plan.json                 what was to be done
//! worker-<n>-<life>.jsonl   what a worker process did; a worker that was killed goes on in its next life
//! registers.jsonl           what the registers were asked and what they answered, in their order
//! faults.jsonl              what the nemesis did
//! after.json                what was left at the store when everybody had gone
//! ```
//!
//! All moments are nanoseconds of the one host's `CLOCK_BOOTTIME`. A moment before a call is noted before it is made and
//! the one after it when its answer is there, so whatever happened did so between them; a check that compares moments of
//! different processes takes the one that makes it slower to accuse.
//!
//! Surprise: the last line of a worker that was killed may be cut short. It is left out, and that is no error; any other
//! line that cannot be read is one.

mod event;
pub mod read;
pub mod write;

pub use event::{
    Asked, At, By, CellAnswer, CellCall, Clutter, Event, Fault, Guard, Leftover, Life, LockKind, On, Register, Step,
    Verdict, Written,
};
pub use read::{History, Lived};
