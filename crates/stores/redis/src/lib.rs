//! Locks on a Redis server.
//!
//! Use this when the programs that take locks already share a Redis; use a store with a quorum instead when a lock must
//! survive the loss of its server.
//!
//! How it works: `fast` takes and releases free mutexes in one round trip each, many in one write (`gather`); as soon as
//! somebody waits, shares or asks for order, the line's scripts decide (`scripts/line.lua`, called by `lines`); `cells` are
//! changed by scripts of their own, or by `WATCH` and `MULTI`; `hub` knows the claims of this client and hears the news
//! that the scripts publish; `link` is a connection that comes back by itself, made of `greet`, `pipe` and `resp`; `doctor` says what the server's settings
//! mean for locks. Surprise: the holder key is a plain string under the lock's own name, and is there exactly while
//! somebody is in, so the locks of other clients that `SET … NX PX` the same key and ours exclude each other.
#![forbid(unsafe_code)]

mod cells;
mod doctor;
mod fast;
#[doc(hidden)]
pub mod fuzzing;
mod gather;
mod greet;
mod hot;
mod hub;
mod keys;
mod leaving;
mod lines;
mod link;
mod look;
mod options;
mod pipe;
mod pulse;
mod record;
mod resp;
mod scripts;
mod store;
mod stream;
mod tls;
mod trouble;

pub use doctor::checkup;
pub use options::{Address, Cells, Options};
pub use store::Redis;
