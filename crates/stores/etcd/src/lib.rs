//! Locks on an etcd cluster.
//!
//! Use this where two holders would cost money and a cluster is at hand; use Redis instead where speed matters more than
//! the loss of a server, and SQLite when all are on one host.
//!
//! How it works: a claim is a key under the lock's name, its place and its number are the key's create-revision, and
//! `line` judges who is in. `enter`, `leave` and `renew` change the line by transactions; `session` knows until when a lease
//! may be believed in; `news` hears of the one rival that a claim waits for; `cells` are keys of their own; `link` goes from
//! member to member, over a `pipe` to each; `doctor` says whether a cluster may be trusted. Surprise: the server's own lock is never used. It grants to a waiter whose lease
//! has ended, and ours must not.
#![forbid(unsafe_code)]

mod cells;
mod claims;
mod doctor;
mod enter;
#[doc(hidden)]
pub mod fuzzing;
mod keys;
mod leave;
mod line;
mod link;
mod look;
mod news;
mod options;
mod pipe;
pub mod proto;
#[doc(hidden)]
pub mod raw;
mod record;
mod renew;
mod session;
mod store;
mod trouble;
mod txn;
mod wire;

pub use doctor::checkup;
pub use options::{Endpoint, Options};
pub use store::Etcd;
