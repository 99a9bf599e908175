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
    members: &[],
    leader: None,
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

/// One of three. It is killed to end it, since nobody reads its folder again: asked to end, each would first look for
/// another to lead, for 2 s.
const MEMBER: Spec = Spec { name: "etcd-3", files: conf!("member.yml"), stop: Signal::KILL, ..ETCD };

/// Three members, each of which can be killed, stopped and restarted; it does with two of them. Shared by tests, too.
pub(super) const CLUSTER: Spec = Spec {
    members: &[MEMBER, MEMBER, MEMBER],
    url: "etcd://127.0.0.1:{port@0},127.0.0.1:{port@1},127.0.0.1:{port@2}",
    leader: Some(leader),
    ..MEMBER
};

/// What a member says of itself.
struct Status {
    id: String,
    leader: String,
    term: u64,
}

/// The member that says that it leads, in the latest term, if more than half say the same: one that was stopped for a
/// while goes on believing for a moment that it leads.
fn leader(members: &[Option<u16>]) -> Option<usize> {
    let heard: Vec<Option<Status>> = members.iter().map(|port| port.and_then(status)).collect();
    let leading = heard.iter().enumerate().filter_map(|(n, status)| Some((n, status.as_ref()?)));
    let (n, it) = leading.filter(|(_, status)| status.leader == status.id).max_by_key(|(_, status)| status.term)?;
    let agreeing = heard.iter().flatten().filter(|status| status.leader == it.id && status.term == it.term);
    (agreeing.count() * 2 > members.len()).then_some(n)
}

fn status(port: u16) -> Option<Status> {
    let said = post(port, "/v3/maintenance/status", "{}")?;
    let text = |value: &Value| value.as_str().map(str::to_string);
    let (id, leader) = (text(&said["header"]["member_id"])?, text(&said["leader"])?);
    Some(Status { id, leader, term: said["raftTerm"].as_str()?.parse().ok()? })
}

/// Asks a member over its JSON gateway, in the clear and without a user; nothing unless it answers with an object.
pub fn post(port: u16, path: &str, body: &str) -> Option<Value> {
    let length = body.len();
    let said = format!("POST {path} HTTP/1.0\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    let heard = ports::ask(port, said.as_bytes(), |_| false); // to the end: the connection is closed after it
    let heard = String::from_utf8(heard).ok()?;
    let (_, body) = heard.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok().filter(Value::is_object)
}
