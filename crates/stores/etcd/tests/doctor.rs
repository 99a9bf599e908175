//! What the doctor says of real clusters: well, hurt, full, with users, and not one cluster at all.
//!
//! Surprise: none of these is shared. The doctor looks at the whole cluster, and others must not hurt it meanwhile.

use std::process::Command;
use std::time::{Duration, Instant};

use lockkeeper_conformance::rig::{Cluster, SERVERS, Server, wanted};
use lockkeeper_core::access::Secret;
use lockkeeper_core::checkup::{Kept, Level, Promise, Report};
use lockkeeper_core::store::{Held, Keep, Left, Renewal, Standing, Store};
use lockkeeper_core::{Claim, ClaimId, Error, ErrorKind, LockKind, Name, Owner, Patience};
use lockkeeper_etcd::{Endpoint, Etcd, Options, checkup};

/// Were servers asked for? If not, that is said aloud.
fn asked_for() -> bool {
    use std::io::Write;
    static ONCE: std::sync::Once = std::sync::Once::new();
    if !wanted() {
        // To the stream itself: the test harness swallows `eprintln!`.
        let line = "\nNOT RUN: tests of the doctor with a real etcd; `cargo xtask test` runs them\n";
        ONCE.call_once(|| drop(writeln!(std::io::stderr(), "{line}")));
    }
    wanted()
}

fn alone() -> Option<Server> {
    asked_for().then(|| Server::named("etcd").expect("a server of its own"))
}

/// A server of its own with another configuration.
fn configured(change: impl Fn(&str) -> String) -> Server {
    let spec = SERVERS.iter().find(|spec| spec.name == "etcd").expect("the server is known");
    let (name, file) = spec.files[0];
    let changed = change(file);
    assert_ne!(changed, file);
    Server::named_with("etcd", &[(name, &changed)]).expect("a server of its own")
}

fn three() -> Option<Cluster> {
    let cluster = asked_for().then(|| Cluster::named("etcd-3").expect("a cluster of its own"));
    if let Some(cluster) = &cluster {
        cluster.leader().expect("a leader");
    }
    cluster
}

fn at(ports: &[u16]) -> Options {
    let endpoint = |port: &u16| Endpoint { host: "127.0.0.1".to_owned(), port: *port };
    let mut options = Options::at(ports.iter().map(endpoint).collect());
    options.listed_under = "lockkeeper/".to_owned();
    options
}

fn ports(cluster: &Cluster) -> Vec<u16> {
    cluster.members().iter().map(Server::port).collect()
}

fn mutex() -> Claim {
    Claim {
        id: ClaimId::random().unwrap(),
        owner: Owner::new("test").unwrap(),
        kind: LockKind::Mutex,
        weight: 1,
        capacity: 1,
        lease: Duration::from_secs(30),
        delay: Duration::ZERO,
        fair: false,
        patience: Patience::Queue,
        note: Vec::new(),
    }
}

/// The level of the finding on this topic that says this.
#[track_caller]
fn level(report: &Report, topic: &str, words: &str) -> Level {
    let said = |finding: &&lockkeeper_core::checkup::Finding| finding.topic == topic && finding.found.contains(words);
    match report.findings.iter().find(said) {
        Some(finding) => finding.level,
        None => panic!("{topic}: {words} in {report:#?}"),
    }
}

#[track_caller]
fn fact(report: &Report, topic: &str) -> String {
    let fact = report.facts.iter().find(|fact| fact.topic == topic);
    fact.unwrap_or_else(|| panic!("{topic} in {report:#?}")).value.clone()
}

#[track_caller]
fn etcdctl(port: u16, words: &[&str]) -> String {
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").arg(format!("--endpoints=127.0.0.1:{port}")).args(words);
    let done = command.output().expect("etcdctl runs");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&done.stderr));
    said
}

