//! Tests of the arena: what is started, and what is found left behind.

use std::time::Instant;

use lockkeeper::Keeper;

use super::resp::{Reply, Resp};
use super::*;
use crate::history::Leftover;
use crate::nemesis::tests::{plan, servers_wanted};

const SOON: Duration = Duration::from_secs(10);

/// A plan whose leases are over soon.
fn short() -> Plan {
    plan(&[], 100)
}

fn sorts(clutter: &Clutter) -> Vec<&str> {
    clutter.left.iter().map(|left| left.what.as_str()).collect()
}

#[tokio::test]
async fn a_file_is_started_and_a_claim_that_is_left_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let arena = Arena::start("sqlite", &[Nemesis::PauseHolder], folder.path()).unwrap();
    assert_eq!((arena.target(), arena.worker_env(0)), ("sqlite", Vec::new()));
    let (promised, version) = arena.promised().await.unwrap();
    assert_eq!(promised.scheme, "sqlite");
    assert!(promised.tokens && promised.durable && version.is_none());
    let keeper = Keeper::connect(&arena.worker_url()).await.unwrap();
    let (ours, theirs) = (format!("verify/{}/a", short().seed), "verify/8/a".to_owned());
    let _other = keeper.mutex(&theirs).lock().await.unwrap();
    let hold = keeper.mutex(&ours).lock().await.unwrap();
    let clutter = arena.after(&short()).await;
    assert_eq!(sorts(&clutter), ["claim"], "{clutter:?}");
    assert!(clutter.left[0].name.starts_with(&ours), "{clutter:?}");
    hold.release().await.unwrap();
    let began = Instant::now();
    let clutter = arena.after(&Plan { lease_ms: 60_000, ..short() }).await;
    assert!(clutter.left.is_empty() && clutter.at > 0, "{clutter:?}");
    assert!(began.elapsed() < SOON, "it does not wait when nothing is left");
    assert!(clutter.unseen.iter().any(|unseen| unseen.contains("tables")), "{clutter:?}");
}

#[tokio::test]
async fn a_store_that_cannot_be_seen_is_not_taken_for_a_clean_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "no folder").unwrap();
    let path = folder.path().join("file/locks.db");
    let arena = Arena::start(&format!("sqlite:{}", path.display()), &[], folder.path()).unwrap();
    assert!(arena.promised().await.unwrap_err().to_string().contains("cannot be used"));
    let clutter = arena.after(&short()).await;
    assert!(clutter.unseen.iter().any(|unseen| unseen.starts_with("claims:")), "{clutter:?}");
}

#[test]
fn what_would_hurt_others_is_refused_before_anything_is_started() {
    let folder = std::env::temp_dir().join(format!("lockkeeper-verify-none-{}", std::process::id()));
    for (target, nemesis) in
        [("redis://h", Nemesis::KillStore), ("sqlite", Nemesis::Cut), ("redis", Nemesis::StepStore)]
    {
        assert!(Arena::start(target, &[Nemesis::KillHolder, nemesis], &folder).is_err(), "{target} {nemesis:?}");
    }
    assert!(Arena::start("redys", &[], &folder).is_err());
    assert!(Arena::start("redis://h:x", &[], &folder).is_err(), "no proxy can be put before it");
    assert!(!folder.exists());
}

#[test]
fn a_folder_may_have_any_name() {
    assert_eq!(encoded("/a%b?c d"), "/a%25b%3Fc d");
}

