//! The checks: pure functions from a history to a judgement.
//!
//! A check looks at the history and says what it saw; whether that was promised is decided after, by the table in
//! [`promises`](crate::promises). All checks are in one table here. Surprise: nothing in here asks a clock or draws lots, so
//! the same folder gives the same bytes, today and on another machine.

mod answers;
mod bound;
mod cells;
mod exclusion;
mod facts;
mod figures;
mod linear;
mod look;
mod mutex_line;
mod recovery;
mod registers;
mod spans;
mod stuck;
mod tokens;
mod waiting;

#[cfg(test)]
pub(crate) mod sketch;
#[cfg(test)]
mod tests;

use std::path::Path;

use lockkeeper_rig::Trouble;

use self::facts::Facts;
use self::look::Look;
use crate::history::History;
use crate::judgement::Judgement;
use crate::promises::{Asks, expected};

/// A check: its name, what it asks of the store, and how it looks.
type Check = (&'static str, Asks, fn(&Facts<'_>) -> Look);

/// All of them, in the order in which they are told.
const CHECKS: &[Check] = &[
    ("holds-exclude", Asks::Belief, exclusion::holds_exclude),
    ("held-is-true", Asks::Belief, exclusion::held_is_true),
    ("lost-is-sticky", Asks::Soundness, exclusion::lost_is_sticky),
    ("tokens-rise", Asks::Fenced, tokens::tokens_rise),
    ("one-token-per-claim", Asks::Fenced, tokens::one_token_per_claim),
    ("fenced-order", Asks::Fenced, registers::fenced_order),
    ("fenced-loses-nothing", Asks::Fenced, registers::fenced_loses_nothing),
    ("fenced-writes-lose-nothing", Asks::Unfenced, registers::fenced_writes_lose_nothing),
    ("deadline-loses-nothing", Asks::Unfenced, registers::deadline_loses_nothing),
    ("bare-loses-nothing", Asks::Unfenced, registers::bare_loses_nothing),
    ("acknowledged-is-written", Asks::Soundness, registers::acknowledged_is_written),
    ("mutex-is-linearizable", Asks::Belief, mutex_line::mutex_is_linearizable),
    ("cells-are-linearizable", Asks::Cells, cells::cells_are_linearizable),
    ("counters-are-linearizable", Asks::Cells, cells::counters_are_linearizable),
    ("nobody-is-stuck", Asks::Promptness, stuck::nobody_is_stuck),
    ("recovers-in-time", Asks::Promptness, recovery::recovers_in_time),
    ("nothing-is-left", Asks::Promptness, answers::nothing_is_left),
    ("holds-last", Asks::Belief, answers::holds_last),
    ("everybody-is-answered", Asks::Soundness, answers::everybody_is_answered),
    ("work-goes-on", Asks::Promptness, answers::work_goes_on),
    ("fair-enough", Asks::Soundness, waiting::fair_enough),
    ("woken-by-push", Asks::Soundness, waiting::woken_by_push),
    ("readers-wait-behind-writers", Asks::Soundness, waiting::readers_wait_behind_writers),
];

/// The names of all checks, in the order in which they are told.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|(name, ..)| *name)
}

/// Reads the folder of a run and judges it. The same folder gives the same judgement, always.
///
/// # Errors
/// What cannot be read, by file and line.
pub fn check(folder: &Path) -> Result<Judgement, Trouble> {
    judge(&History::read(folder)?)
}

/// Judges a history.
///
/// # Errors
/// Lines that cannot be of one story.
pub fn judge(history: &History) -> Result<Judgement, Trouble> {
    let facts = Facts::of(history)?;
    let expected = expected(&history.plan);
    let checks = CHECKS.iter().map(|(name, asks, look)| look(&facts).judged(name, *asks, &expected)).collect();
    Ok(Judgement {
        plan: history.plan.clone(),
        promise: expected.promise,
        acquisitions: answers::tally(&facts),
        updates: registers::updates(&facts),
        checks,
        figures: figures::figures(&facts),
    })
}
