//! Who held when: no two at once that exclude each other.
//!
//! Surprise: both checks compare only what was noted *after* an answer with what was noted *before* a question, so a
//! process that stood still between a moment and its note is never accused for it.

use super::facts::{Acquisition, Facts};
use super::look::{Against, Look};
use crate::history::{At, LockKind};

/// `holds-exclude`: beliefs of two that exclude each other never overlap, and no more permits are out than there are.
///
/// A belief goes from the answer to the last thing that proves it: a look at itself, or a release that was answered with
/// yes, since the claim must then have been in the store all the time.
pub(super) fn holds_exclude(facts: &Facts<'_>) -> Look {
    let (mut against, mut holds) = (Against::default(), 0_u64);
    for line in facts.holds_by_lock() {
        let mut open: Vec<(&Acquisition<'_>, At)> = Vec::new();
        for next in line {
            let Some((from, to)) = next.believed() else { continue };
            holds += 1;
            open.retain(|(_, end)| *end > from);
            if let Some(why) = too_many(&open, next) {
                against.add(|| {
                    let others: Vec<String> = open.iter().map(|(other, _)| facts.who(other)).collect();
                    let (when, lock) = (facts.when(from), facts.locks[next.lock]);
                    format!(
                        "`{lock}` at {when}: {} came in and {} still held it ({why})",
                        facts.who(next),
                        others.join(", ")
                    )
                });
            }
            open.push((next, to));
        }
    }
    if holds == 0 {
        return Look::nothing("nobody held anything");
    }
    Look::at(format!("{holds} holds, {} that came in too early", against.count()), against)
}

/// Those in already, against the rule of the one that comes.
fn too_many(open: &[(&Acquisition<'_>, At)], next: &Acquisition<'_>) -> Option<String> {
    if let LockKind::Permit { of } = next.kind {
        let out = 1 + open.iter().filter(|(other, _)| !shares_claim(other, next)).count();
        return (out > of as usize).then(|| format!("{out} permits of {of}"));
    }
    open.iter().any(|(other, _)| conflict(other, next)).then(|| format!("{:?}", next.kind).to_lowercase())
}

/// `held-is-true`: nobody is told that it holds after another, who excludes it, was told that it does.
pub(super) fn held_is_true(facts: &Facts<'_>) -> Look {
    let (mut against, mut looks) = (Against::default(), 0_u64);
    for line in facts.holds_by_lock() {
        let mut open: Vec<(&Acquisition<'_>, At)> = Vec::new();
        for next in line {
            let Some((from, _)) = next.believed() else { continue };
            open.retain(|(_, seen)| *seen > from);
            for (other, seen) in open.iter().filter(|(other, _)| conflict(other, next)) {
                against.add(|| {
                    let (late, lock) = ((seen - from) / 1_000, facts.locks[next.lock]);
                    let (who, other) = (facts.who(next), facts.who(other));
                    format!(
                        "`{lock}`: {other} saw itself hold {late} µs after {who} was told it does, at {}",
                        facts.when(from)
                    )
                });
            }
            if let Some(seen) = next.last_seen {
                looks += 1;
                open.push((next, seen));
            }
        }
    }
    if looks == 0 {
        return Look::nothing("nobody looked whether it holds");
    }
    Look::at(format!("{looks} holders looked, {} after another was in", against.count()), against)
}

/// `lost-is-sticky`: who was told that it lost its hold never sees itself hold again.
pub(super) fn lost_is_sticky(facts: &Facts<'_>) -> Look {
    let (mut against, mut lost) = (Against::default(), 0_u64);
    for one in &facts.acquisitions {
        let Some(told) = one.lost else { continue };
        lost += 1;
        if let Some(seen) = one.last_seen.filter(|seen| *seen > told) {
            against.add(|| {
                let (told, seen) = (facts.when(told), facts.when(seen));
                format!(
                    "{} was told at {told} that it lost `{}`, and saw itself hold at {seen}",
                    facts.who(one),
                    facts.locks[one.lock]
                )
            });
        }
    }
    if lost == 0 {
        return Look::nothing("nobody was told that it lost its hold");
    }
    Look::at(format!("{lost} were told that they lost their hold, {} held again", against.count()), against)
}

/// Do these two exclude each other?
pub(super) fn conflict(one: &Acquisition<'_>, other: &Acquisition<'_>) -> bool {
    use LockKind::{Permit, Read};
    let share = match (one.kind, other.kind) {
        (Read, Read) => true,
        (Permit { of }, Permit { .. }) => of > 1,
        _ => false,
    };
    !share && !shares_claim(one, other)
}

/// Is one of them the other, come in again? A hold that was handed on has its claim too, and excludes the one before it.
fn shares_claim(one: &Acquisition<'_>, other: &Acquisition<'_>) -> bool {
    let same_claim = one.held.map(|held| held.claim) == other.held.map(|held| held.claim);
    one.life == other.life && (one.again || other.again) && same_claim
}
