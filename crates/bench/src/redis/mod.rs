//! The Redis store against a bare client and against its peers, on one server, in one run.

mod gather;
mod lane;
mod lanes;
mod wire;

pub use lanes::run as lanes;
