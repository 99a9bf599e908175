//! What is to be done, in order, with renewals ahead of the rest.
//!
//! Surprise: renewals are taken by count, not by call. A call for thousands comes in pieces, and of those only so
//! many go into one transaction, so that others get in between.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lockkeeper_core::Result;
use tokio::sync::oneshot;

use crate::trouble::closed;
use crate::work::{Answer, Op};

/// The most calls in one transaction, renewals aside.
const CALLS_MAX: usize = 64;
/// The most renewals in one transaction, and in one piece.
pub(crate) const RENEWALS_MAX: usize = 500;

/// One operation, and who wants its answer.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) op: Op,
    reply: Option<oneshot::Sender<Result<Answer>>>,
}

impl Task {
    /// An operation whose answer is awaited.
    pub(crate) fn new(op: Op) -> (Self, oneshot::Receiver<Result<Answer>>) {
        let (reply, answer) = oneshot::channel();
        (Self { op, reply: Some(reply) }, answer)
    }

    /// An operation nobody waits for.
    pub(crate) fn quiet(op: Op) -> Self {
        Self { op, reply: None }
    }

    /// Tells the answer; whoever asked may have gone away.
    pub(crate) fn answer(self, answer: Result<Answer>) {
        if let Some(reply) = self.reply {
            reply.send(answer).ok();
        }
    }
}

/// The tasks of one transaction.
#[derive(Debug, Default)]
pub(crate) struct Pile {
    pub(crate) tasks: Vec<Task>,
    calls: usize,
    renewals: usize,
}

impl Pile {
    /// Just this one; nothing is added to it.
    pub(crate) fn full_of(task: Task) -> Self {
        Self { tasks: vec![task], calls: CALLS_MAX, renewals: RENEWALS_MAX }
    }
}

#[derive(Debug, Default)]
struct Lines {
    renewals: VecDeque<Task>,
    calls: VecDeque<Task>,
    closed: bool,
    /// Is the one reader asleep? Ringing for one that is awake would be a call of the system for nothing.
    asleep: bool,
}

impl Lines {
    /// Moves what fits; answers whether there was anything.
    fn fill(&mut self, pile: &mut Pile) -> bool {
        let before = pile.tasks.len();
        while let Some(next) = self.renewals.front() {
            let count = next.op.renewals();
            if pile.renewals > 0 && pile.renewals + count > RENEWALS_MAX {
                break;
            }
            pile.renewals += count;
            pile.tasks.extend(self.renewals.pop_front());
        }
        let room = CALLS_MAX.saturating_sub(pile.calls).min(self.calls.len());
        pile.calls += room;
        pile.tasks.extend(self.calls.drain(..room));
        pile.tasks.len() > before
    }
}

/// The queue between callers and the one thread that writes.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    lines: Mutex<Lines>,
    bell: Condvar,
}

impl Queue {
    /// Puts a task in line, unless the store is closed.
    pub(crate) fn push(&self, task: Task) -> Result<()> {
        let mut lines = self.lines();
        if lines.closed {
            return Err(closed());
        }
        match task.op.renewals() {
            0 => lines.calls.push_back(task),
            _ => lines.renewals.push_back(task),
        }
        let wakes = std::mem::take(&mut lines.asleep);
        drop(lines);
        if wakes {
            self.bell.notify_one();
        }
        Ok(())
    }

    /// Waits for work. `None`: the queue is closed, and all that was in it is done.
    pub(crate) fn next(&self) -> Option<Pile> {
        let mut pile = Pile::default();
        let mut lines = self.lines();
        loop {
            if lines.fill(&mut pile) {
                return Some(pile);
            }
            if lines.closed {
                return None;
            }
            lines.asleep = true;
            lines = self.bell.wait(lines).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds what has come meanwhile, as far as it fits; answers whether there was anything.
    pub(crate) fn more(&self, pile: &mut Pile) -> bool {
        self.lines().fill(pile)
    }

    /// Nothing more is accepted; what is in line is still done.
    pub(crate) fn close(&self) {
        self.lines().closed = true;
        self.bell.notify_all();
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        // Nothing in here panics half-way through a change.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockkeeper_core::store::Held;
    use lockkeeper_core::{ClaimId, Name};
    use std::time::Duration;

    fn renewals(count: usize) -> Task {
        let one = Held { lock: Name::new("a").unwrap(), id: ClaimId::from_bytes([0; 16]), lease: Duration::ZERO };
        Task::quiet(Op::Renew(vec![one; count]))
    }

    fn call() -> Task {
        Task::quiet(Op::Read(Name::new("a").unwrap()))
    }

    #[test]
    fn renewals_go_first_but_leave_room() {
        let queue = Queue::default();
        (0..100).for_each(|_| queue.push(call()).unwrap());
        (0..10).for_each(|_| queue.push(renewals(200)).unwrap());
        let pile = queue.next().unwrap();
        let sizes: Vec<_> = pile.tasks.iter().map(|task| task.op.renewals()).collect();
        assert_eq!(sizes[..3], [200, 200, 0], "no more than fit one transaction, then the others");
        assert_eq!(pile.tasks.len(), 2 + CALLS_MAX);
    }

    #[test]
    fn a_closed_queue_gives_out_what_it_has() {
        let queue = Queue::default();
        queue.push(call()).unwrap();
        queue.close();
        assert!(queue.push(call()).is_err());
        assert_eq!(queue.next().unwrap().tasks.len(), 1);
        assert!(queue.next().is_none());
    }
}
