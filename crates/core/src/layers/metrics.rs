//! Counts and times every call through the `metrics` facade. Lock names are never labels: there is no end to them.
//!
//! As in [`meters`](crate::meters), the keys are made once and lent to the recorder, which is looked up each time.

use std::time::{Duration, Instant};

use metrics::{Key, Label};

use super::{Answer, Call, Layer, Next, Outcome};
use crate::error::Result;
use crate::meters::METADATA;
use crate::store::Reply;

/// Keeps `lockkeeper_calls_total{store, op, outcome}` and `lockkeeper_call_seconds{store, op}`.
#[derive(Debug)]
pub struct Metrics {
    calls: [[Key; Outcome::COUNT]; Call::WORDS.len()],
    seconds: [Key; Call::WORDS.len()],
}

impl Metrics {
    /// For calls to a store of this scheme.
    pub fn of(store: &'static str) -> Self {
        let labels = |op: &'static str| vec![Label::new("store", store), Label::new("op", op)];
        Self {
            calls: Call::WORDS.map(|op| {
                Outcome::words().map(|outcome| {
                    let mut labels = labels(op);
                    labels.push(Label::new("outcome", outcome));
                    Key::from_parts("lockkeeper_calls_total", labels)
                })
            }),
            seconds: Call::WORDS.map(|op| Key::from_parts("lockkeeper_call_seconds", labels(op))),
        }
    }

    /// Counts and times a call that was answered so.
    pub(super) fn count(&self, call: &Call<'_>, answer: &Result<Answer>, took: Duration) {
        let (op, outcome) = (call.place(), Outcome::of(answer).place());
        metrics::with_recorder(|recorder| {
            recorder.register_counter(&self.calls[op][outcome], &METADATA).increment(1);
            recorder.register_histogram(&self.seconds[op], &METADATA).record(took);
        });
    }
}

impl Layer for Metrics {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(async move {
            let started = Instant::now();
            let answer = next.run(call).await;
            self.count(&call, &answer, started.elapsed());
            answer
        })
    }
}
