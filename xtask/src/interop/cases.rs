//! What happens when somebody is stopped, killed or late: each case is one story between ours and the peer, on a key of its
//! own.
//!
//! The surprise: nobody's word is taken for whether the lock is free. The judge itself tries a plain `SET NX` and looks at
//! the server's clock.

use std::time::Duration;

use lockkeeper_rig::Trouble;

use super::party::{Answer, Party, Program};
use super::witness::{Witness, shown};

/// The lease of whoever is to lose it.
const SHORT: Duration = Duration::from_secs(1);
/// The lease of whoever is not.
const LONG: Duration = Duration::from_secs(30);
/// After the end of a lease, or a release, the next one must be in within this.
const SOON: Duration = Duration::from_secs(10);
/// Many times the pause between two tries of any peer.
const SETTLED: Duration = Duration::from_millis(400);
/// The server looks at its clock once per round of its loop.
const EARLY_MICROS: u64 = 5_000;

/// Where a case plays.
#[derive(Debug)]
pub struct Scene<'a> {
    pub port: u16,
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
            Needs::Endless => "this peer has no locks without a lease",
            Needs::Sharing => "the stand-in cannot share",
        }
    }

    /// Whether a scene has it.
    pub fn are_met(self, scene: &Scene<'_>) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::Endless => scene.peer.endless,
            Needs::Sharing => scene.sharing.is_some(),
        }
    }
}

/// All of them.
pub const CASES: &[Case] = &[
    Case { name: "a_stopped_peer_frees_nothing_of_ours", needs: Needs::Nothing, play: stopped_peer },
    Case { name: "a_late_peer_neither_frees_nor_extends_ours", needs: Needs::Nothing, play: late_peer },
    Case { name: "ours_stopped_frees_nothing_of_the_peer", needs: Needs::Nothing, play: stopped_ours },
    Case { name: "ours_robbed_frees_nothing_of_the_peer", needs: Needs::Nothing, play: robbed_ours },
    Case { name: "renewals_of_ours_robbed_take_nothing_back", needs: Needs::Nothing, play: robbed_renewals },
    Case { name: "a_robbed_line_of_ours_frees_nothing", needs: Needs::Nothing, play: robbed_line },
    Case { name: "the_peer_is_in_when_the_lease_of_ours_killed_ends", needs: Needs::Nothing, play: killed_ours },
    Case { name: "ours_is_in_when_the_lease_of_a_killed_peer_ends", needs: Needs::Nothing, play: killed_peer },
    Case { name: "renewals_of_ours_keep_the_peer_out", needs: Needs::Nothing, play: renewed_ours },
    Case { name: "extensions_of_the_peer_keep_ours_out", needs: Needs::Nothing, play: extended_peer },
    Case { name: "a_lock_without_a_lease_keeps_ours_out", needs: Needs::Endless, play: endless_peer },
    Case { name: "readers_of_ours_keep_the_peer_out_to_the_last", needs: Needs::Sharing, play: readers },
    Case { name: "permits_of_ours_keep_the_peer_out_to_the_last", needs: Needs::Sharing, play: permits },
];

impl Scene<'_> {
    fn ours(&self, lease: Duration) -> Result<Party, Trouble> {
        Party::ready(self.ours, 1, self.port, &self.key, lease)
    }

    fn peer(&self, lease: Duration) -> Result<Party, Trouble> {
        Party::ready(self.peer, 1, self.port, &self.key, lease)
    }

    fn witness(&self) -> Result<Witness, Trouble> {
        Witness::connect(self.port, &self.key)
    }
}

/// A peer is stopped (SIGSTOP) beyond its lease and ours gets in. Woken, the peer releases: ours still holds.
fn stopped_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(SHORT)?, scene.ours(LONG)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    let end = end_of_lease(&mut witness)?;
    peer.process.pause()?;
    ours.take()?;
    is_in_after(end, &mut ours, &mut witness)?;
    peer.process.resume()?;
    frees_nothing(&mut peer, "release", Party::release)?;
    still_ours(&mut ours, &mut witness, "the stopped peer released")?;
    passes(&mut ours, &mut peer, &mut witness)
}

/// A peer whose lease ran out while it worked extends and releases when the lock is ours: ours still holds.
fn late_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(SHORT)?, scene.ours(LONG)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    let end = end_of_lease(&mut witness)?;
    ours.take()?;
    is_in_after(end, &mut ours, &mut witness)?;
    frees_nothing(&mut peer, "extend", Party::extend)?;
    still_ours(&mut ours, &mut witness, "the late peer extended")?;
    frees_nothing(&mut peer, "release", Party::release)?;
    still_ours(&mut ours, &mut witness, "the late peer released")?;
    passes(&mut ours, &mut peer, &mut witness)
}

