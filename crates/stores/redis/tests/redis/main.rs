//! The Redis store against real servers: the model, other clients' data, faults.

mod cells;
mod common;
mod crowd;
mod faults;
mod lanes;
mod model;
mod rights;
mod tls;
