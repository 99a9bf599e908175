//! The rig: real servers and clusters of them on free loopback ports in folders of their own, child processes that can be
//! hurt, and a proxy that hurts connections.
//!
//! The surprise: nothing outlives its owner. Each process has a small reaper beside it that holds a pipe from the
//! owner; a panic, an exit or a `kill -9` of the owner closes the pipe, and the reaper ends the process and removes its
//! folder. (A parent-death signal would not do: it fires when the *thread* that spawned the child ends, and every test is
//! a thread.)
//!
//! A new server is one entry in `servers.rs`. This folder uses the standard library, rustix and serde_json only, because
//! `cargo xtask` compiles it by itself.

mod cluster;
mod identity;
mod ports;
mod process;
mod proxy;
mod reaper;
mod server;
mod servers;
mod shared;
mod spec;
mod trouble;

pub use cluster::Cluster;
pub use identity::Identity;
pub use process::Process;
pub use proxy::{Connections, Counts, Proxy, Way, Which};
pub use rustix::process::Signal;
pub use server::Server;
pub use servers::{FAKETIME, REDIS_PASSWORD, REDIS_USER, REDIS_USER_PASSWORD, SERVERS, ask_etcd};
pub use shared::{Entry, Member, Shared, entries, forget, remember, rig_dir, shared, wanted};
pub use spec::{Leader, Library, Ready, Spec, program_path};
pub use trouble::Trouble;

#[cfg(test)]
mod tests;
