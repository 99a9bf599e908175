//! The table of servers. One entry is all a new one needs.
//!
//! The surprise: none of them writes outside its folder or outlives its tests, not even the durable one: durable is what
//! comes back after `kill` and `restart`.

mod etcd;
mod redis;

pub use etcd::post as ask_etcd;
pub use redis::{FAKETIME, REDIS_PASSWORD, REDIS_USER, REDIS_USER_PASSWORD};

use super::Spec;

/// Every server the rig can start. `cargo xtask setup` installs their packages, `cargo xtask up` starts those that tests
/// share, clusters among them; a variant is started by the test that needs it.
pub const SERVERS: &[Spec] = &[
    redis::REDIS,
    redis::DURABLE,
    redis::UNIX,
    redis::ACL,
    redis::TLS,
    redis::MTLS,
    redis::STEPPED,
    etcd::ETCD,
    etcd::TLS,
    etcd::MTLS,
    etcd::CLUSTER,
];
