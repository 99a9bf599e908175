//! Whether everybody was answered, what was left, and whether work went on where nothing was hurt.

use super::facts::{Acquisition, Facts, MS};
use super::look::{Against, Look};
use super::spans::Spans;
use crate::judgement::Tally;
use crate::plan::Nemesis;

/// Fewer questions than this outside of the faults prove nothing.
const ENOUGH: u64 = 20;

/// How all questions for locks were answered. One that was never answered, as its worker was killed, is unknown.
pub(super) fn tally(facts: &Facts<'_>) -> Tally {
    let mut tally = Tally::default();
    for one in facts.questions() {
        tally.attempted += 1;
        match (one.held, one.not_held) {
            (Some(_), _) => tally.acknowledged += 1,
            (None, Some(not)) if !not.unknown => tally.refused += 1,
            (None, _) => tally.unknown += 1,
        }
    }
    tally
}

/// `everybody-is-answered`: no question stays open but of workers that were killed, no worker vanishes, and where nothing is
/// hurt at least half of those who are ready to wait get what they ask for. Nothing is lost where everything is refused.
pub(super) fn everybody_is_answered(facts: &Facts<'_>) -> Look {
    let tally = tally(facts);
    let mut against = Against::default();
    for life in facts.lives.iter().filter(|life| !life.ended && life.killed.is_none()) {
        against.add(|| {
            format!("{} vanished after {}: it did not end, and nobody killed it", life.life, facts.when(life.wrote.1))
        });
    }
    let open = |one: &&Acquisition<'_>| one.answered().is_none() && facts.lives[one.life].killed.is_none();
    for one in facts.questions().filter(open) {
        against.add(|| {
            format!(
                "{} asked for `{}` at {} and was never answered",
                facts.who(one),
                facts.locks[one.lock],
                facts.when(one.asked)
            )
        });
    }
    let hurt = facts.hurt_spans(facts.over_after(), |_| true);
    // Who does not wait is told `busy` by right.
    let asked_in_peace = |one: &&Acquisition<'_>| {
        let busy = one.not_held.is_some_and(|not| not.why == "busy");
        !busy && one.answered().is_some_and(|at| !hurt.touches(one.asked, at.saturating_add(1)))
    };
    let (mut asked, mut held) = (0_u64, 0_u64);
    for one in facts.questions().filter(asked_in_peace) {
        asked += 1;
        held += u64::from(one.held.is_some());
    }
    if tally.acknowledged == 0 {
        against.add(|| "nobody got anything".to_owned());
    } else if asked >= ENOUGH && held * 2 < asked {
        against.add(|| format!("of {asked} who asked while nothing was hurt, {held} got what they asked for"));
    }
    let Tally { attempted, acknowledged, refused, unknown } = tally;
    Look::at(format!("{attempted} asked: {acknowledged} held, {refused} refused, {unknown} not answered"), against)
}

/// `nothing-is-left`: when everybody has gone and every lease is over, the store is as it was.
pub(super) fn nothing_is_left(facts: &Facts<'_>) -> Look {
    let Some(after) = &facts.history.after else { return Look::nothing("nobody looked afterwards") };
    let mut against = Against::default();
    for left in &after.left {
        against.add(|| format!("{} `{}`", left.what, left.name));
    }
    let unseen =
        if after.unseen.is_empty() { String::new() } else { format!("; not looked at: {}", after.unseen.join(", ")) };
    if after.left.is_empty() && !after.unseen.is_empty() && after.at == 0 {
        return Look::nothing(format!("nothing could be looked at: {}", after.unseen.join(", ")));
    }
    Look::at(format!("{} left{unseen}", after.left.len()), against)
}

/// `holds-last`: while nothing keeps a holder from its store, holds are not lost. A machine that is overloaded may lose a
/// few, so one in twenty is borne.
pub(super) fn holds_last(facts: &Facts<'_>) -> Look {
    // A killed worker, or one whose wall clock is stepped, costs the others nothing, and a stepped one not its own.
    let hurt = facts.hurt_spans(facts.over_after(), |hurt| {
        !matches!(hurt.nemesis, Nemesis::KillWorker | Nemesis::KillHolder | Nemesis::StepClient)
    });
    let (mut against, mut holds) = (Against::default(), 0_u64);
    for one in facts.acquisitions.iter().filter(|one| !one.again) {
        let Some(held) = one.held else { continue };
        let end = [one.lost, one.first_unseen, one.left.map(|left| left.at)].into_iter().flatten().min();
        if hurt.touches(one.asked, end.unwrap_or(held.at).saturating_add(1)) {
            continue;
        }
        holds += 1;
        if lost_while_held(facts, one) {
            against.add(|| {
                format!("{} lost `{}` by {}", facts.who(one), facts.locks[one.lock], facts.when(end.unwrap_or(held.at)))
            });
        }
    }
    if holds == 0 {
        return Look::nothing("nobody held anything while nothing was hurt");
    }
    let lost = against.count();
    let saw = format!("{lost} lost of {holds} held while nothing was hurt, at most one in twenty is borne");
    if lost < 3 || lost * 20 <= holds { Look::at(saw, Against::default()) } else { Look::at(saw, against) }
}

/// A release that took half the lease on its way may have come too late for a hold that was not lost when it was sent.
fn lost_while_held(facts: &Facts<'_>, one: &Acquisition<'_>) -> bool {
    let half = facts.plan().lease_ms.saturating_mul(MS) / 2;
    let told = one.left.is_some_and(|left| left.answer == "not-held" && left.at.saturating_sub(left.sent) < half);
    one.lost.is_some() || one.first_unseen.is_some() || told
}

/// The time outside of the faults and of what they need to heal, and the acquisitions per second in it.
pub(super) fn in_peace(facts: &Facts<'_>) -> (Spans, f64) {
    let hurt = facts.hurt_spans(facts.over_after(), |_| true);
    let peace = Spans::union(vec![facts.ran]).without(&hurt);
    let held = facts.questions().filter_map(|one| one.held).filter(|held| peace.contains(held.at)).count();
    let seconds = peace.total() as f64 / 1e9;
    (peace, if seconds > 0.0 { held as f64 / seconds } else { 0.0 })
}

/// `work-goes-on`: where nothing is hurt or healing, locks are taken.
pub(super) fn work_goes_on(facts: &Facts<'_>) -> Look {
    let (peace, per_second) = in_peace(facts);
    if peace.total() < 1_000 * MS {
        return Look::nothing("there was not a second in which nothing was hurt or healing");
    }
    let mut against = Against::default();
    if per_second == 0.0 {
        against.add(|| "nobody took a lock in that time".to_owned());
    }
    Look::at(
        format!("{per_second:.1} acquisitions per second in {:.1} s of peace", peace.total() as f64 / 1e9),
        against,
    )
}
