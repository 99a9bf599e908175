//! Redis, and the ways to run it.

use std::time::Duration;

use crate::server::CLOCK;
use crate::{Library, Ready, Signal, Spec};

/// A user of `redis-acl` with a password, who may do what locks under the default prefix need and nothing else.
pub const REDIS_USER: &str = "keeper";
/// The password of [`REDIS_USER`]; a word found nowhere else, so that a test can look for it where it must not be.
pub const REDIS_USER_PASSWORD: &str = "swordfish-of-keeper";
/// The password of the user without a name on `redis-acl`, who may do everything.
pub const REDIS_PASSWORD: &str = "swordfish-of-default";

/// Steps the wall clock of a program that loads it ahead of its own libraries.
pub const FAKETIME: Library = Library {
    file: "faketime/libfaketime.so.1",
    package: "libfaketime",
    leaves: &["/dev/shm/faketime_shm_{pid}", "/dev/shm/sem.faketime_sem_{pid}"],
};

/// What all of them have in common; a variant's own settings are arguments, which come after it and win.
const CONF: (&str, &str) = ("redis.conf", include_str!("redis/redis.conf"));

/// Keeps nothing: after `kill` and `restart` it is empty.
pub(super) const REDIS: Spec = Spec {
    name: "redis",
    variant_of: None,
    program: "redis-server",
    args: &["redis.conf"],
    files: &[CONF],
    env: &[],
    prepare: &[],
    ready: Ready { say: b"PING\r\n", hear: b"+PONG\r\n" },
    stop: Signal::TERM,
    starts_within: Duration::from_secs(20),
    url: "redis://127.0.0.1:{port}",
    version: &["--version"],
    package: "redis-server",
    library: None,
    beside: &[],
    members: &[],
    leader: None,
};

/// TLS on the second port; the first is for the rig's own question. Whoever starts it gives it `server.pem`,
/// `server.key` and `ca.pem`.
const REDIS_TLS: Spec = Spec {
    variant_of: Some("redis"),
    files: &[CONF, ("tls.conf", include_str!("redis/tls.conf"))],
    url: "rediss://127.0.0.1:{port2}",
    ..REDIS
};

/// Every write is on disk before it is answered.
pub(super) const DURABLE: Spec = Spec {
    name: "redis-durable",
    variant_of: Some("redis"),
    args: &["redis.conf", "--appendonly", "yes", "--appendfsync", "always"],
    ..REDIS
};

/// Also listens on a socket in its folder, whose path must stay below 108 bytes: start it under a short one.
pub(super) const UNIX: Spec = Spec {
    name: "redis-unix",
    variant_of: Some("redis"),
    args: &["redis.conf", "--unixsocket", "redis.sock"],
    url: "redis+unix://{dir}/redis.sock",
    ..REDIS
};

/// Nobody gets in without a password. The rule of `keeper` is the smallest: the keys of the prefix, each with the tag it
/// shares with the rest of its lock; the mark of the clock; the channels of wake-ups; and commands. `watch`, `unwatch`,
/// `multi` and `exec` are only for `?cells=watch`, `select` for other databases than 0, `ping` for want of `info`, which
/// says whether locks outlive a restart. A test of the store takes care that none lacks and none is too many.
pub(super) const ACL: Spec = Spec {
    name: "redis-acl",
    variant_of: Some("redis"),
    args: &["redis.conf", "--aclfile", "users.acl"],
    files: &[CONF, ("users.acl", include_str!("redis/users.acl"))],
    ready: Ready { say: b"PING\r\n", hear: b"-NOAUTH" },
    url: "redis://keeper:swordfish-of-keeper@127.0.0.1:{port}",
    ..REDIS
};

/// A client may show a certificate, and need not.
pub(super) const TLS: Spec =
    Spec { name: "redis-tls", args: &["tls.conf", "--tls-auth-clients", "optional"], ..REDIS_TLS };

/// A client must show a certificate.
pub(super) const MTLS: Spec =
    Spec { name: "redis-mtls", args: &["tls.conf", "--tls-auth-clients", "yes"], ..REDIS_TLS };

/// Its wall clock can be stepped. The C library stands before redis's own allocator, or the allocator and the clock
/// call each other without end before the program even starts.
pub(super) const STEPPED: Spec = Spec {
    name: "redis-stepped",
    variant_of: Some("redis"),
    files: &[CONF, (CLOCK, "+0s\n")],
    env: &[
        ("LD_PRELOAD", "{library}:libc.so.6"),
        ("FAKETIME_TIMESTAMP_FILE", "{dir}/clock"),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ],
    library: Some(FAKETIME),
    ..REDIS
};
