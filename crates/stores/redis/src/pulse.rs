//! Whether anybody still answers: a connection can be half-open, and then nothing ever comes.
//!
//! Surprise: there is no timer per request, which would cost as much as the rest of a request. One look every so often at
//! when the first question without an answer was sent is enough; then the server is asked once more before the connection
//! is given up, since a caller that gave up does not see its answer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::pipe::Pipe;
use crate::resp;

/// What is known of a connection's answers.
#[derive(Debug)]
pub(crate) struct Pulse {
    began: Instant,
    /// When the first question was sent that nothing has come after, in ms since it began, plus one; zero if there is none.
    unanswered_since: AtomicU64,
}

impl Pulse {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), unanswered_since: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    /// A question is about to be sent.
    pub(crate) fn asks(&self) {
        if self.unanswered_since.load(Ordering::Relaxed) == 0 {
            self.unanswered_since.store(self.now(), Ordering::Relaxed);
        }
    }

    /// Something came.
    pub(crate) fn hears(&self) {
        self.unanswered_since.store(0, Ordering::Relaxed);
    }

    /// Returns when nobody has answered for so long, although asked; `pipe` is what to ask by, while it is in use.
    pub(crate) async fn stops(&self, pipe: impl Fn() -> Option<Pipe>, patience: Duration) {
        loop {
            tokio::time::sleep(patience / 4).await;
            let since = self.unanswered_since.load(Ordering::Relaxed);
            if since == 0 || self.now() - since < u64::try_from(patience.as_millis() / 4).unwrap_or(u64::MAX) {
                continue;
            }
            let Some(pipe) = pipe() else { return };
            let ping = pipe.ask(|out| resp::command(out, "PING", &[]));
            match tokio::time::timeout(patience / 2, ping).await {
                Ok(Ok(_)) => self.hears(),
                _ => return,
            }
        }
    }
}
