//! Locks on an etcd cluster.
//!
//! Use this where two holders would cost money and a cluster is at hand; use Redis instead where speed matters more than
//! the loss of a server, and SQLite when all are on one host.
#![forbid(unsafe_code)]

mod options;
pub mod proto;

pub use options::{Endpoint, Options};
