//! A `tracing` span around every call, with the lock's name (metrics have no names, logs do).

use tracing::Instrument;

use super::{Answer, Call, Layer, Next, Outcome};
use crate::store::Reply;

/// Opens a span `lockkeeper.call` at debug level and says how the call ended.
#[derive(Debug)]
pub struct Trace;

impl Layer for Trace {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        let name = call.name().map(tracing::field::display);
        let span = tracing::debug_span!(
            target: "lockkeeper", "lockkeeper.call",
            op = call.word(), name, outcome = tracing::field::Empty
        );
        if span.is_disabled() {
            return next.run(call).reply();
        }
        let work = async move {
            let answer = next.run(call).await;
            tracing::Span::current().record("outcome", Outcome::of(&answer).word());
            if let Err(error) = &answer {
                tracing::debug!(target: "lockkeeper", %error, effect = ?error.effect(), "the call failed");
            }
            answer
        };
        Box::pin(work.instrument(span))
    }
}
