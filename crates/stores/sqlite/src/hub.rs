//! Who waits in this process, and for what.
//!
//! The thread that commits knows which claims came in and rings exactly those. News from other processes come by
//! bucket, that is by a hash of the lock's name; then the lines with waiters in that bucket are read once each.
//! Surprise: a ring carries the standing of a claim that is in, so that such a claim holds without asking again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockkeeper_core::store::Standing;
use lockkeeper_core::{ClaimId, Name};
use tokio::sync::Notify;

use crate::epoch::fnv1a;

/// How many wake files there are. All processes must agree.
pub(crate) const BUCKETS: usize = 64;

/// The bucket of a lock. All processes must agree.
pub(crate) fn bucket_of(lock: &Name) -> usize {
    // The remainder is below BUCKETS.
    (fnv1a(lock.as_str().as_bytes()) % BUCKETS as u64) as usize
}

/// What a waiter waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// This claim to be in.
    Claim(ClaimId),
    /// The line to have another fingerprint than this.
    Observer(u64),
}

/// One waiter, as the hub keeps it.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    key: u64,
    pub(crate) who: Who,
    bell: Arc<Bell>,
}

impl Waiting {
    /// Tells it that asking is worth it, and where it stands if it is in.
    pub(crate) fn ring(&self, standing: Option<Standing>) {
        self.bell.ring(standing);
    }
}

/// A bell that also carries a word.
#[derive(Debug, Default)]
struct Bell {
    rung: Notify,
    word: Mutex<Option<Standing>>,
}

impl Bell {
    fn ring(&self, standing: Option<Standing>) {
        *self.word.lock().unwrap_or_else(PoisonError::into_inner) = standing;
        self.rung.notify_one();
    }
}

/// What one committed operation did to a line.
#[derive(Debug)]
pub(crate) struct News {
    /// The lock.
    pub(crate) lock: Name,
    /// Claims that came in by it, and where they stand now.
    pub(crate) admitted: Vec<(ClaimId, Option<Standing>)>,
    /// The line's fingerprint after it, if somebody in this process observes the line.
    pub(crate) fingerprint: Option<u64>,
    /// Does somebody in any process observe it?
    pub(crate) observed: bool,
}

type Shelf = HashMap<Name, Vec<Waiting>>;

/// The waiters of one open store.
#[derive(Debug)]
pub(crate) struct Hub {
    shelves: Vec<Mutex<Shelf>>,
    /// How many waiters there are, so that nobody takes a lock to find none.
    waiters: AtomicUsize,
    /// How many of them are observers.
    observers: AtomicUsize,
    keys: AtomicU64,
    /// Buckets with news from outside that nobody has looked at yet.
    unread: Vec<AtomicBool>,
    closed: AtomicBool,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Self {
            shelves: (0..BUCKETS).map(|_| Mutex::default()).collect(),
            waiters: AtomicUsize::new(0),
            observers: AtomicUsize::new(0),
            keys: AtomicU64::new(0),
            unread: (0..BUCKETS).map(|_| AtomicBool::new(false)).collect(),
            closed: AtomicBool::new(false),
        }
    }

    /// From here on news of the lock ring the bell of the subscription, until it is dropped.
    pub(crate) fn subscribe(self: &Arc<Self>, lock: &Name, who: Who) -> Subscription {
        let key = self.keys.fetch_add(1, Ordering::Relaxed);
        let bell = Arc::new(Bell::default());
        let waiting = Waiting { key, who, bell: Arc::clone(&bell) };
        self.shelf(bucket_of(lock)).entry(lock.clone()).or_default().push(waiting);
        self.count(who, true);
        Subscription { hub: Arc::clone(self), lock: lock.clone(), key, who, bell }
    }

    /// Does anybody in this process observe the lock?
    pub(crate) fn observes(&self, lock: &Name) -> bool {
        if self.observers.load(Ordering::SeqCst) == 0 {
            return false;
        }
        let shelf = self.shelf(bucket_of(lock));
        shelf.get(lock).is_some_and(|all| all.iter().any(|one| matches!(one.who, Who::Observer(_))))
    }

    /// Rings whom the news concern here. Answers whether somebody elsewhere has to be told.
    pub(crate) fn announce(&self, news: &News) -> bool {
        if self.waiters.load(Ordering::SeqCst) == 0 {
            return news.observed || !news.admitted.is_empty();
        }
        let shelf = self.shelf(bucket_of(&news.lock));
        let here = shelf.get(&news.lock).map_or(&[][..], Vec::as_slice);
        for waiting in here {
            match waiting.who {
                Who::Claim(id) => {
                    if let Some((_, standing)) = news.admitted.iter().find(|(admitted, _)| *admitted == id) {
                        waiting.ring(standing.clone());
                    }
                }
                Who::Observer(seen) if news.fingerprint.is_some_and(|now| now != seen) => waiting.ring(None),
                Who::Observer(_) => {}
            }
        }
        let is_here = |(id, _): &(ClaimId, _)| here.iter().any(|one| one.who == Who::Claim(*id));
        news.observed || !news.admitted.iter().all(is_here)
    }

    /// Who waits in a bucket, by lock.
    pub(crate) fn waiting_in(&self, bucket: usize) -> Vec<(Name, Vec<Waiting>)> {
        self.shelf(bucket).iter().map(|(lock, all)| (lock.clone(), all.clone())).collect()
    }

    /// News came from outside. Answers whether somebody has to look, which is not so if nobody waits or if it is
    /// already under way.
    pub(crate) fn mark_unread(&self, bucket: usize) -> bool {
        let somebody = !self.shelf(bucket).is_empty();
        somebody && !self.unread[bucket].swap(true, Ordering::SeqCst)
    }

    /// Somebody is about to look; news from now on need another look.
    pub(crate) fn mark_read(&self, bucket: usize) {
        self.unread[bucket].store(false, Ordering::SeqCst);
    }

    /// The store is closed: everybody stops waiting.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for bucket in 0..BUCKETS {
            self.shelf(bucket).values().flatten().for_each(|waiting| waiting.ring(None));
        }
    }

    /// Is the store closed?
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn shelf(&self, bucket: usize) -> MutexGuard<'_, Shelf> {
        // A map of waiters is whole after any panic.
        self.shelves[bucket].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, who: Who, up: bool) {
        let by = |counter: &AtomicUsize| match up {
            true => counter.fetch_add(1, Ordering::SeqCst),
            false => counter.fetch_sub(1, Ordering::SeqCst),
        };
        by(&self.waiters);
        if matches!(who, Who::Observer(_)) {
            by(&self.observers);
        }
    }
}

