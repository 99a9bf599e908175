//! Repeats calls that a store did not answer, where repeating is legal (C1, C12).
//!
//! Surprise: a repeated `leave` that finds nothing is *unknown*, not "no": the first attempt may have done it.
//! `renew` and `wait` are not repeated here, because the watchdog and the acquire loop do that with their own times.

use std::pin::Pin;
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
    /// For the attempts at one call.
    pub(super) fn tries(&self) -> Tries<'_> {
        Tries { retry: self, nth: 1, went_unanswered: false }
    }
}

impl Layer for Retry {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(async move {
            let mut tries = self.tries();
            loop {
                match tries.judge(&call, next.run(call).await) {
                    Verdict::Final(answer) => return answer,
                    Verdict::Again(pause) => pause.await,
                }
            }
        })
    }
}

/// The attempts at one call so far. A value and no future around the attempts: that would take their room twice.
pub(super) struct Tries<'a> {
    retry: &'a Retry,
    nth: u32,
    went_unanswered: bool,
}

/// What is to be done about what came of an attempt.
pub(super) enum Verdict {
    /// This is the answer.
    Final(Result<Answer>),
    /// Another attempt, after a pause; apart, so that it takes no room in the future of every call.
    Again(Pin<Box<tokio::time::Sleep>>),
}

impl Tries<'_> {
    /// An attempt was made.
    pub(super) fn judge(&mut self, call: &Call<'_>, answer: Result<Answer>) -> Verdict {
        let error = match answer {
            // What was not there may have been taken out by the attempt that was not answered.
            Ok(Answer::Left(Left::NotHeld)) if self.went_unanswered => {
                return Verdict::Final(Ok(Answer::Left(Left::Unknown)));
            }
            Ok(answer) => return Verdict::Final(Ok(answer)),
            Err(error) => error,
        };
        self.went_unanswered |= error.effect() == Effect::Unknown;
        if self.nth >= self.retry.attempts || !may_repeat(call, &error, self.went_unanswered) {
            let effect = if self.went_unanswered { Effect::Unknown } else { Effect::None };
            return Verdict::Final(Err(error.with_effect(effect)));
        }
        let pause = self.retry.pause.saturating_mul(1 << (self.nth - 1).min(16));
        self.nth += 1;
        Verdict::Again(Box::pin(tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0))))
    }

    /// A seeded bug: an answer that is not there soon is not waited for.
    pub(super) fn impatience(&self, call: &Call<'_>) -> Option<Duration> {
        let impatient = mutants::on(Mutant::CounterRepeated) && self.nth == 1 && matches!(call, Call::Update { .. });
        impatient.then_some(Duration::from_millis(50))
    }
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
