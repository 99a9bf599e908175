//! Calls to cells and counters of the store, a few between the locks, for the check of their histories.
//!
//! Surprise: names change with time. Checking a history takes time that grows fast with its length, so a name is used for a
//! third of a second, by everybody, and each task calls it a few times at the most.

use std::time::Duration;

use lockkeeper::kinds::Swap;
use lockkeeper::{Effect, Error, Keeper};

use crate::history::write::now;
use crate::history::{CellAnswer, CellCall, Event};
use crate::plan::Plan;

/// How long a name is used.
const AGE_NS: u64 = 300_000_000;
/// How often a name is called by all tasks together, about.
const CALLS: u64 = 40;

/// What a task remembers between its calls.
#[derive(Debug, Default)]
pub(super) struct Cells {
    age: u64,
    calls: u64,
    /// The version last seen of the present name.
    version: u64,
}

/// All names that were used from one moment to another.
pub(crate) fn names_between(plan: &Plan, from: u64, to: u64) -> impl Iterator<Item = String> + use<> {
    let prefix = plan.prefix();
    (from / AGE_NS..=to / AGE_NS).flat_map(move |age| [format!("{prefix}c{age}"), format!("{prefix}n{age}")])
}

impl Cells {
    /// Makes a call, unless the present name has had its share of calls; says what to write down.
    pub(super) async fn call(&mut self, keeper: &Keeper, plan: &Plan, dice: &mut fastrand::Rng) -> Option<Event> {
        let age = now() / AGE_NS;
        if age != self.age {
            *self = Self { age, ..Self::default() };
        }
        let share = (CALLS / (u64::from(plan.workers) * u64::from(plan.tasks)).max(1)).max(1);
        if self.calls >= share {
            return None;
        }
        self.calls += 1;
        let call = match dice.u8(..4) {
            0 => CellCall::Read,
            1 => CellCall::Swap { version: self.version, value: dice.u64(..1 << 48) },
            2 => CellCall::Add { by: dice.i64(1..100) },
            _ => CellCall::Get,
        };
        let counts = matches!(call, CellCall::Add { .. } | CellCall::Get);
        let cell = format!("{}{}{age}", plan.prefix(), if counts { "n" } else { "c" });
        // A name outlives every pause of a worker, or a late call would find it forgotten. The run removes them all.
        let keep = Duration::from_millis(plan.for_ms) + Duration::from_secs(60);
        let sent = now();
        let answer = ask(keeper, &cell, &call, keep).await.unwrap_or_else(|error| refused(&error));
        match answer {
            CellAnswer::Cell { version, .. } | CellAnswer::Swapped { version } => self.version = version,
            _ => {}
        }
        Some(Event::Called { sent, at: now(), cell, call, answer })
    }
}

async fn ask(keeper: &Keeper, name: &str, call: &CellCall, keep: Duration) -> lockkeeper::Result<CellAnswer> {
    let (cell, counter) = (keeper.cell(name).keep(keep), keeper.counter(name).keep(keep));
    Ok(match call {
        CellCall::Read => match cell.get().await? {
            Some(found) => CellAnswer::Cell { version: found.version, value: number(&found.value)? },
            None => CellAnswer::Cell { version: 0, value: None },
        },
        CellCall::Swap { version, value } => {
            match cell.compare_and_set(*version, value.to_string().as_bytes()).await? {
                Swap::Done(version) => CellAnswer::Swapped { version },
                Swap::Conflict(_) => CellAnswer::Kept,
            }
        }
        CellCall::Add { by } => CellAnswer::Count { value: counter.add(*by).await? },
        CellCall::Get => CellAnswer::Count { value: counter.get().await? },
    })
}

fn number(bytes: &[u8]) -> lockkeeper::Result<Option<u64>> {
    let number = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| Error::bug("a cell holds what nobody wrote"))
}

fn refused(error: &Error) -> CellAnswer {
    match error.effect() {
        Effect::None => CellAnswer::Refused,
        Effect::Unknown => CellAnswer::Unknown,
    }
}
