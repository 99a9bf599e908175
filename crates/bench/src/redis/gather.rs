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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Doubles numbers, and fails whole batches with a 13 in them.
    #[derive(Default)]
    struct Doubles {
        flying: AtomicUsize,
        most_flying: AtomicUsize,
        batches: AtomicUsize,
    }

    impl Write for Doubles {
        type Ask = u64;
        type Answer = u64;

        async fn write(&self, asks: Vec<u64>) -> Vec<Outcome<u64>> {
            let flying = self.flying.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_flying.fetch_max(flying, Ordering::SeqCst);
            self.batches.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            self.flying.fetch_sub(1, Ordering::SeqCst);
            let is_bad = asks.contains(&13);
            asks.iter().map(|ask| if is_bad { Err("thirteen".into()) } else { Ok(ask * 2) }).collect()
        }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn many_requests_are_few_batches_and_each_gets_its_own_answer() {
        run(async {
            let gather = Gather::new(Doubles::default(), 2, true);
            let mut tasks = tokio::task::JoinSet::new();
            for number in 100..164 {
                let gather = gather.clone();
                tasks.spawn(async move {
                    for round in 0..10 {
                        assert_eq!(gather.ask(number + round).await.unwrap(), (number + round) * 2);
                    }
                });
            }
            tasks.join_all().await;
            let batches = gather.writer.batches.load(Ordering::SeqCst);
            assert!(batches < 64, "640 requests went out as {batches} batches");
            assert_eq!(gather.writer.most_flying.load(Ordering::SeqCst), 2);
            let landed = || gather.state.lock().unwrap().flying == 0;
            for _ in 0..100 {
                if !landed() {
                    tokio::task::yield_now().await;
                }
            }
            assert!(landed(), "a batch that found no queue has given its place back");
        });
    }

    #[test]
    fn a_failed_batch_is_everybodys_failure_and_nobodys_end() {
        run(async {
            let gather = Gather::new(Doubles::default(), 1, true);
            let ask = |number| {
                let gather = gather.clone();
                tokio::spawn(async move { gather.ask(number).await.map_err(|error| error.to_string()) })
            };
            let (first, bad, with_it) = (ask(1), ask(13), ask(2));
            assert_eq!(first.await.unwrap(), Ok(2), "it went out alone");
            assert_eq!(bad.await.unwrap(), Err("thirteen".to_owned()));
            assert_eq!(with_it.await.unwrap(), Err("thirteen".to_owned()));
            assert_eq!(ask(3).await.unwrap(), Ok(6));
        });
    }
}
