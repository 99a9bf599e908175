//! A bound on every call: a store that does not answer is *unknown*, in bounded time.

use std::time::Duration;

use super::{Answer, Call, Layer, Next};
use crate::error::{Error, Result};
use crate::store::Reply;

/// Ends a call that takes longer than this; waiting gets its own time on top.
#[derive(Debug)]
pub struct Timeout {
    /// How long a call may take.
    pub after: Duration,
}

impl Timeout {
    /// Waits for the answer to a call for as long as it may take.
    pub(super) async fn bound(&self, call: Call<'_>, work: impl Future<Output = Result<Answer>>) -> Result<Answer> {
        let limit = match call {
            Call::Wait { at_most, .. } => at_most.saturating_add(self.after),
            _ => self.after,
        };
        match tokio::time::timeout(limit, work).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::unanswered(format!("the store did not answer `{}` within {limit:?}", call.word()))
                .with_hint("see that the store is reachable and not overloaded")),
        }
    }
}

impl Layer for Timeout {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(self.bound(call, next.run(call)))
    }
}
