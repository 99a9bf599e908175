//! The Redis store against real servers: the model, other clients' data, faults.

mod cells;
mod common;
mod crowd;
mod faults;
mod heirs;
mod lanes;
mod model;
mod plain;
mod rights;
mod secrets;
mod tls;
mod wakes;
