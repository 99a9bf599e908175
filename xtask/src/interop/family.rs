//! A family: one store on which other people's locks and ours exclude each other, as data.
//!
//! The surprise: the race and most cases do not know which store they play on; only the witness does.

use std::fmt;
use std::time::Duration;

use lockkeeper_rig::Trouble;

use super::cases::{Case, common};
use super::peers::Peer;
use super::self_test::Fault;
use super::witness::Witness;
use super::{etcd, redis};
use crate::setup::Tool;

/// A store, and everything that is played on it.
pub struct Family {
    /// The rig's name for its server, and the scheme of its URLs.
    pub name: &'static str,
    /// What its peers need from the machine.
    pub tools: &'static [Tool],
    pub peers: &'static [Peer],
    pub races: &'static [Race],
    /// The cases that only this one has.
    pub own_cases: &'static [Case],
    /// What the judge must catch.
    pub faults: &'static [Fault],
    /// A lease that is soon over.
    pub short: Duration,
    /// The stand-in's script, in Python.
    pub stand_in: &'static str,
    /// What makes it do as ours does.
    pub as_ours: &'static str,
    /// What makes it do as the peers do.
    pub as_peer: &'static str,
    /// What ours appends to the URL, so that a name is the key itself.
    pub ours_at: &'static str,
    /// What the holder's value begins with while ours holds; nothing if a hold's value never changes.
    pub mark_of_ours: Option<&'static [u8]>,
    pub witness: Called,
}

/// Calls a witness of one lock of the server at this port.
type Called = fn(u16, &str) -> Result<Box<dyn Witness>, Trouble>;

/// A race: its name, the kind of our lock, how long ours stays away, the hand-overs it must have: quick, and in full.
pub type Race = (&'static str, &'static str, (u64, u64), u32, u32);

/// All of them.
pub const FAMILIES: &[&Family] = &[&redis::FAMILY, &etcd::FAMILY];

impl Family {
    /// Everything that can be played.
    pub fn cases(&self) -> impl Iterator<Item = &'static Case> {
        common::CASES.iter().chain(self.own_cases)
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A server of a family.
#[derive(Clone, Copy, Debug)]
pub struct Ground {
    pub family: &'static Family,
    pub port: u16,
}

impl Ground {
    /// Where a program connects that appends this.
    pub fn url(&self, tail: &str) -> String {
        format!("{}://127.0.0.1:{}{tail}", self.family.name, self.port)
    }

    /// A witness of this lock.
    pub fn witness(&self, key: &str) -> Result<Box<dyn Witness>, Trouble> {
        (self.family.witness)(self.port, key)
    }
}
