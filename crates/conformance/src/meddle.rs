//! A layer that counts calls and does to them what a law says: lose the request, lose the reply, hold it up.
//!
//! Unlike the `fault` layer, nothing here is left to chance.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lockkeeper_core::layers::{Answer, Call, Layer, Next};
use lockkeeper_core::store::Reply;
use lockkeeper_core::{Error, Result};

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It passes.
    Pass,
    /// It never arrives.
    LoseRequest,
    /// It arrives, its answer does not.
    LoseReply,
    /// Its answer comes so much later.
    HoldUpReply(Duration),
}

type Plan = dyn Fn(&Call<'_>, usize) -> Deed + Send + Sync;

/// The layer; clones share the plan and the counts.
#[derive(Clone)]
pub struct Meddle {
    plan: Arc<Plan>,
    counts: Arc<Mutex<HashMap<&'static str, usize>>>,
}

impl Meddle {
    /// `plan` is given the call and how many of its word there have been, from one.
    pub fn new(plan: impl Fn(&Call<'_>, usize) -> Deed + Send + Sync + 'static) -> Self {
        Self { plan: Arc::new(plan), counts: Arc::default() }
    }

    /// Only counts.
    pub fn count_only() -> Self {
        Self::new(|_, _| Deed::Pass)
    }

    /// How many calls of this word there have been.
    pub fn count(&self, word: &str) -> usize {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).get(word).copied().unwrap_or_default()
    }

    fn next_deed(&self, call: &Call<'_>) -> Deed {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(call.word()).or_default();
        *count += 1;
        (self.plan)(call, *count)
    }
}

fn lost() -> Result<Answer> {
    Err(Error::unanswered("lost on purpose"))
}

impl Layer for Meddle {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        let deed = self.next_deed(&call);
        Box::pin(async move {
            match deed {
                Deed::Pass => next.run(call).await,
                Deed::LoseRequest => lost(),
                Deed::LoseReply => {
                    let _ = next.run(call).await;
                    lost()
                }
                Deed::HoldUpReply(late) => {
                    let answer = next.run(call).await;
                    tokio::time::sleep(late).await;
                    answer
                }
            }
        })
    }
}

impl fmt::Debug for Meddle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meddle")
    }
}
