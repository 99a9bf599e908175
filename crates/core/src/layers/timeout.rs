//! A bound on every call: a store that does not answer is *unknown*, in bounded time.

use std::time::Duration;

use super::{Answer, Call, Layer, Next};
use crate::error::Error;
use crate::store::Reply;

/// Ends a call that takes longer than this; waiting gets its own time on top.
#[derive(Debug)]
pub struct Timeout {
    /// How long a call may take.
    pub after: Duration,
}

impl Timeout {
    /// How long this call may take.
    pub(super) fn limit(&self, call: &Call<'_>) -> Duration {
        match call {
            Call::Wait { at_most, .. } => at_most.saturating_add(self.after),
            _ => self.after,
        }
    }
}

impl Layer for Timeout {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(async move {
            let limit = self.limit(&call);
            tokio::time::timeout(limit, next.run(call)).await.unwrap_or_else(|_| Err(too_late(&call, limit)))
        })
    }
}

/// It took longer than it may.
pub(super) fn too_late(call: &Call<'_>, limit: Duration) -> Error {
    Error::unanswered(format!("the store did not answer `{}` within {limit:?}", call.word()))
        .with_hint("see that the store is reachable and not overloaded")
}
