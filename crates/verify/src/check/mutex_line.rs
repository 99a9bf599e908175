//! `mutex-is-linearizable`: acquisitions and releases of a mutex, taken as calls to one thing that is free or somebody's.
//!
//! The line of a lock is judged in windows of a few acquisitions. That accuses nobody falsely: an acquisition and its end
//! taken out of a correct history leave a correct one. Surprise: whoever neither released nor was answered has ended some
//! time after it was last seen to hold, and before the next was told that it does, or the next could not have been told.

use todc_utils::Specification;

use super::facts::{Acquisition, Facts};
use super::linear::{Call, Pieces, judge};
use super::look::Look;
use crate::history::{At, LockKind};

/// Acquisitions in a window; the last of one is the first of the next, so that neighbours are always judged together.
const WINDOW: usize = 16;
/// Windows of a whole run; of more than that every so many is taken.
const WINDOWS: usize = 2_000;

/// A mutex: free, or the hold of one acquisition.
struct Mutex;

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(usize),
    End(usize),
}

impl Specification for Mutex {
    type State = Option<usize>;
    type Operation = Step;

    fn init() -> Self::State {
        None
    }

    fn apply(step: &Step, holder: &Self::State) -> (bool, Self::State) {
        match (step, holder) {
            (Step::Take(who), None) => (true, Some(*who)),
            (Step::End(who), Some(holds)) if who == holds => (true, None),
            _ => (false, *holder),
        }
    }
}

/// The check.
pub(super) fn mutex_is_linearizable(facts: &Facts<'_>) -> Look {
    let takes_part = |one: &Acquisition<'_>| one.kind == LockKind::Mutex && !one.again && one.believed().is_some();
    let mut lines = facts.holds_by_lock();
    lines.iter_mut().for_each(|line| line.retain(|one| takes_part(one)));
    let windows: Vec<(usize, usize)> =
        lines.iter().enumerate().flat_map(|(lock, line)| windows(lock, line.len())).collect();
    let every = windows.len().div_ceil(WINDOWS).max(1);
    let mut pieces = Pieces::default();
    for (lock, first) in windows.iter().copied().step_by(every) {
        let window = &lines[lock][first..lines[lock].len().min(first + WINDOW)];
        pieces.add(judge::<Mutex>(&calls(window)), || {
            let (from, to) = (window.first().and_then(|one| one.held), window.last().and_then(|one| one.held));
            let when = |held: Option<super::facts::Held<'_>>| facts.when(held.map_or(0, |held| held.at));
            format!(
                "`{}`: no order explains the {} holds from {} to {}",
                facts.locks[lock],
                window.len(),
                when(from),
                when(to)
            )
        });
    }
    let but = if every > 1 { format!("; one of every {every} of {} was taken", windows.len()) } else { String::new() };
    pieces.look("windows", &but)
}

fn windows(lock: usize, length: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..length.saturating_sub(1).max(usize::from(length > 0))).step_by(WINDOW - 1).map(move |first| (lock, first))
}

fn calls(window: &[&Acquisition<'_>]) -> Vec<Call<Step>> {
    let told = |one: &Acquisition<'_>| one.held.map_or(0, |held| held.at);
    let mut calls = Vec::with_capacity(window.len() * 2);
    for (number, one) in window.iter().enumerate() {
        calls.push((one.asked, told(one), Step::Take(number)));
        let (from, to) = match one.left.filter(|left| left.answer == "released") {
            Some(left) => (left.sent, left.at),
            None => {
                let seen = one.believed().map_or(0, |(_, to)| to);
                (seen, window.iter().map(|next| told(next)).find(|next| *next > seen).unwrap_or(At::MAX))
            }
        };
        calls.push((from, to, Step::End(number)));
    }
    calls
}
