//! Requests of concurrent tasks, gathered into one write.
//!
//! A request goes straight out while few are under way. Otherwise it waits in a queue, and whichever batch is answered
//! next takes the whole queue along as the next batch. Surprise: there is no task that does this; a lone caller pays
//! nothing for it, and a crowd is gathered by its own waiting.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockkeeper_core::{Error, Result};
use tokio::sync::oneshot;

/// How many batches may be under way at a time. With one, client and server take turns; more than two gain nothing
/// (docs/decisions/0011).
const UNDER_WAY: usize = 2;
/// The most requests in one batch: its script runs alone on the server, which others wait for.
const BATCH: usize = 256;

/// What can be asked one at a time and many at a time.
pub(crate) trait Many: Send + Sync + 'static {
    type Question: Send + 'static;
    type Answer: Send + 'static;

    /// Answers one.
    fn one(&self, question: Self::Question) -> impl Future<Output = Result<Self::Answer>> + Send;
    /// Answers all, in their order, each by itself; an error of the whole is an error of each.
    fn many(&self, questions: Vec<Self::Question>) -> impl Future<Output = Result<Vec<Result<Self::Answer>>>> + Send;
}

/// A queue in front of something that can be asked many at a time.
pub(crate) struct Gather<M: Many> {
    many: M,
    state: Mutex<State<M>>,
}

type Asked<M> = (<M as Many>::Question, oneshot::Sender<Result<<M as Many>::Answer>>);

struct State<M: Many> {
    under_way: usize,
    queue: Vec<Asked<M>>,
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
        match self.turn(question) {
            // Apart: in a crowd nearly all are queued, and a small future is a cheap one.
            Ask::Now(turn, question) => Box::pin(turn.0.many.one(question)).await,
            Ask::Queued(answer) => answer.await.unwrap_or_else(|_| Err(went_under())),
        }
    }

    fn turn(self: &Arc<Self>, question: M::Question) -> Ask<M> {
        let mut state = self.state();
        if state.under_way < UNDER_WAY {
            state.under_way += 1;
            return Ask::Now(Turn(self.clone()), question);
        }
        let (sender, answer) = oneshot::channel();
        state.queue.push((question, sender));
        Ask::Queued(answer)
    }

    async fn batch(turn: Turn<M>, batch: Vec<Asked<M>>) {
        let (questions, senders): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        match turn.0.many.many(questions).await {
            Ok(answers) => {
                for (sender, answer) in senders.into_iter().zip(answers) {
                    let _ = sender.send(answer);
                }
            }
            Err(error) => senders.into_iter().for_each(|sender| drop(sender.send(Err(error.clone())))),
        }
        // Those who were answered put their next request in first: then it comes along in the next batch.
        tokio::task::yield_now().await;
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What becomes of a question.
enum Ask<M: Many> {
    /// It goes straight out.
    Now(Turn<M>, M::Question),
    /// It goes with others, and this will be the answer.
    Queued(oneshot::Receiver<Result<M::Answer>>),
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

fn went_under() -> Error {
    Error::unanswered("the request went under with others").with_hint("ask again")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Doubles numbers, once it is let; counts how often it was asked.
    struct Doubling {
        may: Semaphore,
        asked: AtomicUsize,
    }

    impl Many for Doubling {
        type Question = u32;
        type Answer = u32;

        async fn one(&self, question: u32) -> Result<u32> {
            self.many(vec![question]).await?.remove(0)
        }

        async fn many(&self, questions: Vec<u32>) -> Result<Vec<Result<u32>>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.may.acquire().await.expect("open").forget();
            Ok(questions.into_iter().map(|n| Ok(n * 2)).collect())
        }
    }

    #[tokio::test]
    async fn a_crowd_is_one_batch_and_everybody_gets_its_own_answer() {
        let gather = Gather::new(Doubling { may: Semaphore::new(0), asked: AtomicUsize::new(0) });
        let mut tasks = Vec::new();
        for n in 0..100 {
            let gather = gather.clone();
            tasks.push((n, tokio::spawn(async move { gather.ask(n).await })));
        }
        while gather.state().queue.len() < 98 {
            tokio::task::yield_now().await;
        }
        gather.many.may.add_permits(10);
        for (n, task) in tasks {
            assert_eq!(task.await.unwrap().unwrap(), n * 2);
        }
        assert_eq!(gather.many.asked.load(Ordering::SeqCst), 3, "two alone, the rest together");
    }

    #[tokio::test]
    async fn one_that_is_dropped_under_way_lets_the_queue_go_on() {
        let gather = Gather::new(Doubling { may: Semaphore::new(0), asked: AtomicUsize::new(0) });
        let ask = |n| {
            let gather = gather.clone();
            tokio::spawn(async move { gather.ask(n).await })
        };
        let (first, second, third) = (ask(1), ask(2), ask(3));
        while gather.state().queue.is_empty() {
            tokio::task::yield_now().await;
        }
        first.abort();
        second.abort();
        gather.many.may.add_permits(10);
        assert_eq!(third.await.unwrap().unwrap(), 6);
        while gather.state().under_way > 0 {
            tokio::task::yield_now().await;
        }
    }
}
