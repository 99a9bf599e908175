//! What is told of etcd's locks only: whoever wants one has a key under its name, all stand in one line in the order in
//! which they came, and each watches the one before it.

use std::time::{Duration, Instant};

use lockkeeper_rig::Trouble;

use super::*;

/// For etcd.
pub const CASES: &[Case] = &[
    Case { name: "a_release_of_the_peer_wakes_ours", needs: Needs::Nothing, play: peer_wakes },
    Case { name: "a_release_of_ours_wakes_the_peer", needs: Needs::Nothing, play: ours_wakes },
    Case { name: "both_stand_in_one_line", needs: Needs::Nothing, play: one_line },
    Case { name: "the_session_of_the_peer_keeps_ours_out", needs: Needs::Nothing, play: kept_session },
    Case { name: "the_peer_waits_for_names_below_and_ours_does_not", needs: Needs::Nothing, play: names_below },
];

/// Whoever is told of a release is in within this. Ours asks again by itself 1.6 to 2 s after it began to wait, and the release
/// comes soon after that began: who only asks is in later.
const WOKEN: Duration = Duration::from_millis(1250);
/// How often the judge looks at the line.
const LOOKS_EVERY: Duration = Duration::from_millis(5);
/// How often it must be told.
const WAKES: u32 = 5;
/// How long the one that waits is left alone before the release.
const WAITS: Duration = Duration::from_millis(100);
/// How long the judge looks whether somebody comes in who must not. A busy machine gets time to be caught.
const WATCHED: Duration = Duration::from_millis(1500);

/// The peer holds, ours waits and is told when the peer releases.
fn peer_wakes(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours) = (scene.peer(LONG)?, scene.ours(LONG)?);
    wakes(&mut peer, &mut ours, scene)
}

/// Ours holds, the peer waits and is told when ours releases.
fn ours_wakes(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours) = (scene.peer(LONG)?, scene.ours(LONG)?);
    wakes(&mut ours, &mut peer, scene)
}

fn wakes(holder: &mut Party, next: &mut Party, scene: &Scene<'_>) -> Result<(), Trouble> {
    let mut witness = scene.witness()?;
    for _ in 0..WAKES {
        holder.take()?;
        holder.is_in(SOON)?;
        next.take()?;
        until_one_waits(&mut *witness)?;
        ensure(!next.is_in_within(WAITS)?, &format!("`{}` came in while `{}` held", next.name, holder.name))?;
        let told = Instant::now();
        ensure(holder.release()? != Answer::No, &format!("`{}` lost a lock that was its own", holder.name))?;
        next.is_in(SOON)?;
        let took = told.elapsed();
        let late = format!("`{}` was in only {} ms after the release: nobody woke it", next.name, took.as_millis());
        ensure(took < WOKEN, &late)?;
        frees(next, &mut *witness)?;
    }
    Ok(())
}

/// Looks until somebody stands in line behind the holder.
fn until_one_waits(witness: &mut dyn Witness) -> Result<(), Trouble> {
    let asked = Instant::now();
    while witness.in_our_line()? == 0 {
        ensure(asked.elapsed() < SOON, "nobody stood in line though one was told to take the lock")?;
        std::thread::sleep(LOOKS_EVERY);
    }
    Ok(())
}

/// The peer holds; ours, another peer and another of ours come one after the other, and get in as they came.
fn one_line(scene: &Scene<'_>) -> Result<(), Trouble> {
    let another = |program| Party::ready(program, 2, scene.ground, &scene.key, LONG);
    let mut line = [scene.peer(LONG)?, scene.ours(LONG)?, another(scene.peer)?, another(scene.ours)?];
    for (place, party) in line.iter_mut().enumerate() {
        party.take()?;
        let is_in = party.is_in_within(if place == 0 { SOON } else { WATCHED })?;
        ensure(is_in == (place == 0), &format!("`{}` came as number {place} and was in: {is_in}", party.name))?;
    }
    for place in 0..line.len() {
        let (gone, rest) = line.split_at_mut(place + 1);
        if let Some((next, behind)) = rest.split_first_mut() {
            gone[place].release()?;
            next.is_in(SOON)?;
            for party in behind {
                ensure(!party.is_in_within(SETTLED / 4)?, &format!("`{}` came in out of turn", party.name))?;
            }
        } else {
            frees(&mut gone[place], &mut *scene.witness()?)?;
        }
    }
    Ok(())
}

/// The peer holds for two leases, by its own session; ours, which waits, gets in after the release only.
fn kept_session(scene: &Scene<'_>) -> Result<(), Trouble> {
    let (mut peer, mut ours, mut witness) = (scene.peer(scene.short())?, scene.ours(LONG)?, scene.witness()?);
    peer.take()?;
    peer.is_in(SOON)?;
    ours.take()?;
    ensure(!ours.is_in_within(scene.short() * 2)?, "ours came in while the peer held and kept its session")?;
    ensure(peer.release()? != Answer::No, "the peer lost the lock that it kept")?;
    ours.is_in(SOON)?;
    frees(&mut ours, &mut *witness)
}

/// Ours holds `name/below`. The peer, which counts every key under `name/`, does not get `name`; another of ours does. And
/// ours gets `name` while the peer holds `name/below`.
fn names_below(scene: &Scene<'_>) -> Result<(), Trouble> {
    let below = format!("{}/below", scene.key);
    let (mut peer, mut ours) = (scene.peer(LONG)?, scene.ours(LONG)?);
    let mut holder = Party::start(scene.ours, 2, scene.ground, &below, LONG)?;
    holder.is_in(SOON)?;
    ours.take()?;
    ensure(ours.is_in_within(SOON)?, "ours waited for one of ours with another name")?;
    ensure(ours.release()? == Answer::Yes, "ours lost a lock that was its own")?;
    peer.take()?;
    ensure(!peer.is_in_within(WATCHED)?, "the peer came in while ours held a name below")?;
    ensure(holder.release()? == Answer::Yes, "ours lost the name below")?;
    peer.is_in(SOON)?;
    ensure(peer.release()? != Answer::No, "the peer lost a lock that was its own")?;
    let mut holder = Party::start(scene.peer, 2, scene.ground, &below, LONG)?;
    holder.is_in(SOON)?;
    ours.take()?;
    ensure(ours.is_in_within(SOON)?, "ours waited for a lock of the peer with another name")?;
    ensure(ours.release()? == Answer::Yes, "ours lost a lock that was its own")?;
    frees(&mut holder, &mut *scene.witness()?)
}
