//! Plain Redis locks: `SET key value NX PX lease`.

mod wire;
mod witness;

use std::time::Duration;

use super::cases;
use super::family::Family;
use super::peers::{self, Peer};
use super::race::{AWAY_MS, FORGETS_MS};
use super::self_test::Fault;
use crate::setup;

/// redis-py, node-redlock and rslock, and what they meet.
pub const FAMILY: Family = Family {
    name: "redis",
    tools: setup::FOR_REDIS_PEERS,
    peers: &[
        Peer { name: "redis-py", install: peers::redis_py },
        Peer { name: "node-redlock", install: peers::node_redlock },
        Peer { name: "rslock", install: peers::rslock },
    ],
    races: &[
        ("a mutex", "mutex", AWAY_MS, 50, 300),
        ("a mutex that ours seldom wants", "mutex", FORGETS_MS, 20, 200),
        ("a semaphore of one", "semaphore(1)", AWAY_MS, 10, 100),
        ("a write lock", "write lock", AWAY_MS, 10, 100),
        ("a mutex of threads", "blocking", AWAY_MS, 0, 100),
    ],
    own_cases: cases::redis::CASES,
    faults: FAULTS,
    short: Duration::from_secs(1),
    stand_in: "stand-in/redis/peer.py",
    as_ours: "renews",
    as_peer: "",
    ours_at: "/?prefix=",
    mark_of_ours: Some(b"lk1"),
    witness: |port, key| Ok(Box::new(witness::RedisWitness::connect(port, key)?)),
};

const FAULTS: &[Fault] = &[
    ("", "blind-set", "race", "which was still in"),
    ("blind-set", "", "race", "which was still in"),
    ("", "blind-release", "a_stopped_peer_frees_nothing_of_ours", "says `release: ok`"),
    ("", "blind-release", "a_late_peer_neither_frees_nor_extends_ours", "says `release: ok`"),
    ("", "blind-extend", "a_late_peer_neither_frees_nor_extends_ours", "says `extend: ok`"),
    ("", "mute blind-release", "a_stopped_peer_frees_nothing_of_ours", "the key of ours was gone"),
    ("", "blind-set", "the_peer_is_in_when_the_lease_of_ours_killed_ends", "before the lease of the other ended"),
    ("no-lease", "", "the_peer_is_in_when_the_lease_of_ours_killed_ends", "has no lease"),
    ("blind-set", "", "ours_is_in_when_the_lease_of_a_killed_peer_ends", "before the lease of the other ended"),
    ("no-renewal", "", "renewals_of_ours_keep_the_peer_out", "the peer came in while ours held"),
    ("", "blind-set", "renewals_of_ours_keep_the_peer_out", "the peer came in while ours held"),
    ("blind-set", "", "extensions_of_the_peer_keep_ours_out", "ours came in while the peer held"),
    ("blind-release", "", "ours_stopped_frees_nothing_of_the_peer", "says `release: ok`"),
    ("mute blind-release", "", "ours_stopped_frees_nothing_of_the_peer", "changed the key of another"),
    ("blind-release", "", "ours_robbed_frees_nothing_of_the_peer", "says `release: ok`"),
    ("blind-extend", "", "renewals_of_ours_robbed_take_nothing_back", "changed the key of another"),
    ("no-renewal", "", "renewals_of_ours_robbed_take_nothing_back", "did not say so"),
    ("mute blind-release", "", "a_robbed_line_of_ours_frees_nothing", "changed the key of another"),
    ("no-clock", "", "ours_stopped_frees_nothing_of_the_peer", "ours still believes"),
];
