//! Every check is shown a history that it must pass and one that it must fail.

mod answers;
mod exclusion;
mod folder;
mod linear;
mod recovery;
mod registers;
mod tokens;
mod waiting;

use super::sketch::Sketch;
use crate::judgement::Outcome;

/// What a check makes of a history, with its words if that is not what was meant.
#[track_caller]
fn assert_finds(sketch: &Sketch, check: &str, outcome: Outcome) {
    let finding = sketch.finds(check);
    assert_eq!(finding.outcome, outcome, "{finding:#?}");
    let is_shown = matches!(outcome, Outcome::Failed | Outcome::Reported);
    assert_eq!(is_shown, !finding.evidence.is_empty(), "evidence is for what is wrong: {finding:#?}");
}
