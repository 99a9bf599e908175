//! Concurrent requests, written together, without a task that does nothing else: a request goes straight out while
//! fewer than `limit` batches are in flight, otherwise it is queued, and whoever's batch comes back takes the queue.
//!
//! Surprise: before it takes the queue it steps back once. The tasks that have just been answered then ask their next
//! question first, and are part of the next batch instead of waiting for the one after it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::Outcome;

/// The most requests in one batch.
const MOST: usize = 256;

/// Sends a batch, and gives an answer for each request in their order.
pub trait Write: Send + Sync + 'static {
    /// A request.
    type Ask: Send;
    /// What comes of it.
    type Answer: Send;

    /// Sends a batch.
    fn write(&self, asks: Vec<Self::Ask>) -> impl Future<Output = Vec<Outcome<Self::Answer>>> + Send;
}

type Waiting<W> = (<W as Write>::Ask, oneshot::Sender<Outcome<<W as Write>::Answer>>);

/// What gathers.
pub struct Gather<W: Write> {
    writer: W,
    limit: usize,
    steps_back: bool,
    state: Mutex<State<W>>,
}

struct State<W: Write> {
    flying: usize,
    queue: Vec<Waiting<W>>,
}

impl<W: Write> Gather<W> {
    /// At most `limit` batches in flight.
    pub fn new(writer: W, limit: usize, steps_back: bool) -> Arc<Self> {
        Arc::new(Self { writer, limit, steps_back, state: Mutex::new(State { flying: 0, queue: Vec::new() }) })
    }

    /// Asks, together with whoever asks at the same time.
    pub async fn ask(self: &Arc<Self>, ask: W::Ask) -> Outcome<W::Answer> {
        let (ask, answered) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.flying < self.limit {
                state.flying += 1;
                (Some(ask), None)
            } else {
                let (answer, answered) = oneshot::channel();
                state.queue.push((ask, answer));
                (None, Some(answered))
            }
        };
        if let Some(answered) = answered {
            return answered.await?;
        }
        let mut answers = self.writer.write(ask.into_iter().collect()).await;
        if let Some(batch) = self.next() {
            tokio::spawn(self.clone().fly(batch));
        }
        answers.pop().ok_or("a request was not answered")?
    }

    /// The next batch, or nothing: then this one has landed.
    fn next(&self) -> Option<Vec<Waiting<W>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.queue.is_empty() {
            state.flying -= 1;
            return None;
        }
        let most = state.queue.len().min(MOST);
        Some(state.queue.drain(..most).collect())
    }

    async fn fly(self: Arc<Self>, mut batch: Vec<Waiting<W>>) {
        loop {
            let (asks, answers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            for (answer, value) in answers.into_iter().zip(self.writer.write(asks).await) {
                // Whoever asked may have gone away.
                let _ = answer.send(value);
            }
            if self.steps_back {
                tokio::task::yield_now().await;
            }
            match self.next() {
                Some(next) => batch = next,
                None => return,
            }
        }
    }
}