/// Ours is stopped beyond its lease and the peer gets in. Woken, ours knows that it lost, and its release frees nothing.
fn stopped_ours(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(LONG)?, scene.ours(SHORT)?, scene.witness()?);
    ours.take()?;
    ours.is_in(SOON)?;
    let end = end_of_lease(&mut witness)?;
    ours.process.pause()?;
    peer.take()?;
    is_in_after(end, &mut peer, &mut witness)?;
    let before = witness.value()?;
    ours.process.resume()?;
    ensure(!ours.believes()?, "ours still believes to hold the lock after a stop beyond its lease")?;
    leaves_alone(&mut ours, &mut witness, &before)?;
    passes(&mut peer, &mut ours, &mut witness)
}

/// Somebody deletes the key of ours and the peer gets in. Ours, which cannot know yet, releases: the peer still holds.
fn robbed_ours(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(LONG)?, scene.ours(LONG)?, scene.witness()?);
    ours.take()?;
    ours.is_in(SOON)?;
    witness.rob(None)?;
    peer.take()?;
    peer.is_in(SOON)?;
    let before = witness.value()?;
    leaves_alone(&mut ours, &mut witness, &before)?;
    passes(&mut peer, &mut ours, &mut witness)
}

/// Somebody deletes the key of ours and the peer gets in. Ours finds out with its next renewal, which changes nothing.
fn robbed_renewals(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(LONG)?, scene.ours(SHORT)?, scene.witness()?);
    ours.take()?;
    ours.is_in(SOON)?;
    witness.rob(None)?;
    peer.take()?;
    peer.is_in(SOON)?;
    let before = witness.value()?;
    let found_out = ours.is_lost_within(SHORT * 2)?;
    let after = witness.value()?;
    unchanged(&before, &after, "a renewal")?;
    ensure(found_out, "ours was robbed and did not say so within two leases")?;
    ensure(!ours.believes()?, "ours still believes to hold the lock that it lost")?;
    leaves_alone(&mut ours, &mut witness, &before)?;
    passes(&mut peer, &mut ours, &mut witness)
}

/// The judge robs one of ours while a second one waits in line: neither frees what the robber has, and the second gets in
/// when the robber is gone.
fn robbed_line(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut first, mut witness) = (scene.peer(LONG)?, scene.ours(LONG)?, scene.witness()?);
    let mut second = Party::ready(scene.ours, 2, scene.port, &scene.key, LONG)?;
    first.take()?;
    first.is_in(SOON)?;
    second.take()?;
    ensure(!second.is_in_within(SETTLED)?, "two of ours were in together")?;
    witness.rob(Some("a robber"))?;
    leaves_alone(&mut first, &mut witness, &Some(b"a robber".to_vec()))?;
    ensure(!second.is_in_within(SETTLED)?, "the second of ours came in while the robber held")?;
    witness.rob(None)?;
    second.is_in(SOON)?;
    passes(&mut second, &mut peer, &mut witness)
}

/// kill -9 of ours: the peer, which waits, is in when the lease has ended and not before.
fn killed_ours(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(LONG)?, scene.ours(SHORT)?, scene.witness()?);
    ours.take()?;
    ours.is_in(SOON)?;
    let end = end_of_lease(&mut witness)?;
    peer.take()?;
    ours.process.kill()?;
    is_in_after(end, &mut peer, &mut witness)?;
    frees(&mut peer, &mut witness)
}

/// kill -9 of a peer: ours, which waits, is in when the lease has ended and not before.
fn killed_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(SHORT)?, scene.ours(LONG)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    let end = end_of_lease(&mut witness)?;
    ours.take()?;
    peer.process.kill()?;
    is_in_after(end, &mut ours, &mut witness)?;
    frees(&mut ours, &mut witness)
}

/// Ours holds for two leases, by its own renewals; a peer that asks all the time gets in after the release only.
fn renewed_ours(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(LONG)?, scene.ours(SHORT)?, scene.witness()?);
    ours.take()?;
    ours.is_in(SOON)?;
    peer.take()?;
    ensure(!peer.is_in_within(SHORT * 2)?, "the peer came in while ours held and renewed")?;
    still_ours(&mut ours, &mut witness, "two leases went by")?;
    ensure(ours.release()? == Answer::Yes, "ours lost the lock that it renewed")?;
    peer.is_in(SOON)?;
    frees(&mut peer, &mut witness)
}

/// A peer extends its lock to twice its lease; ours, which waits, gets in after the release only.
fn extended_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    const EXTENSIONS: u32 = 6;
    let (mut peer, mut ours, mut witness) = (scene.peer(SHORT)?, scene.ours(LONG)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    ours.take()?;
    for _ in 0..EXTENSIONS {
        ensure(!ours.is_in_within(SHORT / 3)?, "ours came in while the peer held and extended")?;
        ensure(peer.extend()? == Answer::Yes, "the peer could not extend what it held")?;
    }
    ensure(peer.release()? != Answer::No, "the peer lost the lock that it extended")?;
    ours.is_in(SOON)?;
    frees(&mut ours, &mut witness)
}

