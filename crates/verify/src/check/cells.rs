//! `cells-are-linearizable` and `counters-are-linearizable`: what was called on each name, in an order that explains it.
//!
//! A call without an answer may take effect at any later time, or never; it is left open to the end of its piece, where
//! nobody sees it any more. Surprise: a call of a worker that was killed is in no file at all, and may have taken effect.
//! So names that were in use when a worker was killed are not judged, and it is said how many these are.

use std::collections::BTreeMap;

use todc_utils::Specification;

use super::facts::{Facts, LifeFacts, MS};
use super::linear::{Call, Pieces, judge};
use super::look::Look;
use crate::history::{At, CellAnswer, CellCall, Event};

/// How long before its first known call, and after its last, a killed worker may have called a name: it is used for part of
/// a second, and a call takes less.
const MAY_HAVE_CALLED: At = 500 * MS;
/// The same if the store was hurt, when a call may take as long as all its repetitions.
const MAY_HAVE_WAITED: At = 30_000 * MS;

/// A cell: not there, or a version and a value.
struct Cell;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Content {
    /// Nothing for one that was made by a call without an answer, and not read yet.
    version: Option<u64>,
    value: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
enum CellStep {
    /// It was read so; version 0 is a cell that is not there.
    Read { version: u64, value: Option<u64> },
    /// It had the version, and has another since.
    Swapped { version: u64, value: u64, now: u64 },
    /// It had another version.
    Kept { version: u64 },
    /// Nobody knows.
    Maybe { version: u64, value: u64 },
    /// An answer that the question cannot have.
    Never,
}

/// Has the cell this version? One that nobody has read yet has one that nobody can ask for.
fn has(cell: Option<Content>, version: u64) -> bool {
    match cell {
        None => version == 0,
        Some(content) => version != 0 && content.version == Some(version),
    }
}

impl Specification for Cell {
    type State = Option<Content>;
    type Operation = CellStep;

    fn init() -> Self::State {
        None
    }

    fn apply(step: &CellStep, cell: &Self::State) -> (bool, Self::State) {
        match *step {
            CellStep::Read { version: 0, .. } => (cell.is_none(), *cell),
            CellStep::Read { version, value } => {
                let read = Content { version: Some(version), value };
                let fits = |cell: &Content| cell.value == value && cell.version.is_none_or(|known| known == version);
                if cell.as_ref().is_some_and(fits) { (true, Some(read)) } else { (false, *cell) }
            }
            CellStep::Swapped { version, value, now } if has(*cell, version) && now != version => {
                (true, Some(Content { version: Some(now), value: Some(value) }))
            }
            CellStep::Kept { version } => (!has(*cell, version), *cell),
            CellStep::Maybe { version, value } if has(*cell, version) => {
                (true, Some(Content { version: None, value: Some(value) }))
            }
            CellStep::Maybe { .. } => (true, *cell),
            CellStep::Swapped { .. } | CellStep::Never => (false, *cell),
        }
    }
}

/// A counter, that begins at nothing.
struct Counter;

#[derive(Clone, Copy, Debug)]
enum CounterStep {
    Added { by: i64, value: i64 },
    Got { value: i64 },
    Maybe { by: i64 },
    Never,
}

impl Specification for Counter {
    type State = i64;
    type Operation = CounterStep;

    fn init() -> i64 {
        0
    }

