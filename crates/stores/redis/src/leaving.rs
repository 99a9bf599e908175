//! Leaves that are under way: a claim of this client that comes after one lets it be answered first.
//!
//! Surprise: to ask both at once is slower. The server runs all it was sent before it writes to anybody, and whoever the
//! leave let in would hear of it only after the newcomer was dealt with, too (docs/decisions/0022).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockkeeper_core::Name;
use tokio::sync::Notify;

/// The last leave of each lock that is not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Leaving(Mutex<HashMap<Name, Arc<Notify>>>);

impl Leaving {
    /// One leaves, until what this returns is dropped.
    pub(crate) fn begin<'a>(&'a self, lock: &'a Name) -> Leave<'a> {
        let ended = Arc::new(Notify::new());
        self.locks().insert(lock.clone(), ended.clone());
        Leave { all: self, lock, ended }
    }

    /// Returns once the leave that is under way now, if there is one, has ended.
    pub(crate) async fn ended(&self, lock: &Name) {
        let ended = self.locks().get(lock).map(|ended| ended.clone().notified_owned());
        if let Some(ended) = ended {
            ended.await;
        }
    }

    fn locks(&self) -> MutexGuard<'_, HashMap<Name, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One that is under way.
pub(crate) struct Leave<'a> {
    all: &'a Leaving,
    lock: &'a Name,
    ended: Arc<Notify>,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut locks = self.all.locks();
        if locks.get(self.lock).is_some_and(|last| Arc::ptr_eq(last, &self.ended)) {
            locks.remove(self.lock);
        }
        drop(locks);
        self.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn who_comes_waits_for_the_last_leave_and_for_no_later_one() {
        let (leaving, lock, other) = (Leaving::default(), Name::new("x").unwrap(), Name::new("y").unwrap());
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(pin!(leaving.ended(&lock)).poll(&mut context), Poll::Ready(()), "nobody leaves");
        let [first, second] = [leaving.begin(&lock), leaving.begin(&lock)];
        let mut comes = pin!(leaving.ended(&lock));
        assert_eq!(comes.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(pin!(leaving.ended(&other)).poll(&mut context), Poll::Ready(()));
        drop(first);
        assert_eq!(comes.as_mut().poll(&mut context), Poll::Pending);
        drop(second);
        let third = leaving.begin(&lock);
        assert_eq!(comes.as_mut().poll(&mut context), Poll::Ready(()));
        drop(third);
        assert!(leaving.locks().is_empty());
    }
}