/// A place among the waiters, given up when dropped.
#[derive(Debug)]
pub(crate) struct Subscription {
    hub: Arc<Hub>,
    lock: Name,
    key: u64,
    who: Who,
    bell: Arc<Bell>,
}

impl Subscription {
    /// Returns when there is news, or there has been since it was last asked; with the standing of a claim that is in.
    pub(crate) async fn rung(&self) -> Option<Standing> {
        self.bell.rung.notified().await;
        self.bell.word.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut shelf = self.hub.shelf(bucket_of(&self.lock));
        if let Some(all) = shelf.get_mut(&self.lock) {
            all.retain(|waiting| waiting.key != self.key);
            if all.is_empty() {
                shelf.remove(&self.lock);
            }
        }
        drop(shelf);
        self.hub.count(self.who, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(byte: u8) -> ClaimId {
        ClaimId::from_bytes([byte; 16])
    }

    fn news(lock: &Name, admitted: Vec<ClaimId>) -> News {
        let admitted = admitted.into_iter().map(|id| (id, None)).collect();
        News { lock: lock.clone(), admitted, fingerprint: None, observed: false }
    }

    #[tokio::test]
    async fn only_those_that_came_in_are_rung() {
        let hub = Arc::new(Hub::new());
        let lock = Name::new("a").unwrap();
        let (first, second) = (hub.subscribe(&lock, Who::Claim(claim(1))), hub.subscribe(&lock, Who::Claim(claim(2))));
        assert!(!hub.announce(&news(&lock, vec![claim(1)])), "nobody elsewhere is concerned");
        first.rung().await;
        assert!(tokio::time::timeout(std::time::Duration::ZERO, second.rung()).await.is_err());
        assert!(hub.announce(&news(&lock, vec![claim(1), claim(3)])), "the third is elsewhere");
    }

    #[test]
    fn a_dropped_subscription_leaves_nothing() {
        let hub = Arc::new(Hub::new());
        let lock = Name::new("a").unwrap();
        let seen = hub.subscribe(&lock, Who::Observer(7));
        assert!(hub.observes(&lock) && hub.mark_unread(bucket_of(&lock)));
        assert!(!hub.mark_unread(bucket_of(&lock)), "a look is under way already");
        drop(seen);
        hub.mark_read(bucket_of(&lock));
        assert!(!hub.observes(&lock) && !hub.mark_unread(bucket_of(&lock)));
        assert!(hub.waiting_in(bucket_of(&lock)).is_empty());
    }
}
