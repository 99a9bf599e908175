//! Repeats calls that a store did not answer, where repeating is legal (C1, C12).
//!
//! Surprise: a repeated `leave` that finds nothing is *unknown*, not "no": the first attempt may have done it.
//! `renew` and `wait` are not repeated here, because the watchdog and the acquire loop do that with their own times.

use std::time::Duration;

use super::{Answer, Call, Layer, Next};
use crate::error::{Effect, Error, Result};
use crate::mutants::{self, Mutant};
use crate::store::{Left, Reply};

/// Repeats a call a few times with growing, jittered pauses.
#[derive(Debug)]
pub struct Retry {
    /// How often a call is made at the most.
    pub attempts: u32,
    /// The first pause; each further one is twice as long.
    pub pause: Duration,
}

impl Retry {
    /// Makes the attempts, until one is answered or no other is allowed.
    pub(super) async fn repeat<A>(&self, call: Call<'_>, mut attempt: impl FnMut() -> A) -> Result<Answer>
    where
        A: Future<Output = Result<Answer>>,
    {
        let mut went_unanswered = false;
        let mut pause = self.pause;
        for nth in 1.. {
            let impatient = mutants::on(Mutant::CounterRepeated) && nth == 1;
            let answer = match call {
                Call::Update { .. } if impatient => at_once(attempt()).await,
                _ => attempt().await,
            };
            let error = match answer {
                Ok(Answer::Left(Left::NotHeld)) if went_unanswered => return Ok(Answer::Left(Left::Unknown)),
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            went_unanswered |= error.effect() == Effect::Unknown;
            if nth >= self.attempts || !may_repeat(&call, &error, went_unanswered) {
                let effect = if went_unanswered { Effect::Unknown } else { Effect::None };
                return Err(error.with_effect(effect));
            }
            // Apart, so that it takes no room in the future of every call.
            Box::pin(tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0))).await;
            pause = pause.saturating_mul(2);
        }
        Err(Error::bug("a retry ended without an answer"))
    }
}

impl Layer for Retry {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(self.repeat(call, move || next.run(call)))
    }
}

/// A seeded bug: an answer that is not there soon is not waited for.
async fn at_once(answer: impl Future<Output = Result<Answer>>) -> Result<Answer> {
    let soon = Duration::from_millis(50);
    tokio::time::timeout(soon, Box::pin(answer))
        .await
        .unwrap_or_else(|_| Err(Error::unanswered("it was not answered soon")))
}

/// What did not take effect may always be tried again; what may have must be the same done twice.
fn may_repeat(call: &Call<'_>, error: &Error, went_unanswered: bool) -> bool {
    if !error.is_transient() {
        return false;
    }
    match call {
        Call::Enter { .. } | Call::Leave { .. } | Call::Inspect { .. } | Call::Read { .. } => true,
        Call::Update { op, .. } => op.is_repeatable() || !went_unanswered || mutants::on(Mutant::CounterRepeated),
        Call::Wait { .. } | Call::Renew { .. } | Call::Close => false,
    }
}