/// A peer takes the lock without any lease; ours, which waits, gets in after the release only.
fn endless_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(Duration::ZERO)?, scene.ours(SHORT)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    let (_, left) = witness.ends()?;
    ensure(left.is_none(), "the peer's lock was to be without a lease")?;
    ours.take()?;
    ensure(!ours.is_in_within(SHORT * 2)?, "ours came in while the peer held")?;
    ensure(peer.release()? != Answer::No, "the peer lost a lock that never ends")?;
    ours.is_in(SOON)?;
    frees(&mut ours, &mut witness)
}

fn readers(scene: &Scene<'_>) -> Result<(), Trouble> {
    shared(scene, &["--shared"])
}

fn permits(scene: &Scene<'_>) -> Result<(), Trouble> {
    shared(scene, &["--permits", "1/2"])
}

/// Two of ours are in together; the peer, which waits, gets in when the second has left, not the first.
fn shared(scene: &Scene<'_>, how: &[&str]) -> Result<(), Trouble> {
    let Some(sharing) = scene.sharing else { return Err(Trouble::new("nobody to share with; this is a bug")) };
    let mut peer = scene.peer(LONG)?;
    let mut witness = scene.witness()?;
    let mut first = Party::start(&sharing.told(how), 1, scene.port, &scene.key, LONG)?;
    first.is_in(SOON)?;
    peer.take()?;
    let mut second = Party::start(&sharing.told(how), 2, scene.port, &scene.key, LONG)?;
    second.is_in(SOON)?;
    ensure(!witness.would_get_in()?, "the lock was free while two of ours shared it")?;
    ensure(first.release()? == Answer::Yes, "the first of ours lost the lock")?;
    ensure(!peer.is_in_within(SETTLED)?, "the peer came in while the second of ours was still in")?;
    ensure(!witness.would_get_in()?, "the lock was free while the second of ours was still in")?;
    ensure(second.release()? == Answer::Yes, "the second of ours lost the lock")?;
    peer.is_in(SOON)?;
    frees(&mut peer, &mut witness)
}

/// When the holder's lease ends if nobody renews it, in the server's time. Asked before the next one is let loose: a
/// renewal may move it, but only to later.
fn end_of_lease(witness: &mut Witness) -> Result<u64, Trouble> {
    let (now, left) = witness.ends()?;
    left.map(|left| now + left).ok_or_else(|| Trouble::new("whoever holds the lock has no lease, or its lock is gone"))
}

/// Waits until the next one is in, and checks that this is not before the other's lease ended.
fn is_in_after(end: u64, next: &mut Party, witness: &mut Witness) -> Result<(), Trouble> {
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
fn leaves_alone(ours: &mut Party, witness: &mut Witness, value: &Option<Vec<u8>>) -> Result<(), Trouble> {
    frees_nothing(ours, "release", Party::release)?;
    let after = witness.value()?;
    unchanged(value, &after, "the release")?;
    ensure(!witness.would_get_in()?, "the release of ours freed the lock of another")
}

fn unchanged(before: &Option<Vec<u8>>, after: &Option<Vec<u8>>, by: &str) -> Result<(), Trouble> {
    let (first, then) = (shown(before.as_deref()), shown(after.as_deref()));
    ensure(before == after, &format!("{by} of ours changed the key of another: {first}, then {then}"))
}

fn still_ours(ours: &mut Party, witness: &mut Witness, after: &str) -> Result<(), Trouble> {
    ensure(witness.value()?.is_some(), &format!("the key of ours was gone after {after}"))?;
    ensure(!witness.would_get_in()?, &format!("the lock of ours was free after {after}"))?;
    ensure(ours.believes()?, &format!("ours does not believe to hold the lock after {after}"))
}

/// The holder releases as it should, and the other one gets in and out.
fn passes(from: &mut Party, to: &mut Party, witness: &mut Witness) -> Result<(), Trouble> {
    ensure(from.release()? != Answer::No, &format!("`{}` lost a lock that was its own", from.name))?;
    to.take()?;
    to.is_in(SOON)?;
    frees(to, witness)
}

/// The holder releases as it should, and nothing is left behind: anybody could get in.
fn frees(holder: &mut Party, witness: &mut Witness) -> Result<(), Trouble> {
    ensure(holder.release()? != Answer::No, &format!("`{}` lost a lock that was its own", holder.name))?;
    ensure(witness.would_get_in()?, &format!("the lock was not free after `{}` released it", holder.name))?;
    let ghosts = witness.in_our_line()?;
    ensure(ghosts == 0, &format!("{ghosts} of ours still stand in line, and nobody waits"))
}

fn ensure(truth: bool, otherwise: &str) -> Result<(), Trouble> {
    if truth { Ok(()) } else { Err(Trouble::new(otherwise)) }
}
