//! The registers that locks protect: numbers, four for each lock, kept by the process that started the run.
//!
//! Surprise: a register does what it is told. Two that write at once lose an update here as they would anywhere; only the
//! fenced ones look at tokens. Lost updates are counted by what they are: acknowledged, and not in the value.

mod client;
mod server;
mod table;
mod wire;

pub use client::Client;
pub use server::Registers;
pub use table::Tally;
pub use wire::{Answer, Ask, Request};
