//! What happens when somebody is stopped, killed or late: each case is one story between ours and the peer, on a name of its
//! own.
//!
//! The surprise: nobody's word is taken for whether the lock is free. The judge itself looks at what stands in the store,
//! and at a clock that is not the parties'.

pub mod common;
pub mod etcd;
pub mod redis;

use std::time::Duration;

use lockkeeper_rig::Trouble;

use super::family::Ground;
use super::party::{Answer, Party, Program};
use super::witness::{Witness, shown};

/// The lease of whoever is not to lose it.
const LONG: Duration = Duration::from_secs(30);
/// After the end of a lease, or a release, the next one must be in within this.
const SOON: Duration = Duration::from_secs(10);
/// Many times the pause between two tries of any peer.
const SETTLED: Duration = Duration::from_millis(400);
/// A server looks at its clock once per round of its loop.
const EARLY_MICROS: u64 = 5_000;

/// Where a case plays.
#[derive(Debug)]
pub struct Scene<'a> {
    pub ground: Ground,
    pub key: String,
    pub ours: &'a Program,
    pub peer: &'a Program,
    /// Ours, sharing the lock with others of ours, where that can be tried.
    pub sharing: Option<&'a Program>,
}

/// One case.
pub struct Case {
    pub name: &'static str,
    pub needs: Needs,
    pub play: fn(&Scene<'_>) -> Result<(), Trouble>,
}

/// What a case needs of the two that play it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// The peer is one process, and can be stopped.
    OneProcess,
    /// The peer has locks without a lease.
    Endless,
    /// Ours can share the lock.
    Sharing,
}

impl Needs {
    /// Why a case is not played without it.
    pub fn missing(self) -> &'static str {
        match self {
            Needs::Nothing => "nothing is missing",
            Needs::OneProcess => "this peer is a program in a script, which cannot be stopped as one",
            Needs::Endless => "this peer has no locks without a lease",
            Needs::Sharing => "the stand-in cannot share",
        }
    }

    /// Whether a scene has it.
    pub fn are_met(self, scene: &Scene<'_>) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::OneProcess => scene.peer.one_process,
            Needs::Endless => scene.peer.endless,
            Needs::Sharing => scene.sharing.is_some(),
        }
    }
}

impl Scene<'_> {
    /// The lease of whoever is to lose it.
    fn short(&self) -> Duration {
        self.ground.family.short
    }

    fn ours(&self, lease: Duration) -> Result<Party, Trouble> {
        Party::ready(self.ours, 1, self.ground, &self.key, lease)
    }

    fn peer(&self, lease: Duration) -> Result<Party, Trouble> {
        Party::ready(self.peer, 1, self.ground, &self.key, lease)
    }

    fn witness(&self) -> Result<Box<dyn Witness>, Trouble> {
        self.ground.witness(&self.key)
    }
}

/// When the holder's lease ends if nobody renews it, in the server's time. Asked before the next one is let loose: a
/// renewal may move it, but only to later.
fn end_of_lease(witness: &mut dyn Witness) -> Result<u64, Trouble> {
    let (now, left) = witness.ends()?;
    left.map(|left| now + left).ok_or_else(|| Trouble::new("whoever holds the lock has no lease, or its lock is gone"))
}

/// Waits until the next one is in, and checks that this is not before the other's lease ended.
fn is_in_after(end: u64, next: &mut Party, witness: &mut dyn Witness) -> Result<(), Trouble> {
    next.is_in(SOON)?;
    let (now, _) = witness.ends()?;
    let early = end.saturating_sub(now);
    let what = format!("`{}` came in {} ms before the lease of the other ended", next.name, early / 1000);
    ensure(early <= EARLY_MICROS, &what)
}

/// Does something with a lock that is somebody else's by now.
fn frees_nothing(
    party: &mut Party,
    what: &str,
    deed: fn(&mut Party) -> Result<Answer, Trouble>,
) -> Result<(), Trouble> {
    let answer = deed(party)?;
    ensure(answer != Answer::Yes, &format!("`{}` says `{what}: ok` about a lock that was not its own", party.name))
}

/// Ours releases what is another's by now, which has this value at the lock's key.
fn leaves_alone(ours: &mut Party, witness: &mut dyn Witness, value: &Option<Vec<u8>>) -> Result<(), Trouble> {
    frees_nothing(ours, "release", Party::release)?;
    let after = witness.value()?;
    unchanged(value, &after, "the release")?;
    ensure(!witness.would_get_in()?, "the release of ours freed the lock of another")
}

fn unchanged(before: &Option<Vec<u8>>, after: &Option<Vec<u8>>, by: &str) -> Result<(), Trouble> {
    let (first, then) = (shown(before.as_deref()), shown(after.as_deref()));
    ensure(before == after, &format!("{by} of ours changed the key of another: {first}, then {then}"))
}

fn still_ours(ours: &mut Party, witness: &mut dyn Witness, after: &str) -> Result<(), Trouble> {
    ensure(witness.value()?.is_some(), &format!("the key of ours was gone after {after}"))?;
    ensure(!witness.would_get_in()?, &format!("the lock of ours was free after {after}"))?;
    ensure(ours.believes()?, &format!("ours does not believe to hold the lock after {after}"))
}

/// The holder releases as it should, and the other one gets in and out.
fn passes(from: &mut Party, to: &mut Party, witness: &mut dyn Witness) -> Result<(), Trouble> {
    ensure(from.release()? != Answer::No, &format!("`{}` lost a lock that was its own", from.name))?;
    to.take()?;
    to.is_in(SOON)?;
    frees(to, witness)
}

/// The holder releases as it should, and nothing is left behind: anybody could get in.
fn frees(holder: &mut Party, witness: &mut dyn Witness) -> Result<(), Trouble> {
    ensure(holder.release()? != Answer::No, &format!("`{}` lost a lock that was its own", holder.name))?;
    ensure(witness.would_get_in()?, &format!("the lock was not free after `{}` released it", holder.name))?;
    let ghosts = witness.in_our_line()?;
    ensure(ghosts == 0, &format!("{ghosts} of ours still stand in line, and nobody waits"))
}

fn ensure(truth: bool, otherwise: &str) -> Result<(), Trouble> {
    if truth { Ok(()) } else { Err(Trouble::new(otherwise)) }
}