#[tokio::test]
async fn one_server_is_looked_over_and_left_as_it_was() {
    let Some(server) = alone() else { return };
    let report = checkup(at(&[server.port()])).await.unwrap();
    assert_eq!((report.store, report.address.as_str()), ("etcd", format!("127.0.0.1:{}", server.port()).as_str()));
    for promise in [
        Promise::Usable,
        Promise::WritablePrimary,
        Promise::Restart,
        Promise::NoEviction,
        Promise::Tokens,
        Promise::Push,
        Promise::Fair,
    ] {
        assert_eq!(report.kept(promise), Kept::Yes, "{promise:?} in {report:#?}");
    }
    assert_eq!(report.kept(Promise::Failover), Kept::No);
    assert_eq!(report.kept(Promise::PowerLoss), Kept::No, "the rig's servers do not sync their disks");
    assert_eq!(level(&report, "members", "one member"), Level::Note);
    assert_eq!(level(&report, "persistence", "--unsafe-no-fsync"), Level::Warning);
    assert_eq!(level(&report, "lease", "a lease of 2 s is one of 2 s"), Level::Good);
    for topic in ["alarms", "space", "leader", "lag", "rights", "transport", "clock", "trial"] {
        assert_eq!(level(&report, topic, ""), Level::Good);
    }
    for topic in ["server", "members", "leader", "latency", "lease", "size", "disk", "user", "transport", "hand-over"] {
        assert!(!fact(&report, topic).is_empty());
    }
    assert_eq!(etcdctl(server.port(), &["get", "", "--prefix", "--keys-only"]), "", "nothing is left");
    // A client that is closed right after a release leaves the lease of that claim to run out: it was short.
    let begun = Instant::now();
    while !etcdctl(server.port(), &["lease", "list"]).starts_with("found 0 leases") {
        assert!(begun.elapsed() < Duration::from_secs(60), "a lease stays");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn the_servers_own_lock_is_tried_for_real() {
    let Some(server) = alone() else { return };
    let report = checkup(at(&[server.port()])).await.unwrap();
    let version = fact(&report, "server");
    // The line of 3.4 has the fault; it was repaired on the way to 3.5.
    match version.starts_with("etcd 3.4.") {
        true => assert_eq!(level(&report, "own lock", "grants to a waiter whose lease has ended"), Level::Note),
        false => assert_eq!(level(&report, "own lock", "refuses a waiter whose lease has ended"), Level::Good),
    }
}

#[tokio::test]
async fn a_syncing_server_is_believed() {
    if !asked_for() {
        return;
    }
    let server = configured(|file| file.replace("unsafe-no-fsync: true", "unsafe-no-fsync: false"));
    let report = checkup(at(&[server.port()])).await.unwrap();
    assert_eq!(report.kept(Promise::PowerLoss), Kept::Yes, "{report:#?}");
}

#[tokio::test]
async fn a_cluster_bears_one_loss_and_says_so() {
    let Some(mut cluster) = three() else { return };
    let ports = ports(&cluster);
    let report = checkup(at(&ports)).await.unwrap();
    assert_eq!(report.kept(Promise::Failover), Kept::Yes, "{report:#?}");
    assert_eq!(level(&report, "members", "3 of 3 members with a vote are reached; 1 may be lost"), Level::Good);
    assert_eq!(level(&report, "leader", "the same one leads"), Level::Good);
    if fact(&report, "server").starts_with("etcd 3.4.23") {
        assert_eq!(level(&report, "version", "etcd#15247"), Level::Warning);
    }
    // A client that names one of three is told; those it does not name are found.
    let report = checkup(at(&ports[..1])).await.unwrap();
    assert_eq!(level(&report, "members", "2 of 3 members with a vote are not named"), Level::Note);
    assert_eq!(report.kept(Promise::Failover), Kept::Yes, "{report:#?}");

    let leader = cluster.leader().unwrap();
    cluster.member(leader).kill().unwrap();
    cluster.leader().unwrap();
    let report = checkup(at(&ports)).await.unwrap();
    assert_eq!(level(&report, "members", "2 of 3 members with a vote are reached"), Level::Warning);
    assert_eq!(level(&report, "members", &format!("127.0.0.1:{}", ports[leader])), Level::Warning);
    assert_eq!((report.kept(Promise::Usable), report.kept(Promise::Failover)), (Kept::Yes, Kept::No), "{report:#?}");
}

#[tokio::test]
async fn a_member_that_is_stopped_is_missed_in_bounded_time() {
    let Some(mut cluster) = three() else { return };
    let ports = ports(&cluster);
    let leader = cluster.leader().unwrap();
    cluster.member((leader + 1) % 3).pause().unwrap();
    let mut options = at(&ports);
    options.timeout = Duration::from_secs(3);
    let report = tokio::time::timeout(Duration::from_secs(60), checkup(options)).await.expect("bounded").unwrap();
    assert_eq!(level(&report, "members", "2 of 3 members with a vote are reached"), Level::Warning);
    assert_eq!(report.kept(Promise::Usable), Kept::Yes, "{report:#?}");
}

#[tokio::test]
async fn without_a_majority_it_is_said_that_there_is_no_leader() {
    let Some(mut cluster) = three() else { return };
    let ports = ports(&cluster);
    let stays = cluster.leader().unwrap();
    for other in [(stays + 1) % 3, (stays + 2) % 3] {
        cluster.member(other).kill().unwrap();
    }
    let mut options = at(&ports);
    options.timeout = Duration::from_secs(2);
    // It leads on until it has missed the others for an election's time.
    let mut left = 20;
    let report = loop {
        let report = checkup(options.clone()).await.unwrap();
        left -= 1;
        if left == 0 || fact(&report, "leader") == "none" {
            break report;
        }
    };
    assert_eq!(level(&report, "leader", "there is no leader"), Level::Danger);
    assert_eq!(level(&report, "members", "1 of 3 members with a vote are reached, and 2 are needed"), Level::Danger);
    for promise in [Promise::Usable, Promise::WritablePrimary, Promise::Failover] {
        assert_eq!(report.kept(promise), Kept::No, "{promise:?}");
    }
    assert!(report.trust().starts_with("Locks cannot be used here"), "{}", report.trust());
}

#[tokio::test]
async fn two_clusters_are_a_danger() {
    let (Some(one), Some(two)) = (alone(), alone()) else { return };
    let report = checkup(at(&[one.port(), two.port()])).await.unwrap();
    assert_eq!(level(&report, "members", "belong to 2 clusters"), Level::Danger);
    assert_eq!(level(&report, "members", "is named and is no member"), Level::Warning);
}

#[tokio::test]
async fn nobody_there_is_an_error() {
    let error: Error = checkup(at(&[1])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_full_server_is_a_danger() {
    if !asked_for() {
        return;
    }
    let server = configured(|file| format!("{file}\nquota-backend-bytes: 2097152\n"));
    let store = Etcd::open(at(&[server.port()])).await.unwrap();
    let (name, claim) = (Name::new("held").unwrap(), mutex());
    let standing = store.enter(&name, &claim).await.unwrap();
    assert!(matches!(standing, Standing::Held { .. }), "{standing:?}");
    let much = "x".repeat(100_000);
    for n in 0..60 {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg(format!("--endpoints=127.0.0.1:{}", server.port()));
        if !command.args(["put", &format!("fill/{n}"), &much]).output().expect("etcdctl runs").status.success() {
            break;
        }
    }
    let report = checkup(at(&[server.port()])).await.unwrap();
    assert_eq!(level(&report, "alarms", "NOSPACE"), Level::Danger);
    assert_eq!(level(&report, "space", "of a quota of 2 MiB"), Level::Warning);
    assert_eq!(report.kept(Promise::Usable), Kept::No, "{report:#?}");
    // As the page of this store says: what is held goes on, and can be released.
    let held = [Held { lock: name.clone(), id: claim.id, lease: claim.lease }];
    assert!(matches!(store.renew(&held).await.unwrap()[..], [Renewal::Renewed { .. }]));
    assert_eq!(store.leave(&name, claim.id, Keep::Nothing).await.unwrap(), Left::Released);
    assert_eq!(store.enter(&name, &mutex()).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn rights_that_are_missing_are_named() {
    let Some(server) = alone() else { return };
    let port = server.port();
    let mut options = at(&[port]);
    options.user = Some("keeper".to_owned());
    options.password = Some(Secret::new("open-sesame"));
    let report = checkup(options.clone()).await.unwrap();
    assert_eq!(level(&report, "user", "does not ask for one"), Level::Note);

    etcdctl(port, &["user", "add", "root:toor"]);
    etcdctl(port, &["user", "grant-role", "root", "root"]);
    etcdctl(port, &["user", "add", "keeper:open-sesame"]);
    etcdctl(port, &["role", "add", "keeper"]);
    etcdctl(port, &["role", "grant-permission", "keeper", "--prefix=true", "readwrite", "lockkeeper/"]);
    etcdctl(port, &["user", "grant-role", "keeper", "keeper"]);
    etcdctl(port, &["auth", "enable"]);
    let report = checkup(options.clone()).await.unwrap();
    assert_eq!(level(&report, "rights", "may not write under `{cell}/lockkeeper/`"), Level::Danger);
    assert!(fact(&report, "user").starts_with("keeper; the cluster asks who one is"), "{report:#?}");
    assert!(!format!("{report:?}").contains("open-sesame"));

    let root = "--user=root:toor";
    let grant = ["role", "grant-permission", "keeper", "--prefix=true", "readwrite", "{cell}/lockkeeper/"];
    etcdctl(port, &[&[root], &grant[..]].concat());
    let report = checkup(options.clone()).await.unwrap();
    assert_eq!(level(&report, "rights", "may do all that locks need"), Level::Good);
    assert_eq!(report.kept(Promise::Usable), Kept::Yes, "{report:#?}");
    assert_eq!(
        level(&report, "own lock", ""),
        if fact(&report, "server").contains(" 3.4.") { Level::Note } else { Level::Good }
    );

    options.password = Some(Secret::new("wrong"));
    let error = checkup(options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(!format!("{error:?}").contains("wrong"));
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn an_encrypted_way_is_seen_and_so_is_what_is_counted_behind_it() {
    use lockkeeper_conformance::certificates::{Host, serve};
    if !asked_for() {
        return;
    }
    let server = serve("etcd-tls", Host::Right).expect("a server of its own");
    let mut options = at(&[server.ports()[1]]);
    let ca = server.folder().join("ca.pem");
    options.tls = Some(lockkeeper_core::access::Tls { ca: Some(ca), ..Default::default() });
    let report = checkup(options).await.unwrap();
    assert_eq!(level(&report, "transport", "TLS, and the servers were checked"), Level::Good);
    assert_eq!(report.kept(Promise::Usable), Kept::Yes, "{report:#?}");
    assert_eq!(level(&report, "persistence", "--unsafe-no-fsync"), Level::Warning);
}
