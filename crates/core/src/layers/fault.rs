//! Faults on purpose, from a seed: requests lost, replies lost after the store acted, delays, repetitions.
//!
//! Surprise: a lost request and a lost reply look the same to the caller, as they do on a network: *unknown*.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Answer, Call, Layer, Next};
use crate::error::{Error, Result};
use crate::store::Reply;

/// How often which fault strikes, in thousandths of the calls.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// The same seed, asked in the same order, gives the same faults.
    pub seed: u64,
    /// The request never arrives.
    pub lose_request: u32,
    /// The store acts, the reply never arrives.
    pub lose_reply: u32,
    /// The call is late, before or after the store acts.
    pub delay: u32,
    /// How late at the most.
    pub delay_up_to: Duration,
    /// The request arrives twice (only where twice is legal: not for `Add`, `Take` and their like).
    pub repeat: u32,
}

impl Faults {
    /// A bad network: about one call in six meets a fault.
    pub fn often(seed: u64) -> Self {
        Self { seed, lose_request: 40, lose_reply: 40, delay: 60, delay_up_to: Duration::from_millis(8), repeat: 30 }
    }
}

/// Does to calls what [`Faults`] says.
#[derive(Debug)]
pub struct Fault {
    faults: Faults,
    dice: Mutex<fastrand::Rng>,
}

/// What happens to one call.
enum Fate {
    Fine,
    LoseRequest,
    LoseReply,
    DelayBefore(Duration),
    DelayAfter(Duration),
    Repeat,
}

impl Fault {
    /// Faults from a seed.
    pub fn new(faults: Faults) -> Self {
        Self { faults, dice: Mutex::new(fastrand::Rng::with_seed(faults.seed)) }
    }

    fn fate(&self) -> Fate {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let Faults { lose_request, lose_reply, delay, delay_up_to, repeat, .. } = self.faults;
        let roll = dice.u32(0..1_000);
        let mut below = 0;
        let mut strikes = |share: u32| {
            below += share;
            roll < below
        };
        if strikes(lose_request) {
            Fate::LoseRequest
        } else if strikes(lose_reply) {
            Fate::LoseReply
        } else if strikes(delay) {
            let late = delay_up_to.mul_f64(dice.f64());
            if dice.bool() { Fate::DelayBefore(late) } else { Fate::DelayAfter(late) }
        } else if strikes(repeat) {
            Fate::Repeat
        } else {
            Fate::Fine
        }
    }
}

fn silence() -> Result<Answer> {
    Err(Error::unanswered("the store did not answer (a fault on purpose)"))
}

fn may_arrive_twice(call: &Call<'_>) -> bool {
    match call {
        Call::Update { op, .. } => op.is_repeatable(),
        Call::Wait { .. } | Call::Close => false,
        // A leave that arrives twice answers the second time that nothing is there; only the first is passed on.
        _ => true,
    }
}

impl Layer for Fault {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(async move {
            match self.fate() {
                Fate::LoseRequest if !matches!(call, Call::Close) => silence(),
                Fate::LoseReply if !matches!(call, Call::Close) => {
                    let _ = next.run(call).await;
                    silence()
                }
                Fate::DelayBefore(late) => {
                    tokio::time::sleep(late).await;
                    next.run(call).await
                }
                Fate::DelayAfter(late) => {
                    let answer = next.run(call).await;
                    tokio::time::sleep(late).await;
                    answer
                }
                Fate::Repeat if may_arrive_twice(&call) => {
                    let first = next.run(call).await;
                    let _ = next.run(call).await;
                    first
                }
                _ => next.run(call).await,
            }
        })
    }
}
