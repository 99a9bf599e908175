//! What every keeper has around its store: metrics, outside of retries, outside of a bound on each attempt.
//!
//! One layer instead of three, because every layer costs each call an allocation; and one future, without others inside
//! that are given futures, because those take their room twice.

use tokio::time::{Instant, timeout_at};

use super::retry::Verdict;
use super::timeout::too_late;
use super::{Answer, Call, Layer, Metrics, Next, Retry, Timeout};
use crate::store::Reply;

/// The three as one.
#[derive(Debug)]
pub(crate) struct Standard {
    pub(crate) metrics: Metrics,
    pub(crate) retry: Retry,
    /// `None` for a keeper whose calls may take as long as they like.
    pub(crate) timeout: Option<Timeout>,
}

impl Layer for Standard {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(async move {
            let (started, mut tries) = (Instant::now(), self.retry.tries());
            let mut began = started;
            let answer = loop {
                let limit = tries.impatience(&call).or_else(|| Some(self.timeout.as_ref()?.limit(&call)));
                // One that goes on beyond the end of time has no end.
                let end = limit.and_then(|limit| Some((limit, began.checked_add(limit)?)));
                let answer = match end {
                    Some((limit, end)) => {
                        timeout_at(end, next.run(call)).await.unwrap_or_else(|_| Err(too_late(&call, limit)))
                    }
                    None => next.run(call).await,
                };
                match tries.judge(&call, answer) {
                    Verdict::Final(answer) => break answer,
                    Verdict::Again(pause) => pause.await,
                }
                began = Instant::now();
            };
            self.metrics.count(&call, &answer, started.elapsed());
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::layers::{Next, wrap_all};
    use crate::store::Page;
    use crate::stores::Memory;

    /// Beyond a thousand bytes the allocator goes a longer way; every call of every lock makes one of these.
    #[test]
    fn a_call_takes_little_room() {
        let standard = Standard {
            metrics: Metrics::of("memory"),
            retry: Retry { attempts: 3, pause: Duration::from_millis(10) },
            timeout: Some(Timeout { after: Duration::from_secs(10) }),
        };
        let store = wrap_all(Memory::shared(), Vec::new());
        let call = Call::Inspect { page: Page { only: None, after: None, limit: 1 } };
        let reply = standard.around(call, Next { layers: &[], store: &*store });
        assert!(size_of_val(&*reply) <= 400, "{} bytes", size_of_val(&*reply));
    }
}