#[tokio::test]
async fn what_a_redis_has_left_is_found() {
    if !servers_wanted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arena = Arena::start("redis", &[Nemesis::Cut, Nemesis::KillStore], folder.path()).unwrap();
    let port = arena.server_ports()[0];
    assert!(!arena.worker_url().contains(&port.to_string()), "workers go by the proxy");
    let (promised, version) = arena.promised().await.unwrap();
    assert!(promised.push && !promised.durable && version.is_some(), "{promised:?}");
    let keeper = Keeper::connect(&arena.worker_url()).await.unwrap();
    for round in 0..3 {
        let lock = format!("verify/{}/{round}", short().seed);
        keeper.mutex(&lock).lock().await.unwrap().release().await.unwrap();
    }
    let clutter = arena.after(&short()).await;
    assert!(sorts(&clutter).contains(&"subscription") && sorts(&clutter).contains(&"connection"), "{clutter:?}");
    keeper.close().await.unwrap();
    drop(keeper);
    let mut direct = Resp::to(port).unwrap();
    direct.ask(&["SET", "{lockkeeper/verify/7/x}:cell", "1", "PX", "60000"]).unwrap();
    assert_eq!(sorts(&arena.after(&short()).await), ["connection"], "our own, which speaks past the store");
    assert_eq!(direct.ask(&["SET", "{lockkeeper/verify/7/x}:line", "1"]).unwrap(), Reply::Text("OK".to_owned()));
    drop(direct);
    let clutter = arena.after(&short()).await;
    assert_eq!(
        clutter.left.iter().map(|left| left.name.as_str()).collect::<Vec<_>>(),
        ["{lockkeeper/verify/7/x}:line"]
    );
    assert!(clutter.unseen.is_empty(), "{clutter:?}");
}

#[tokio::test]
async fn what_a_cluster_has_left_is_found_and_wiped() {
    if !servers_wanted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arena = Arena::start("etcd-3", &[Nemesis::Cut, Nemesis::KillStore], folder.path()).unwrap();
    let ports = arena.server_ports();
    assert_eq!((ports.len(), arena.proxies.len()), (3, 3));
    assert!(ports.iter().all(|port| !arena.worker_url().contains(&port.to_string())), "workers go by the proxies");
    let (promised, version) = arena.promised().await.unwrap();
    assert!(promised.quorum && promised.durable && promised.lease_min_ms == 2_000, "{promised:?}");
    assert!(version.is_some());
    let keeper = Keeper::connect(&arena.worker_url()).await.unwrap();
    let hold = keeper.mutex(&format!("verify/{}/a", short().seed)).lock().await.unwrap();
    let cell = keeper.cell(&format!("verify/{}/kept", short().seed));
    cell.keep(Duration::from_secs(60)).put(b"1").await.unwrap();
    let found = sorts(&arena.after(&short()).await).join(" ");
    assert_eq!(found, "key connection claim", "the claim by its key and by its line, and our connection");
    hold.release().await.unwrap();
    keeper.close().await.unwrap();
    drop(keeper);
    let clutter = arena.after(&short()).await;
    assert!(clutter.left.is_empty() && clutter.unseen.is_empty(), "a cell that forgets itself may stay: {clutter:?}");
    let put = lockkeeper_rig::ask_etcd(ports[1], "/v3/kv/put", r#"{"key":"YWJj","value":"MQ=="}"#);
    assert!(put.is_some());
    assert_eq!(arena.after(&short()).await.left, [Leftover { what: "key".to_owned(), name: "abc".to_owned() }]);
    etcd::wipe(&ports).unwrap();
    assert!(arena.after(&short()).await.left.is_empty());
}

#[tokio::test]
async fn a_server_of_somebody_else_is_reached_by_a_proxy_and_left_alone() {
    if !servers_wanted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::named("redis-acl").unwrap();
    let arena = Arena::start(&server.url(), &[Nemesis::Cut], folder.path()).unwrap();
    assert!(!arena.target().contains(lockkeeper_rig::REDIS_USER_PASSWORD), "{}", arena.target());
    assert!(arena.target().contains(lockkeeper_rig::REDIS_USER));
    let keeper = Keeper::connect(&arena.worker_url()).await.unwrap();
    keeper.mutex("verify/7/a").lock().await.unwrap().release().await.unwrap();
    assert!(arena.proxies[0].counts().accepted > 0);
    let clutter = arena.after(&short()).await;
    assert!(clutter.left.is_empty() && clutter.unseen.len() == 1, "{clutter:?}");
    drop(arena);
    assert!(server.identity().unwrap().is_alive());
}
