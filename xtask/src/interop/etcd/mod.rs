//! The locks of etcd's own clients: a key under `NAME/` on a lease, and the one that was made first is in.

mod gateway;
mod witness;

use std::time::Duration;

use super::cases;
use super::family::Family;
use super::peers::{self, Peer};
use super::race::AWAY_MS;
use super::self_test::Fault;
use crate::setup;

/// Go's `concurrency` and `etcdctl lock`, and what they meet.
pub const FAMILY: Family = Family {
    name: "etcd",
    tools: setup::FOR_ETCD_PEERS,
    peers: &[
        Peer { name: "go-concurrency", install: peers::go_concurrency },
        Peer { name: "etcdctl", install: peers::etcdctl },
    ],
    races: &[
        ("a mutex", "mutex", AWAY_MS, 50, 300),
        ("a semaphore of one", "semaphore(1)", AWAY_MS, 10, 100),
        ("a write lock", "write lock", AWAY_MS, 10, 100),
        ("a mutex of threads", "blocking", AWAY_MS, 0, 100),
    ],
    own_cases: cases::etcd::CASES,
    faults: FAULTS,
    // The shortest that etcd grants with its own settings.
    short: Duration::from_secs(2),
    stand_in: "stand-in/etcd/peer.py",
    as_ours: "",
    as_peer: "counts-below",
    ours_at: "?prefix=",
    mark_of_ours: None,
    witness: |port, name| Ok(Box::new(witness::EtcdWitness::new(port, name))),
};

const FAULTS: &[Fault] = &[
    ("", "blind-take", "race", "which was still in"),
    ("blind-take", "", "race", "which was still in"),
    ("", "blind-release", "a_stopped_peer_frees_nothing_of_ours", "says `release: ok`"),
    ("", "mute blind-release", "a_stopped_peer_frees_nothing_of_ours", "the key of ours was gone"),
    ("", "blind-take", "the_peer_is_in_when_the_lease_of_ours_killed_ends", "before the lease of the other ended"),
    ("no-lease", "", "the_peer_is_in_when_the_lease_of_ours_killed_ends", "has no lease"),
    ("blind-take", "", "ours_is_in_when_the_lease_of_a_killed_peer_ends", "before the lease of the other ended"),
    ("no-renewal", "", "renewals_of_ours_keep_the_peer_out", "the peer came in while ours held"),
    ("", "blind-take", "renewals_of_ours_keep_the_peer_out", "the peer came in while ours held"),
    ("blind-release", "", "ours_stopped_frees_nothing_of_the_peer", "says `release: ok`"),
    ("mute blind-release", "", "ours_stopped_frees_nothing_of_the_peer", "changed the key of another"),
    ("no-clock", "", "ours_stopped_frees_nothing_of_the_peer", "ours still believes"),
    ("blind-release", "", "ours_robbed_frees_nothing_of_the_peer", "says `release: ok`"),
    ("no-renewal", "", "renewals_of_ours_robbed_take_nothing_back", "did not say so"),
    ("polls", "", "a_release_of_the_peer_wakes_ours", "nobody woke it"),
    ("", "polls", "a_release_of_ours_wakes_the_peer", "nobody woke it"),
    ("blind-take", "", "both_stand_in_one_line", "came as number 1 and was in: true"),
    ("blind-take", "", "the_session_of_the_peer_keeps_ours_out", "ours came in while the peer held"),
    ("", "no-renewal", "the_session_of_the_peer_keeps_ours_out", "ours came in while the peer held"),
    ("counts-below", "", "the_peer_waits_for_names_below_and_ours_does_not", "ours waited for one of ours"),
    ("", "blind-take", "the_peer_waits_for_names_below_and_ours_does_not", "held a name below"),
];
