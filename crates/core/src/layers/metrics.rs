//! Counts and times every call through the `metrics` facade. Lock names are never labels: there is no end to them.

use std::time::Instant;

use super::{Answer, Call, Layer, Next, outcome};
use crate::store::Reply;

/// Keeps `lockkeeper_calls_total{store, op, outcome}` and `lockkeeper_call_seconds{store, op}`.
#[derive(Debug)]
pub struct Metrics;

impl Layer for Metrics {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(async move {
            let (store, op, started) = (next.profile().scheme, call.word(), Instant::now());
            let answer = next.run(call).await;
            let outcome = outcome(&answer);
            metrics::counter!("lockkeeper_calls_total", "store" => store, "op" => op, "outcome" => outcome)
                .increment(1);
            metrics::histogram!("lockkeeper_call_seconds", "store" => store, "op" => op)
                .record(started.elapsed().as_secs_f64());
            answer
        })
    }
}
