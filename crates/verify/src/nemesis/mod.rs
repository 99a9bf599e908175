//! Who hurts whom. What is done and when is drawn from the seed in `schedule`, and done in `rampage`; the workers are
//! reached through [`Workers`], so that whoever runs them need not know the nemesis.
//!
//! Surprise: one thing is hurt at a time, and all is well between two faults for longer than a lease. What a fault does is
//! then seen apart from what the one before it did.

mod rampage;
mod schedule;
#[cfg(test)]
pub(crate) mod tests;

use std::time::Duration;

pub(crate) use self::rampage::Battle;
use crate::history::Life;
use crate::plan::Nemesis;

/// Everything that hurts.
pub const ALL: [Nemesis; 13] = [
    Nemesis::KillWorker,
    Nemesis::KillHolder,
    Nemesis::PauseWorker,
    Nemesis::PauseHolder,
    Nemesis::StepClient,
    Nemesis::KillStore,
    Nemesis::PauseStore,
    Nemesis::StepStore,
    Nemesis::WipeStore,
    Nemesis::Cut,
    Nemesis::Delay,
    Nemesis::HalfOpen,
    Nemesis::LoseReplies,
];

/// The word for it, as the plan has it: `kill-holder`.
pub fn word(nemesis: Nemesis) -> String {
    let text = serde_json::to_value(nemesis).ok();
    text.as_ref().and_then(|text| text.as_str()).unwrap_or_default().to_owned()
}

/// The workers, as the nemesis knows them.
pub trait Workers: Send + Sync {
    /// Those that live.
    fn alive(&self) -> Vec<Life>;
    /// One that is between the read and the write of a register, and so holds a lock at this moment.
    fn holder(&self) -> Option<Life>;
    /// Ends it at once, as `kill -9` does, and starts its next life.
    fn kill(&self, life: Life);
    /// Stops it, as SIGSTOP does; returns when it has stopped.
    fn stop(&self, life: Life);
    /// Lets it go on.
    fn go_on(&self, life: Life);
    /// Steps its wall clock, by so much ahead of the true one; negative is behind. Nothing where that cannot be done.
    /// [`Clocks::step`](crate::arena::Clocks::step) does it.
    fn step_clock(&self, life: Life, ahead: Duration, behind: bool) -> Option<()>;
}
