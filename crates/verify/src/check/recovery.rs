//! How long after a server was taken away the next lock was had.
//!
//! Surprise: only who asked when the server was gone counts. An answer that was on its way then, or a lock that one task of a
//! process hands to another, says nothing of the store.

use super::facts::{Facts, Hurt, MS};
use super::figures::share_of;
use super::look::{Against, Look};
use crate::history::{At, By};
use crate::judgement::Recovery;
use crate::plan::Nemesis;

/// How long a cluster may take to find a new leader: at most twice the usual second, by which its members wait to begin.
const ELECTION: At = 2_000 * MS;

/// A server that was taken away, and how long after that a lock was had; nothing if nobody had one any more.
struct Gap {
    gone: At,
    took: Option<At>,
}

/// Every time that a server was killed or stopped.
fn gaps(facts: &Facts<'_>) -> Vec<Gap> {
    let from_the_store = facts.questions().filter(|one| !one.again);
    let mut had: Vec<(At, At)> = from_the_store
        .filter_map(|one| one.held.filter(|held| held.by != By::HandOver).map(|held| (one.asked, held.at)))
        .collect();
    had.sort_unstable();
    // From the last to the first: the first answer to anybody who asked then or later.
    let mut first = At::MAX;
    for (_, held) in had.iter_mut().rev() {
        first = first.min(*held);
        *held = first;
    }
    let next = |gone: At| had.get(had.partition_point(|(asked, _)| *asked < gone)).map(|(_, held)| held - gone);
    servers_gone(facts).map(|hurt| Gap { gone: hurt.done, took: next(hurt.done) }).collect()
}

fn servers_gone<'f>(facts: &'f Facts<'_>) -> impl Iterator<Item = &'f Hurt> {
    facts.hurts.iter().filter(|hurt| matches!(hurt.nemesis, Nemesis::KillStore | Nemesis::PauseStore))
}

/// What is borne: an election, or where there is nobody to elect the time until the server was back; then whatever a fault
/// leaves behind, and the rest of what a holder has to do.
fn bound(facts: &Facts<'_>) -> At {
    let away = |hurt: &Hurt| hurt.to.min(facts.ran.1).saturating_sub(hurt.done);
    let gone = match facts.plan().store.quorum {
        true => ELECTION,
        false => servers_gone(facts).map(away).max().unwrap_or(0),
    };
    let dwells = At::try_from(facts.plan().longest_round().as_nanos()).unwrap_or(At::MAX);
    gone.saturating_add(facts.over_after()).saturating_add(dwells)
}

/// The figures; none where no server was taken away and a lock had after it.
pub(super) fn recovery(facts: &Facts<'_>) -> Option<Recovery> {
    let mut took: Vec<At> = gaps(facts).iter().filter_map(|gap| gap.took).collect();
    took.sort_unstable();
    let (least, most) = (took.first()? / MS, took.last()? / MS);
    Some(Recovery {
        times: took.len() as u64,
        least_ms: least,
        median_ms: share_of(&took, 50) / MS,
        most_ms: most,
        bound_ms: bound(facts) / MS,
    })
}

/// `recovers-in-time`: after a server was killed or stopped, somebody who asks gets a lock within the bound.
pub(super) fn recovers_in_time(facts: &Facts<'_>) -> Look {
    let (gaps, bound) = (gaps(facts), bound(facts));
    if gaps.is_empty() {
        return Look::nothing("no server was killed or stopped");
    }
    let mut against = Against::default();
    for gap in &gaps {
        // Nobody can say what would have come after the end.
        let least = gap.took.unwrap_or_else(|| facts.ran.1.saturating_sub(gap.gone));
        if least > bound {
            against.add(|| format!("gone at {}, and no lock for {} ms", facts.when(gap.gone), least / MS));
        }
    }
    let saw = recovery(facts).map_or_else(
        || format!("{} times, each too near to the end to judge", gaps.len()),
        |it| {
            format!(
                "{} times within {} to {} ms, of {} ms that it may take",
                it.times, it.least_ms, it.most_ms, it.bound_ms
            )
        },
    );
    Look::at(saw, against)
}
