//! Requests of concurrent tasks, gathered into one write.
//!
//! A request goes straight out while few are under way. Otherwise it waits in a queue, and whichever batch is answered
//! next takes the whole queue along as the next batch. Surprise: there is no task that does this; a lone caller pays
//! nothing for it, and a crowd is gathered by its own waiting.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockkeeper_core::{Effect, Error, Result};
use tokio::sync::oneshot;

/// How many batches may be under way at a time.
const UNDER_WAY: usize = 2;
/// The most requests in one batch, so that a script of many does not keep others waiting.
const BATCH: usize = 256;

/// What can be asked many at a time.
pub(crate) trait Many: Send + Sync + 'static {
    type Question: Send + 'static;
    type Answer: Send + 'static;

    /// Answers all questions, in their order.
    fn answer(&self, questions: Vec<Self::Question>) -> impl Future<Output = Result<Vec<Self::Answer>>> + Send;
}

/// A queue in front of something that can be asked many at a time.
pub(crate) struct Gather<M: Many> {
    many: M,
    state: Mutex<State<M>>,
}

struct State<M: Many> {
    under_way: usize,
    queue: Vec<(M::Question, oneshot::Sender<Result<M::Answer>>)>,
}

impl<M: Many> Gather<M> {
    pub(crate) fn new(many: M) -> Arc<Self> {
        Arc::new(Self { many, state: Mutex::new(State { under_way: 0, queue: Vec::new() }) })
    }

    /// Asks one question, together with others if there are any.
    ///
    /// # Cancel safety
    /// Dropped while it is queued or under way, the question may still be answered; nobody else is hurt.
    pub(crate) async fn ask(self: &Arc<Self>, question: M::Question) -> Result<M::Answer> {
        let answer = {
            let mut state = self.state();
            if state.under_way >= UNDER_WAY {
                let (sender, answer) = oneshot::channel();
                state.queue.push((question, sender));
                Err(answer)
            } else {
                state.under_way += 1;
                Ok(question)
            }
        };
        match answer {
            Err(queued) => queued.await.unwrap_or_else(|_| Err(dropped())),
            Ok(question) => {
                let _turn = Turn(self.clone());
                let answers = self.many.answer(vec![question]).await?;
                answers.into_iter().next().ok_or_else(dropped)
            }
        }
    }

    async fn batch(turn: Turn<M>, batch: Vec<(M::Question, oneshot::Sender<Result<M::Answer>>)>) {
        let (questions, senders): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        match turn.0.many.answer(questions).await {
            Ok(answers) => {
                for (sender, answer) in senders.into_iter().zip(answers) {
                    let _ = sender.send(Ok(answer));
                }
            }
            Err(error) => senders.into_iter().for_each(|sender| drop(sender.send(Err(error.clone())))),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One batch under way; when it ends, however it does, the queue goes next.
struct Turn<M: Many>(Arc<Gather<M>>);

impl<M: Many> Drop for Turn<M> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.queue.is_empty() {
            state.under_way -= 1;
            return;
        }
        let take = state.queue.len().min(BATCH);
        let batch: Vec<_> = state.queue.drain(..take).collect();
        drop(state);
        match tokio::runtime::Handle::try_current() {
            // It has its turn before it is spawned: a runtime that shuts down drops it unseen.
            Ok(runtime) => drop(runtime.spawn(Gather::batch(Turn(self.0.clone()), batch))),
            Err(_) => {
                // No runtime to go on in: those in the queue are told that it is not known, and ask again.
                drop(batch);
                self.0.state().under_way -= 1;
            }
        }
    }
}

fn dropped() -> Error {
    Error::unanswered("the request went under with another one").with_effect(Effect::Unknown)
}
