//! The variants of redis and etcd: each does what its name says, and leaves nothing behind.
//!
//! The surprise: no variant is shared, so each test here starts its own.

use std::io::BufReader;
use std::os::unix::net::UnixStream;

use super::*;

fn seconds(talk: &mut Talk) -> i64 {
    talk.ask("TIME").unwrap().split(' ').next().unwrap().parse().unwrap()
}

/// Seconds by which the server's clock is ahead of ours.
fn ahead(talk: &mut Talk) -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    seconds(talk) - i64::try_from(now).unwrap()
}

#[test]
fn only_plain_servers_are_shared() {
    let shared: Vec<&str> = SERVERS.iter().filter(|spec| spec.is_shared()).map(|spec| spec.name).collect();
    assert_eq!(shared, ["redis", "etcd", "etcd-3"]);
    assert!(SERVERS.iter().all(|spec| shared.contains(&spec.store())));
}

#[test]
fn a_durable_server_has_its_data_after_a_kill() {
    let Some(mut server) = variant("redis-durable") else { return };
    let port = server.port();
    assert_eq!(Talk::to(port).ask("SET a 1").unwrap(), "+OK");
    server.kill().unwrap();
    server.restart().unwrap();
    assert_eq!(server.port(), port);
    assert_eq!(Talk::to(port).ask("GET a").unwrap(), "1");
}

#[test]
fn a_plain_server_is_empty_after_a_kill() {
    let Some(mut server) = redis() else { return };
    assert_eq!(Talk::to(server.port()).ask("SET a 1").unwrap(), "+OK");
    server.kill().unwrap();
    server.restart().unwrap();
    assert_eq!(Talk::to(server.port()).ask("GET a").unwrap(), "nil");
}

#[test]
fn a_server_listens_on_a_socket_in_its_folder() {
    let Some(server) = variant("redis-unix") else { return };
    let path = server.url().strip_prefix("redis+unix://").unwrap().to_string();
    assert!(Path::new(&path).starts_with(server.folder()));
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(Talk(BufReader::new(stream)).ask("PING").unwrap(), "+PONG");
}

#[test]
fn a_server_with_users_wants_a_password() {
    let Some(server) = variant("redis-acl") else { return };
    let mut talk = Talk::to(server.port());
    assert!(talk.ask("GET lockkeeper/a").unwrap().starts_with("-NOAUTH"));
    assert!(talk.ask(&format!("AUTH {REDIS_USER} wrong")).unwrap().starts_with("-WRONGPASS"));
    assert_eq!(talk.ask(&format!("AUTH {REDIS_USER} {REDIS_USER_PASSWORD}")).unwrap(), "+OK");
    assert_eq!(talk.ask("SET lockkeeper/a 1").unwrap(), "+OK");
    assert_eq!(talk.ask("HSET {lockkeeper/a}:line b 1").unwrap(), ":1");
    assert!(talk.ask("SET other/a 1").unwrap().starts_with("-NOPERM"));
    assert!(talk.ask("FLUSHALL").unwrap().starts_with("-NOPERM"));
    assert_eq!(talk.ask(&format!("AUTH {REDIS_PASSWORD}")).unwrap(), "+OK");
    assert_eq!(talk.ask("FLUSHALL").unwrap(), "+OK");
    assert!(server.url().starts_with(&format!("redis://{REDIS_USER}:{REDIS_USER_PASSWORD}@")));
    let listed = fs::read_to_string(format!("/proc/{}/cmdline", server.identity().unwrap().pid)).unwrap();
    assert!(listed.contains("redis-server") && !listed.contains("swordfish"), "{listed}");
}

#[test]
fn a_clock_is_stepped_and_keys_follow_it() {
    let Some(mut server) = variant("redis-stepped") else { return };
    let mut talk = Talk::to(server.port());
    assert!((-2..=2).contains(&ahead(&mut talk)));
    assert_eq!(talk.ask("SET a 1 PX 60000").unwrap(), "+OK");
    server.step_clock("+40s").unwrap();
    assert!((38..=42).contains(&ahead(&mut talk)));
    let left: i64 = talk.ask("PTTL a").unwrap()[1..].parse().unwrap();
    assert!((1..=20_000).contains(&left), "{left}");
    server.step_clock("-1h").unwrap();
    assert!((-3602..=-3598).contains(&ahead(&mut talk)));
    let left: i64 = talk.ask("PTTL a").unwrap()[1..].parse().unwrap();
    assert!(left > 3_600_000, "{left}");
    server.step_clock("+2m").unwrap();
    assert_eq!(talk.ask("GET a").unwrap(), "nil");
    server.kill().unwrap();
    server.restart().unwrap();
    assert!((118..=122).contains(&ahead(&mut Talk::to(server.port()))), "a restart keeps the step");
}

#[test]
fn a_clock_is_stepped_only_where_it_can_be() {
    let (Some(plain), Some(stepped)) = (redis(), variant("redis-stepped")) else { return };
    assert!(plain.step_clock("+40s").unwrap_err().to_string().contains("hint: start `redis-stepped`"));
    for wrong in ["", "40s", "+", "+s", "tomorrow", "+1s 2", "--1s"] {
        assert!(stepped.step_clock(wrong).is_err(), "{wrong}");
    }
    assert!((-2..=2).contains(&ahead(&mut Talk::to(stepped.port()))), "nothing was changed");
}

/// What the library keeps outside of the server's folder.
fn leftovers(pid: u32) -> Vec<PathBuf> {
    let library = SERVERS.iter().find_map(|spec| spec.library.as_ref()).unwrap();
    library.leaves.iter().map(|path| PathBuf::from(path.replace("{pid}", &pid.to_string()))).collect()
}

#[test]
fn a_stepped_server_leaves_nothing_behind() {
    let Some(mut server) = variant("redis-stepped") else { return };
    let first = leftovers(server.identity().unwrap().pid);
    assert!(first.iter().all(|path| path.exists()), "it has them while it runs, or this shows nothing: {first:?}");
    server.kill().unwrap();
    assert!(!first.iter().any(|path| path.exists()), "after a kill");
    server.restart().unwrap();
    let second = leftovers(server.identity().unwrap().pid);
    assert!(second.iter().all(|path| path.exists()));
    server.stop().unwrap();
    assert!(!second.iter().any(|path| path.exists()), "after a stop");
    let (identity, folder) = killed_owner("redis-stepped").remove(0);
    assert_gone(identity, &folder);
    let gone = || leftovers(identity.pid).iter().all(|path| !path.exists());
    assert!(poll(SOON, || gone().then_some(())).is_some(), "after the owner's death");
}
