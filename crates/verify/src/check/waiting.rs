//! Those who wait: whether all get their share, whether they are woken, and whether readers wait behind a writer.

use super::facts::{Acquisition, Facts, MS};
use super::figures::{by_worker, jain, push_share, share_of};
use super::look::{Against, Look};
use crate::history::{At, By, LockKind};
use crate::plan::Work;

/// Fewer than this prove nothing, of a worker's acquisitions and of those who waited.
const ENOUGH: u64 = 20;

/// `fair-enough`: where the store serves its line in order and no worker is hurt, none has less than a quarter of its even
/// share.
pub(super) fn fair_enough(facts: &Facts<'_>) -> Look {
    let shares = by_worker(facts);
    let (workers, sum) = (shares.len() as u64, shares.values().sum::<u64>());
    let index = format!("Jain's index over {workers} workers is {:.3}", jain(&shares));
    if !facts.plan().store.fifo {
        return Look::nothing(format!("{index}; the store promises no order"));
    }
    if facts.hurts.iter().any(|hurt| !hurt.is_the_stores()) {
        return Look::nothing(format!("{index}; not judged, as workers were hurt"));
    }
    if sum < workers.saturating_mul(ENOUGH) {
        return Look::nothing(format!("{index}; {sum} acquisitions are too few to judge"));
    }
    let mut against = Against::default();
    for (worker, share) in &shares {
        if share.saturating_mul(4).saturating_mul(workers) < sum {
            against.add(|| format!("worker {worker} got {share}, and {} would be even", sum / workers));
        }
    }
    Look::at(format!("{index}; nobody may have less than a quarter of {}", sum / workers.max(1)), against)
}

/// `woken-by-push`: where the store wakes who waits and the way to it is whole, nine of ten come in by a wake-up. What a
/// dead holder held comes free at its end, of which nobody tells, so the time around faults is left out.
pub(super) fn woken_by_push(facts: &Facts<'_>) -> Look {
    if !facts.plan().store.push {
        return Look::nothing("the store wakes nobody");
    }
    let hurt = facts.hurt_spans(facts.over_after(), |_| true);
    let (share, waited) = push_share(facts, &hurt).unwrap_or((1.0, 0));
    if waited < ENOUGH {
        return Look::nothing(format!("{waited} waited while nothing was hurt, too few to judge"));
    }
    let saw =
        format!("{:.1} % of {waited} who waited while nothing was hurt, of 90 % that are expected", share * 100.0);
    let mut against = Against::default();
    if share < 0.9 {
        against.add(|| {
            format!("{} came in because it was time to ask again", waited - (share * waited as f64).round() as u64)
        });
    }
    let look = Look::at(saw, against);
    if facts.hurts.iter().any(|hurt| hurt.is_the_stores()) { look.excused() } else { look }
}

/// How many readers may pass a writer before it counts as passed over.
const PASSES: usize = 3;

/// `readers-wait-behind-writers`: in a store that serves its line in order, readers that come after a writer wait for it.
///
/// Nobody sees the line, so this is slow to accuse. A reader has passed a writer if it asked so long after it that the writer
/// must have stood in line — four times what nearly every first question takes in this run, and a tenth of a second at the
/// least — and was in while the writer still waited. A writer is passed over if more than three did, and the check fails if
/// more than one in a hundred writers were, and more than two. Writers that something hurt meanwhile are left out: they
/// may have lost their place.
pub(super) fn readers_wait_behind_writers(facts: &Facts<'_>) -> Look {
    if facts.plan().work != Work::ReadWrite || !facts.plan().store.fifo {
        return Look::nothing("there were no readers and writers on a store that serves its line in order");
    }
    let hurt = facts.hurt_spans(facts.over_after(), |_| true);
    let margin = in_line_after(facts);
    let mut readers: Vec<Vec<(At, At)>> = vec![Vec::new(); facts.locks.len()];
    for reader in facts.acquisitions.iter().filter(|one| one.kind == LockKind::Read && !one.again) {
        readers[reader.lock].extend(reader.held.map(|held| (held.at, reader.asked)));
    }
    readers.iter_mut().for_each(|line| line.sort_unstable());
    let (mut against, mut writers, mut long) = (Against::default(), 0_u64, 0_u64);
    for writer in facts.acquisitions.iter().filter(|one| one.kind == LockKind::Write) {
        let Some(until) = writer.answered().filter(|until| !hurt.touches(writer.asked, *until)) else { continue };
        let in_line = writer.asked.saturating_add(margin);
        writers += 1;
        long += u64::from(until > in_line);
        let passed = passed(&readers[writer.lock], in_line, until);
        if passed > PASSES {
            against.add(|| {
                let waited = (until - writer.asked) / MS;
                format!(
                    "{} waited {waited} ms to write `{}`, and {passed} readers that came later were in before",
                    facts.who(writer),
                    facts.locks[writer.lock]
                )
            });
        }
    }
    if writers == 0 {
        return Look::nothing("no writer asked while nothing was hurt");
    }
    let over = against.count();
    let saw =
        format!("{over} of {writers} writers were passed over, {long} waited long enough for it ({} ms)", margin / MS);
    if over <= 2 || over * 100 <= writers { Look::at(saw, Against::default()) } else { Look::at(saw, against) }
}

/// After that long whoever asked stands in line.
fn in_line_after(facts: &Facts<'_>) -> At {
    let at_once = |one: &&Acquisition<'_>| !one.again && one.held.is_some_and(|held| held.by == By::Asking);
    let took = facts.questions().filter(at_once).filter_map(|one| Some(one.held?.at.saturating_sub(one.asked)));
    let mut took: Vec<At> = took.collect();
    took.sort_unstable();
    share_of(&took, 99).saturating_mul(4).max(100 * MS)
}

/// How many readers, by when they were in and when they asked, asked after one moment and were in before the other.
fn passed(readers: &[(At, At)], after: At, before: At) -> usize {
    let first = readers.partition_point(|(held, _)| *held <= after);
    readers[first..].iter().take_while(|(held, _)| *held < before).filter(|(_, asked)| *asked > after).count()
}
