//! Whether anybody still answers: a connection can be half-open, and then nothing ever comes.
//!
//! Surprise: there is no timer per request, which would cost as much as the rest of a request. One look every so often at
//! whether something is unanswered, and nothing came since the last look, is enough; then the server is asked once more
//! before the connection is given up.

use std::time::Duration;

use crate::pipe::Pipe;
use crate::resp;

/// Returns when nobody has answered for so long, although asked; `pipe` is what to ask by, while it is in use.
pub(crate) async fn stops(pipe: impl Fn() -> Option<Pipe>, patience: Duration) {
    let mut came_before = None;
    loop {
        tokio::time::sleep(patience / 4).await;
        let Some(pipe) = pipe() else { return };
        let came = pipe.came_while_more_is_due();
        if came.is_none() || came != came_before {
            came_before = came;
            continue;
        }
        let ping = pipe.ask(|out| resp::command(out, "PING", &[]));
        if !matches!(tokio::time::timeout(patience / 2, ping).await, Ok(Ok(_))) {
            return;
        }
        came_before = None;
    }
}
