//! The kinds of locks: each makes a claim of its own weight and hands it to the one loop in `acquire`.
//!
//! A new kind is one file here and one file of laws; stores are not changed for it.

mod mutex;

pub use mutex::Mutex;
