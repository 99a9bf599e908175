//! etcd, alone, with TLS and as a cluster.
//!
//! The surprise: a configuration file makes etcd ignore all arguments and `ETCD_*` variables, so each spec's file is put
//! together from parts here. There is no durable variant: what etcd answered it has handed to the kernel, and that
//! outlives a kill of the process, fsync or not. Users and passwords are switched on by the test, through the API.

use std::time::Duration;

use serde_json::Value;

use crate::{Ready, Signal, Spec, ports};

/// Puts the parts of a configuration file together; the first is what all have in common.
macro_rules! conf {
    ($($part:literal),+) => {
        &[("etcd.yml", concat!(include_str!("etcd/etcd.yml"), $(include_str!(concat!("etcd/", $part))),+))]
    };
}

/// One member. It keeps its data through `kill` and `restart`.
pub(super) const ETCD: Spec = Spec {
    name: "etcd",
    variant_of: None,
    program: "etcd",
    args: &["--config-file", "etcd.yml"],
    files: conf!("alone.yml"),
    env: &[],
    prepare: &[],
    // In HTTP/1.0, which has no chunks and closes the connection after the answer.
    ready: Ready { say: b"GET /health HTTP/1.0\r\nConnection: close\r\n\r\n", hear: br#""health":"true""# },
    stop: Signal::TERM,
    starts_within: Duration::from_secs(60),
    url: "etcd://127.0.0.1:{port}",
    version: &["--version"],
    package: "etcd-server",
    library: None,
    beside: &[("etcdctl", "etcd-client")],
};

/// TLS on the second port. Whoever starts it gives it `server.pem` and `server.key`. It asks no client for a certificate:
/// with a CA to check one against, etcd insists on it.
pub(super) const TLS: Spec = Spec {
    name: "etcd-tls",
    variant_of: Some("etcd"),
    files: conf!("tls.yml"),
    url: "etcds://127.0.0.1:{port2}",
    ..ETCD
};

/// A client must show a certificate that `ca.pem` signed, which whoever starts it gives it too.
pub(super) const MTLS: Spec = Spec { name: "etcd-mtls", files: conf!("tls.yml", "mtls.yml"), ..TLS };

/// Asks a member over its JSON gateway; nothing unless it answers with an object.
pub(crate) fn post(port: u16, path: &str, body: &str) -> Option<Value> {
    let length = body.len();
    let said = format!("POST {path} HTTP/1.0\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    let heard = ports::ask(port, said.as_bytes(), |_| false); // to the end: the connection is closed after it
    let heard = String::from_utf8(heard).ok()?;
    let (_, body) = heard.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok().filter(Value::is_object)
}
