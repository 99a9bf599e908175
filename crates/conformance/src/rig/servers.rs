//! The table of servers. One entry is all a new one needs.
//!
//! The surprise: none of them writes outside its folder or keeps anything: they live as long as the tests do.

use std::time::Duration;

use super::{Ready, Signal, Spec};

/// Every server the rig can start. `cargo xtask setup` installs their packages, `cargo xtask up` starts one of each.
pub const SERVERS: &[Spec] = &[Spec {
    name: "redis",
    program: "redis-server",
    args: &[
        "--port",
        "{port}",
        "--bind",
        "127.0.0.1",
        "--dir",
        "{dir}",
        "--save",
        "",
        "--appendonly",
        "no",
        "--daemonize",
        "no",
    ],
    files: &[],
    env: &[],
    prepare: &[],
    ready: Ready { say: b"PING\r\n", hear: b"+PONG\r\n" },
    stop: Signal::TERM,
    starts_within: Duration::from_secs(20),
    url: "redis://127.0.0.1:{port}",
    version: &["--version"],
    package: "redis-server",
}];
