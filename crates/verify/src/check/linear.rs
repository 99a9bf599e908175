//! Linearizability, by a checker that others wrote: short pieces of a history, each within a budget.
//!
//! Surprise: the checker has no limit of its own, and its time may double with every call. So the limit is in the
//! specification that it is given: when the budget is spent nothing is allowed any more, the search comes to its end, and
//! the piece is counted as one that was not judged.

use std::cell::Cell;
use std::marker::PhantomData;

use todc_utils::{Action, Specification, WGLChecker};

use super::look::{Against, Look};
use crate::history::At;

/// How many steps the search may take for one piece.
const STEPS: u64 = 50_000;
/// The longest piece, in calls.
const CALLS: usize = 150;

/// A call, from when to when it may have taken effect, and what it did as far as is known.
pub(super) type Call<O> = (At, At, O);

/// What came of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// There is an order in which all answers are right.
    Linear,
    /// There is none.
    Not,
    /// It would have taken too long to find out.
    TooMuch,
}

/// Is there an order of these calls, true to their times, in which all answers are right?
pub(super) fn judge<S: Specification>(calls: &[Call<S::Operation>]) -> Piece {
    if calls.is_empty() {
        return Piece::Linear;
    }
    if calls.len() > CALLS {
        return Piece::TooMuch;
    }
    // Of moments that are the same the calls come first: then they overlap, which allows more.
    let mut moments: Vec<(At, bool, usize)> = Vec::with_capacity(calls.len() * 2);
    for (number, (from, to, _)) in calls.iter().enumerate() {
        moments.extend([(*from, false, number), ((*to).max(*from), true, number)]);
    }
    moments.sort_unstable();
    let action = |(_, answered, number): (At, bool, usize)| {
        let operation = calls[number].2.clone();
        (number, if answered { Action::Response(operation) } else { Action::Call(operation) })
    };
    let actions = moments.into_iter().map(action).collect();
    LEFT.set(STEPS);
    let linear = WGLChecker::<Bounded<S>>::is_linearizable(todc_utils::History::from_actions(actions));
    match (linear, LEFT.get()) {
        (true, _) => Piece::Linear,
        (false, 0) => Piece::TooMuch,
        (false, _) => Piece::Not,
    }
}

thread_local! {
    /// What is left of the budget of the piece at hand: the checker takes no state along.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

/// A specification that ends.
struct Bounded<S>(PhantomData<S>);

impl<S: Specification> Specification for Bounded<S> {
    type State = S::State;
    type Operation = S::Operation;

    fn init() -> S::State {
        S::init()
    }

    fn apply(operation: &S::Operation, state: &S::State) -> (bool, S::State) {
        match LEFT.get() {
            0 => (false, state.clone()),
            left => {
                LEFT.set(left - 1);
                S::apply(operation, state)
            }
        }
    }
}

/// Pieces, judged.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    linear: u64,
    too_much: u64,
    against: Against,
}

impl Pieces {
    /// One more.
    pub(super) fn add(&mut self, piece: Piece, tell: impl FnOnce() -> String) {
        match piece {
            Piece::Linear => self.linear += 1,
            Piece::Not => self.against.add(tell),
            Piece::TooMuch => self.too_much += 1,
        }
    }

    /// What they came to; `but` says what else was left out.
    pub(super) fn look(self, what: &str, but: &str) -> Look {
        let judged = self.linear + self.against.count();
        let too_much =
            if self.too_much > 0 { format!("; {} would take too long", self.too_much) } else { String::new() };
        if judged == 0 {
            return Look::nothing(format!("no {what} to judge{too_much}{but}"));
        }
        let not = self.against.count();
        Look::at(format!("{judged} {what} judged, {not} not linearizable{too_much}{but}"), self.against)
    }
}