    fn apply(step: &CounterStep, count: &i64) -> (bool, i64) {
        match *step {
            CounterStep::Added { by, value } if count.wrapping_add(by) == value => (true, value),
            CounterStep::Got { value } => (*count == value, *count),
            CounterStep::Maybe { by } => (true, count.wrapping_add(by)),
            CounterStep::Added { .. } | CounterStep::Never => (false, *count),
        }
    }
}

/// The check of cells.
pub(super) fn cells_are_linearizable(facts: &Facts<'_>) -> Look {
    are_linearizable::<Cell>(facts, "cells", |call, answer| {
        Some(match (call, answer) {
            (CellCall::Add { .. } | CellCall::Get, _) | (_, CellAnswer::Refused) => return None,
            (CellCall::Read, CellAnswer::Unknown) => return None,
            (CellCall::Read, CellAnswer::Cell { version, value }) => {
                CellStep::Read { version: *version, value: *value }
            }
            (CellCall::Swap { version, value }, CellAnswer::Swapped { version: now }) => {
                CellStep::Swapped { version: *version, value: *value, now: *now }
            }
            (CellCall::Swap { version, .. }, CellAnswer::Kept) => CellStep::Kept { version: *version },
            (CellCall::Swap { version, value }, CellAnswer::Unknown) => {
                CellStep::Maybe { version: *version, value: *value }
            }
            _ => CellStep::Never,
        })
    })
}

/// The check of counters.
pub(super) fn counters_are_linearizable(facts: &Facts<'_>) -> Look {
    are_linearizable::<Counter>(facts, "counters", |call, answer| {
        Some(match (call, answer) {
            (CellCall::Read | CellCall::Swap { .. }, _) | (_, CellAnswer::Refused) => return None,
            (CellCall::Get, CellAnswer::Unknown) => return None,
            (CellCall::Get, CellAnswer::Count { value }) => CounterStep::Got { value: *value },
            (CellCall::Add { by }, CellAnswer::Count { value }) => CounterStep::Added { by: *by, value: *value },
            (CellCall::Add { by }, CellAnswer::Unknown) => CounterStep::Maybe { by: *by },
            _ => CounterStep::Never,
        })
    })
}

/// The calls of every name, as far as they say anything.
fn are_linearizable<S: Specification>(
    facts: &Facts<'_>,
    what: &str,
    step: impl Fn(&CellCall, &CellAnswer) -> Option<S::Operation>,
) -> Look {
    let mut names: BTreeMap<&str, Vec<Call<S::Operation>>> = BTreeMap::new();
    for event in facts.history.lives.iter().flat_map(|lived| &lived.events) {
        let Event::Called { sent, at, cell, call, answer } = event else { continue };
        let Some(step) = step(call, answer) else { continue };
        let until = if *answer == CellAnswer::Unknown { At::MAX } else { *at };
        names.entry(cell.as_str()).or_default().push((*sent, until, step));
    }
    let blind = Blind::of(facts);
    let (mut pieces, mut left_out) = (Pieces::default(), 0_u64);
    for (name, calls) in &names {
        let from = calls.iter().map(|call| call.0).min().unwrap_or(0);
        let to = calls.iter().map(|call| if call.1 == At::MAX { call.0 } else { call.1 }).max().unwrap_or(0);
        if blind.at(from, to) {
            left_out += 1;
            continue;
        }
        pieces.add(judge::<S>(calls), || {
            format!("`{name}` from {}: no order explains its {} calls", facts.when(from), calls.len())
        });
    }
    let but = if left_out > 0 { format!("; {left_out} not, as workers were killed meanwhile") } else { String::new() };
    pieces.look(what, &but)
}

/// When calls may have been made that nobody wrote down.
struct Blind {
    killed: Vec<At>,
    hurt: super::spans::Spans,
}

impl Blind {
    fn of(facts: &Facts<'_>) -> Self {
        let gone = facts.lives.iter().filter(|life| !life.ended);
        let mut killed: Vec<At> = gone.map(LifeFacts::end).collect();
        killed.sort_unstable();
        Blind { killed, hurt: facts.hurt_spans(0, |hurt| hurt.is_the_stores()) }
    }

    fn at(&self, from: At, to: At) -> bool {
        let first = self.killed.partition_point(|killed| *killed < from.saturating_sub(MAY_HAVE_CALLED));
        self.killed[first..]
            .iter()
            .take_while(|killed| **killed <= to.saturating_add(MAY_HAVE_WAITED))
            .any(|killed| *killed <= to.saturating_add(MAY_HAVE_CALLED) || self.hurt.touches(from, *killed))
    }
}
