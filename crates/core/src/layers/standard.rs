//! What every keeper has around its store: metrics, outside of retries, outside of a bound on each attempt.
//!
//! One layer instead of three, because every layer costs each call an allocation.

use super::{Answer, Call, Layer, Metrics, Next, Retry, Timeout};
use crate::error::Result;
use crate::store::Reply;

/// The three as one.
#[derive(Debug)]
pub(crate) struct Standard {
    pub(crate) metrics: Metrics,
    pub(crate) retry: Retry,
    /// `None` for a keeper whose calls may take as long as they like.
    pub(crate) timeout: Option<Timeout>,
}

impl Standard {
    async fn attempt(&self, call: Call<'_>, next: Next<'_>) -> Result<Answer> {
        match &self.timeout {
            Some(timeout) => timeout.bound(call, next.run(call)).await,
            None => next.run(call).await,
        }
    }
}

impl Layer for Standard {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        let attempts = self.retry.repeat(call, move || self.attempt(call, next));
        Box::pin(self.metrics.measure(call, attempts))
    }
}
