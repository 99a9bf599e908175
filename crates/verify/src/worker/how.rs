//! How a claim came in: seen by a layer around every call, told to the task that asks.
//!
//! Surprise: what was seen travels with the task, not with the layer. A lock call polls its store calls in the task that
//! made it, so a task-local is all it takes, and nothing has to be tidied up after calls that came to nothing.

use std::cell::RefCell;
use std::time::Instant;

use lockkeeper::ClaimId;
use lockkeeper::layers::{Answer, Call, Layer, Next};
use lockkeeper::store::{Reply, Standing, Waiter, Wake};

use crate::history::By;

tokio::task_local! {
    static SEEN: RefCell<Vec<(ClaimId, By)>>;
}

/// The claims that entered during one lock call, and what their last question was due to.
pub(super) struct Seen(Vec<(ClaimId, By)>);

impl Seen {
    /// How this claim came in; one that never asked was handed on by another task.
    pub(super) fn how(&self, id: ClaimId) -> By {
        self.0.iter().find(|(seen, _)| *seen == id).map_or(By::HandOver, |(_, by)| *by)
    }
}

/// Runs a lock call, and says what was seen of its claims.
pub(super) async fn watched<F: Future>(call: F) -> (F::Output, Seen) {
    SEEN.scope(RefCell::default(), async {
        let output = call.await;
        let seen = SEEN.with(RefCell::take);
        (output, Seen(seen))
    })
    .await
}

/// Watches what claims do.
#[derive(Debug)]
pub(super) struct Watch;

impl Layer for Watch {
    fn around<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> Reply<'a, Answer> {
        Box::pin(async move {
            match call {
                Call::Enter { claim, .. } => {
                    note(claim.id, None);
                    next.run(call).await
                }
                Call::Wait { waiter: Waiter::Claim { id, .. }, at_most, .. } => {
                    let began = Instant::now();
                    let answer = next.run(call).await;
                    // Timers fire late, never early: whatever returns before its time was woken.
                    let woken = match &answer {
                        Ok(Answer::News(Some(Standing::Held { .. }))) => true,
                        Ok(_) => next.profile().wake == Wake::Push && began.elapsed() < at_most,
                        Err(_) => false,
                    };
                    note(id, Some(if woken { By::Push } else { By::Poll }));
                    answer
                }
                _ => next.run(call).await,
            }
        })
    }
}

/// Outside of a watched call there is nobody to tell, as when a hold is released.
fn note(id: ClaimId, by: Option<By>) {
    let _ = SEEN.try_with(|seen| {
        let mut seen = seen.borrow_mut();
        match (seen.iter_mut().find(|(known, _)| *known == id), by) {
            (Some(known), Some(by)) => known.1 = by,
            (Some(_), None) => {}
            (None, by) => seen.push((id, by.unwrap_or(By::Asking))),
        }
    });
}
