//! What must hold on every store where other people's locks and ours meet.

use lockkeeper_rig::Trouble;

use super::*;

/// For every store.
pub const CASES: &[Case] = &[
    Case { name: "a_stopped_peer_frees_nothing_of_ours", needs: Needs::OneProcess, play: stopped_peer },
    Case { name: "ours_stopped_frees_nothing_of_the_peer", needs: Needs::Nothing, play: stopped_ours },
    Case { name: "ours_robbed_frees_nothing_of_the_peer", needs: Needs::Nothing, play: robbed_ours },
    Case { name: "renewals_of_ours_robbed_take_nothing_back", needs: Needs::Nothing, play: robbed_renewals },
    Case { name: "the_peer_is_in_when_the_lease_of_ours_killed_ends", needs: Needs::Nothing, play: killed_ours },
    Case { name: "ours_is_in_when_the_lease_of_a_killed_peer_ends", needs: Needs::Nothing, play: killed_peer },
    Case { name: "renewals_of_ours_keep_the_peer_out", needs: Needs::Nothing, play: renewed_ours },
    Case { name: "readers_of_ours_keep_the_peer_out_to_the_last", needs: Needs::Sharing, play: readers },
    Case { name: "permits_of_ours_keep_the_peer_out_to_the_last", needs: Needs::Sharing, play: permits },
];

/// A peer is stopped (SIGSTOP) beyond its lease and ours gets in. Woken, the peer releases: ours still holds.
fn stopped_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(scene.short())?, scene.ours(LONG)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    let end = end_of_lease(&mut *witness)?;
    peer.process.pause()?;
    ours.take()?;
    is_in_after(end, &mut ours, &mut *witness)?;
    peer.process.resume()?;
    frees_nothing(&mut peer, "release", Party::release)?;
    still_ours(&mut ours, &mut *witness, "the stopped peer released")?;
    passes(&mut ours, &mut peer, &mut *witness)
}

/// Ours is stopped beyond its lease and the peer gets in. Woken, ours knows that it lost, and its release frees nothing.
fn stopped_ours(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(LONG)?, scene.ours(scene.short())?, scene.witness()?);
    ours.take()?;
    ours.is_in(SOON)?;
    let end = end_of_lease(&mut *witness)?;
    ours.process.pause()?;
    peer.take()?;
    is_in_after(end, &mut peer, &mut *witness)?;
    let before = witness.value()?;
    ours.process.resume()?;
    ensure(!ours.believes()?, "ours still believes to hold the lock after a stop beyond its lease")?;
    leaves_alone(&mut ours, &mut *witness, &before)?;
    passes(&mut peer, &mut ours, &mut *witness)
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
    leaves_alone(&mut ours, &mut *witness, &before)?;
    passes(&mut peer, &mut ours, &mut *witness)
}

/// Somebody deletes the key of ours and the peer gets in. Ours finds out with its next renewal, which changes nothing.
fn robbed_renewals(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(LONG)?, scene.ours(scene.short())?, scene.witness()?);
    ours.take()?;
    ours.is_in(SOON)?;
    witness.rob(None)?;
    peer.take()?;
    peer.is_in(SOON)?;
    let before = witness.value()?;
    let found_out = ours.is_lost_within(scene.short() * 2)?;
    let after = witness.value()?;
    unchanged(&before, &after, "a renewal")?;
    ensure(found_out, "ours was robbed and did not say so within two leases")?;
    ensure(!ours.believes()?, "ours still believes to hold the lock that it lost")?;
    leaves_alone(&mut ours, &mut *witness, &before)?;
    passes(&mut peer, &mut ours, &mut *witness)
}

/// kill -9 of ours: the peer, which waits, is in when the lease has ended and not before.
fn killed_ours(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(LONG)?, scene.ours(scene.short())?, scene.witness()?);
    ours.take()?;
    ours.is_in(SOON)?;
    let end = end_of_lease(&mut *witness)?;
    peer.take()?;
    ours.process.kill()?;
    is_in_after(end, &mut peer, &mut *witness)?;
    frees(&mut peer, &mut *witness)
}

/// kill -9 of a peer: ours, which waits, is in when the lease has ended and not before.
fn killed_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(scene.short())?, scene.ours(LONG)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    let end = end_of_lease(&mut *witness)?;
    ours.take()?;
    peer.process.kill()?;
    is_in_after(end, &mut ours, &mut *witness)?;
    frees(&mut ours, &mut *witness)
}

/// Ours holds for two leases, by its own renewals; a peer that asks all the time gets in after the release only.
fn renewed_ours(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(LONG)?, scene.ours(scene.short())?, scene.witness()?);
    ours.take()?;
    ours.is_in(SOON)?;
    peer.take()?;
    ensure(!peer.is_in_within(scene.short() * 2)?, "the peer came in while ours held and renewed")?;
    still_ours(&mut ours, &mut *witness, "two leases went by")?;
    ensure(ours.release()? == Answer::Yes, "ours lost the lock that it renewed")?;
    peer.is_in(SOON)?;
    frees(&mut peer, &mut *witness)
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
    let mut first = Party::start(&sharing.told(how), 1, scene.ground, &scene.key, LONG)?;
    first.is_in(SOON)?;
    let mut second = Party::start(&sharing.told(how), 2, scene.ground, &scene.key, LONG)?;
    second.is_in(SOON)?;
    // Not before: where all stand in one line, the second would wait behind the peer.
    peer.take()?;
    ensure(!witness.would_get_in()?, "the lock was free while two of ours shared it")?;
    ensure(first.release()? == Answer::Yes, "the first of ours lost the lock")?;
    ensure(!peer.is_in_within(SETTLED)?, "the peer came in while the second of ours was still in")?;
    ensure(!witness.would_get_in()?, "the lock was free while the second of ours was still in")?;
    ensure(second.release()? == Answer::Yes, "the second of ours lost the lock")?;
    peer.is_in(SOON)?;
    frees(&mut peer, &mut *witness)
}
