//! Clusters: members are hurt one by one, the others go on, and nothing is left behind.
//!
//! The surprise: how long an election takes is not judged here, only that there is one; the limits are for busy machines.

use super::etcd::{get, put};
use super::*;

const ELECTED_WITHIN: Duration = Duration::from_secs(60);

/// A cluster of our own, or nothing when nobody asked for servers.
fn cluster() -> Option<Cluster> {
    asked_for().then(|| Cluster::named("etcd-3").expect("the cluster starts"))
}

/// The processes and folders of all members.
fn all_of(cluster: &Cluster) -> Vec<(Identity, PathBuf)> {
    let members = cluster.members().iter();
    members.map(|server| (server.identity().unwrap(), server.folder().to_path_buf())).collect()
}

/// Waits until this member took a value, and until that one, asked with the others, has it.
fn carries(cluster: &Cluster, from: usize, to: usize, value: &str) {
    let port = |n: usize| cluster.members()[n].port();
    poll(ELECTED_WITHIN, || put(port(from), value)).expect("a value is put");
    let seen = poll(ELECTED_WITHIN, || get(port(to), true).filter(|seen| seen == value));
    assert_eq!(seen.as_deref(), Some(value));
}

#[test]
fn a_cluster_is_one_store_and_leaves_nothing_behind() {
    let Some(cluster) = cluster() else { return };
    let ports: Vec<u16> = cluster.members().iter().map(Server::port).collect();
    let [a, b, c] = ports[..] else { panic!("three members, not {ports:?}") };
    assert_eq!(cluster.url(), format!("etcd://127.0.0.1:{a},127.0.0.1:{b},127.0.0.1:{c}"));
    assert_eq!(cluster.members()[1].url(), format!("etcd://127.0.0.1:{b}"));
    let entry = cluster.entry().unwrap();
    assert!(entry.members.len() == 3 && entry.is_ready() && entry.version.starts_with("3."), "{entry:?}");
    assert!(cluster.leader().unwrap() < 3);
    carries(&cluster, 0, 2, "AQ==");
    let all = all_of(&cluster);
    assert!(all.iter().all(|(_, folder)| folder.join("data/member").is_dir()), "each has a folder of its own");
    cluster.stop().unwrap();
    for (identity, folder) in all {
        assert_gone(identity, &folder);
    }
    assert!(!entry.is_alive() && !entry.is_ready());
}

#[test]
fn a_killed_leader_is_replaced_and_comes_back() {
    let Some(mut cluster) = cluster() else { return };
    let first = cluster.leader().unwrap();
    let was = cluster.members()[first].identity().unwrap();
    cluster.member(first).kill().unwrap();
    assert!(!was.is_alive());
    assert!(cluster.entry().is_err(), "not all of it runs");
    let second = cluster.leader().unwrap();
    assert_ne!(second, first);
    let third = 3 - first - second;
    carries(&cluster, third, second, "Ag==");
    cluster.member(first).restart().unwrap();
    let has_it = poll(ELECTED_WITHIN, || get(cluster.members()[first].port(), true)).unwrap();
    assert_eq!(has_it, "Ag==", "it has what it missed");
    assert!(cluster.entry().unwrap().is_ready());
    assert!(cluster.leader().is_ok());
}

#[test]
fn a_stopped_leader_is_replaced_and_believes_it_in_the_end() {
    let Some(mut cluster) = cluster() else { return };
    let first = cluster.leader().unwrap();
    cluster.member(first).pause().unwrap();
    let second = cluster.leader().unwrap();
    assert_ne!(second, first);
    carries(&cluster, second, 3 - first - second, "Aw==");
    assert_eq!(get(cluster.members()[first].port(), false), None, "it is silent");
    cluster.member(first).resume().unwrap();
    let port = cluster.members()[first].port();
    let seen = poll(ELECTED_WITHIN, || get(port, true).filter(|seen| seen == "Aw=="));
    assert!(seen.is_some(), "it follows the others");
    let all = all_of(&cluster);
    cluster.member(second).pause().unwrap();
    drop(cluster); // ends, although one is stopped
    for (identity, folder) in all {
        assert_gone(identity, &folder);
    }
}

#[test]
fn a_cluster_that_was_killed_comes_back_as_a_whole() {
    let Some(mut cluster) = cluster() else { return };
    carries(&cluster, 0, 1, "BA==");
    let all = all_of(&cluster);
    cluster.kill().unwrap();
    cluster.kill().unwrap(); // none is left to kill
    assert!(!all.iter().any(|(identity, _)| identity.is_alive()));
    cluster.restart().unwrap();
    let again = all_of(&cluster);
    assert!(all.iter().zip(&again).all(|(old, new)| old.0 != new.0 && old.1 == new.1));
    assert_eq!(poll(ELECTED_WITHIN, || get(cluster.members()[2].port(), true)).as_deref(), Some("BA=="));
    cluster.restart().unwrap(); // none is left to restart
}

#[test]
fn a_killed_owner_takes_the_whole_cluster_along() {
    if !asked_for() {
        return;
    }
    let owned = killed_owner("etcd-3");
    assert_eq!(owned.len(), 3);
    for (identity, folder) in owned {
        assert_gone(identity, &folder);
    }
}

#[test]
fn a_server_by_itself_is_a_cluster_of_one_and_not_the_other_way_round() {
    if !asked_for() {
        return;
    }
    let said = Server::named("etcd-3").unwrap_err().to_string();
    assert!(said.contains("more than one server") && said.contains("hint: `Cluster::named"), "{said}");
    let cluster = Cluster::named("redis").unwrap();
    assert_eq!(cluster.members().len(), 1);
    assert_eq!(cluster.url(), cluster.members()[0].url());
    assert!(cluster.leader().unwrap_err().to_string().contains("has no leader"));
}

/// Two shells that start together and write down what they know of each other; the second one breaks.
static PAIR: Spec = Spec {
    members: &[
        Spec { name: "pair", files: &[], prepare: &[], ..script(&["-c", "exec sleep 600 # {port2}"], ELECTED_WITHIN) },
        Spec {
            name: "pair",
            files: &[],
            prepare: &[],
            ..script(&["-c", "echo I am {member}: {port} {port@1} {port@0} {port2@0}; exit 4"], ELECTED_WITHIN)
        },
    ],
    ..script(&[], ELECTED_WITHIN)
};

#[test]
fn members_know_each_other_and_one_that_breaks_ends_the_start() {
    let (parent, began) = (parent("pair"), Instant::now());
    let said = Cluster::start(&PAIR, &parent).unwrap_err().to_string();
    assert!(said.contains("`pair` (member 1) ended instead of starting (exit status: 4)"), "{said}");
    assert!(began.elapsed() < ELECTED_WITHIN, "nobody waited for the other one");
    let (_, knows) = said.split_once("I am 1: ").expect("it wrote");
    let ports: Vec<u16> = knows.split_whitespace().map(|port| port.parse().unwrap()).collect();
    let [own, own_again, other, other_s_second] = ports[..] else { panic!("{said}") };
    assert!(own == own_again && own != other && own != other_s_second && other != other_s_second, "{ports:?}");
    fs::remove_dir(&parent).expect("nothing is left behind");
}
