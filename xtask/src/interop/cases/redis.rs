//! What is told of plain Redis locks only: they end with their lease unless somebody extends them, and who holds one is a
//! value that anybody can write.

use std::time::Duration;

use lockkeeper_rig::Trouble;

use super::*;

/// For Redis.
pub const CASES: &[Case] = &[
    Case { name: "a_late_peer_neither_frees_nor_extends_ours", needs: Needs::Nothing, play: late_peer },
    Case { name: "a_robbed_line_of_ours_frees_nothing", needs: Needs::Nothing, play: robbed_line },
    Case { name: "extensions_of_the_peer_keep_ours_out", needs: Needs::Nothing, play: extended_peer },
    Case { name: "a_lock_without_a_lease_keeps_ours_out", needs: Needs::Endless, play: endless_peer },
];

/// A peer whose lease ran out while it worked extends and releases when the lock is ours: ours still holds.
fn late_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(scene.short())?, scene.ours(LONG)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    let end = end_of_lease(&mut *witness)?;
    ours.take()?;
    is_in_after(end, &mut ours, &mut *witness)?;
    frees_nothing(&mut peer, "extend", Party::extend)?;
    still_ours(&mut ours, &mut *witness, "the late peer extended")?;
    frees_nothing(&mut peer, "release", Party::release)?;
    still_ours(&mut ours, &mut *witness, "the late peer released")?;
    passes(&mut ours, &mut peer, &mut *witness)
}

/// The judge robs one of ours while a second one waits in line: neither frees what the robber has, and the second gets in
/// when the robber is gone.
fn robbed_line(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut first, mut witness) = (scene.peer(LONG)?, scene.ours(LONG)?, scene.witness()?);
    let mut second = Party::ready(scene.ours, 2, scene.ground, &scene.key, LONG)?;
    first.take()?;
    first.is_in(SOON)?;
    second.take()?;
    ensure(!second.is_in_within(SETTLED)?, "two of ours were in together")?;
    witness.rob(Some("a robber"))?;
    leaves_alone(&mut first, &mut *witness, &Some(b"a robber".to_vec()))?;
    ensure(!second.is_in_within(SETTLED)?, "the second of ours came in while the robber held")?;
    witness.rob(None)?;
    second.is_in(SOON)?;
    passes(&mut second, &mut peer, &mut *witness)
}

/// A peer extends its lock to twice its lease; ours, which waits, gets in after the release only.
fn extended_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    const EXTENSIONS: u32 = 6;
    let (mut peer, mut ours, mut witness) = (scene.peer(scene.short())?, scene.ours(LONG)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    ours.take()?;
    for _ in 0..EXTENSIONS {
        ensure(!ours.is_in_within(scene.short() / 3)?, "ours came in while the peer held and extended")?;
        ensure(peer.extend()? == Answer::Yes, "the peer could not extend what it held")?;
    }
    ensure(peer.release()? != Answer::No, "the peer lost the lock that it extended")?;
    ours.is_in(SOON)?;
    frees(&mut ours, &mut *witness)
}

/// A peer takes the lock without any lease; ours, which waits, gets in after the release only.
fn endless_peer(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(Duration::ZERO)?, scene.ours(scene.short())?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    let (_, left) = witness.ends()?;
    ensure(left.is_none(), "the peer's lock was to be without a lease")?;
    ours.take()?;
    ensure(!ours.is_in_within(scene.short() * 2)?, "ours came in while the peer held")?;
    ensure(peer.release()? != Answer::No, "the peer lost a lock that never ends")?;
    ours.is_in(SOON)?;
    frees(&mut ours, &mut *witness)
}
