//! What this client knows of its own claims, and who of it waits for news.
//!
//! One subscription for all: news of a claim name its id, news for observers name the lock. Surprise: a claim is known here
//! from before its first question is sent, so that news which overtake the answer are not lost (C7).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lockkeeper_core::store::Standing;
use lockkeeper_core::{ClaimId, Token};
use redis::{PushInfo, PushKind, Value};
use tokio::sync::Notify;

/// The claims and observers of one client.
#[derive(Debug)]
pub(crate) struct Hub {
    channel: String,
    claims: [Mutex<Shelf>; SHELVES],
    observers: Mutex<Observers>,
}

const SHELVES: usize = 16;

/// A part of the claims. Their ids are random already, and nobody else chooses them: they need no hashing.
type Shelf = HashMap<ClaimId, Known, BuildHasherDefault<Itself>>;

/// The bits of an id, as they are.
#[derive(Debug, Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn write(&mut self, bytes: &[u8]) {
        let mut first = [0; 8];
        first.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.0 ^= u64::from_ne_bytes(first);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The bells of those who observe a lock, by its key.
type Observers = HashMap<String, Vec<(u64, Arc<Notify>)>>;

/// What is known of a claim.
#[derive(Debug, Default)]
struct Known {
    /// The number of its token, once its holder was told.
    number: Option<u64>,
    /// Was it taken by the fast lane? Somebody may have taken it into a line since.
    is_fast: bool,
    /// How often it asked.
    question: u32,
    /// It came in, says the server: the question that it had last heard before, and the standing.
    word: Option<(u32, Standing)>,
    /// Rung when there is news.
    bell: Option<Arc<Notify>>,
}

/// What the caller of `leave` can say of a claim's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// This is what its holder was told.
    Told(u64),
    /// It asked, but was never told anything.
    Untold,
    /// It is not a claim of this client.
    Unknown,
}

impl Hub {
    pub(crate) fn new(channel: String) -> Self {
        Self { channel, claims: Default::default(), observers: Mutex::default() }
    }

    /// Where the server sends news for this client.
    pub(crate) fn channel(&self) -> &str {
        &self.channel
    }

    /// A claim is about to ask; the number of the question. News of earlier questions no longer count.
    pub(crate) fn asks(&self, id: ClaimId) -> u32 {
        let mut shelf = self.shelf(id);
        let known = shelf.entry(id).or_default();
        known.question = known.question.wrapping_add(1);
        known.word = None;
        known.question
    }

    /// Its holder is about to be told this number; is it in by the fast lane?
    pub(crate) fn tells(&self, id: ClaimId, number: u64, is_fast: bool) {
        let mut shelf = self.shelf(id);
        let known = shelf.entry(id).or_default();
        (known.number, known.is_fast) = (Some(number), is_fast);
    }

    /// The number of a claim that was taken by the fast lane.
    pub(crate) fn fast_number(&self, id: ClaimId) -> Option<u64> {
        self.shelf(id).get(&id).filter(|known| known.is_fast)?.number
    }

    /// What can be said of a claim's number.
    pub(crate) fn number(&self, id: ClaimId) -> Number {
        match self.shelf(id).get(&id) {
            Some(Known { number: Some(number), .. }) => Number::Told(*number),
            Some(_) => Number::Untold,
            None => Number::Unknown,
        }
    }

    /// The claim is out: nothing more will be heard of it.
    pub(crate) fn forgets(&self, id: ClaimId) {
        let known = self.shelf(id).remove(&id);
        if let Some(bell) = known.and_then(|known| known.bell) {
            bell.notify_one();
        }
    }

    /// The claim asked in vain and left nothing: it is forgotten, unless it holds since an earlier question.
    pub(crate) fn forgets_untold(&self, id: ClaimId) {
        if self.number(id) == Number::Untold {
            self.forgets(id);
        }
    }

    /// Waits until there is news of a claim, at most so long; with the standing, if it came in.
    pub(crate) async fn news_of(&self, id: ClaimId, at_most: Duration) -> Option<Standing> {
        let bell = {
            let mut shelf = self.shelf(id);
            let known = shelf.get_mut(&id)?;
            if known.word.is_some() {
                return heard(known);
            }
            known.bell.get_or_insert_default().clone()
        };
        let _ = tokio::time::timeout(at_most, bell.notified()).await;
        self.news_by_now(id)
    }

    /// The standing, if news have come that it is in.
    pub(crate) fn news_by_now(&self, id: ClaimId) -> Option<Standing> {
        heard(self.shelf(id).get_mut(&id)?)
    }

    /// From here on changes of the line ring the bell, until it is dropped.
    pub(crate) fn observe(self: &Arc<Self>, key: &str) -> Eye {
        let bell = Arc::new(Notify::new());
        let serial = fastrand::u64(..);
        self.observers().entry(key.to_owned()).or_default().push((serial, bell.clone()));
        Eye { hub: self.clone(), key: key.to_owned(), serial, bell }
    }

    /// Something was pushed.
    pub(crate) fn hear(&self, push: &PushInfo) {
        match push.kind {
            PushKind::Message => {
                if let Some(Value::BulkString(news)) = push.data.get(1) {
                    self.read(news);
                }
            }
            PushKind::Disconnection => self.ring_all(),
            _ => {}
        }
    }

    fn read(&self, news: &[u8]) {
        let Ok(text) = std::str::from_utf8(news) else { return };
        if let Some(key) = text.strip_prefix('~') {
            for (_, bell) in self.observers().get(key).into_iter().flatten() {
                bell.notify_one();
            }
        } else if let Some((id, question, standing)) = came_in(text) {
            let mut shelf = self.shelf(id);
            let Some(known) = shelf.get_mut(&id) else { return };
            known.word = Some((question, standing));
            if let Some(bell) = &known.bell {
                bell.notify_one();
            }
        }
    }

    /// News may have been missed: everybody asks again.
    pub(crate) fn ring_all(&self) {
        for shelf in &self.claims {
            let shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
            shelf.values().filter_map(|known| known.bell.as_ref()).for_each(|bell| bell.notify_one());
        }
        self.observers().values().flatten().for_each(|(_, bell)| bell.notify_one());
    }

    fn shelf(&self, id: ClaimId) -> MutexGuard<'_, Shelf> {
        let shelf = usize::from(id.to_bytes()[0]) % SHELVES;
        self.claims[shelf].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observers(&self) -> MutexGuard<'_, Observers> {
        self.observers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The word that came, if the question it follows is the last one: only then was that sent before the grant was made,
/// and the deadline may be counted from it.
fn heard(known: &mut Known) -> Option<Standing> {
    let (question, standing) = known.word.take()?;
    if question != known.question {
        return None;
    }
    if let Standing::Held { token: Some(token), .. } = &standing {
        (known.number, known.is_fast) = (Some(token.as_u64() >> Token::LOCAL_BITS), false);
    }
    Some(standing)
}

/// `lk1=id:number until-ms question`: a claim came in.
fn came_in(text: &str) -> Option<(ClaimId, u32, Standing)> {
    let mut words = text.strip_prefix("lk1=")?.split(' ');
    let (id, number) = words.next()?.split_once(':')?;
    let id = id.parse().ok()?;
    // A hold without a token is none here: it asks again, and is told what stands.
    let number: u64 = number.parse().ok()?;
    let token = Some(Token::of_number(number)?);
    let until_ms: u64 = words.next()?.parse().ok()?;
    let lease = Duration::from_millis(until_ms.saturating_sub(number / 1_000));
    let question = words.next()?.parse().ok()?;
    words.next().is_none().then_some((id, question, Standing::Held { token, lease }))
}

/// A place among the observers, given up when dropped.
pub(crate) struct Eye {
    hub: Arc<Hub>,
    key: String,
    serial: u64,
    bell: Arc<Notify>,
}

impl Eye {
    /// Returns when the line has changed since it was last asked.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}

impl Drop for Eye {
    fn drop(&mut self) {
        let mut observers = self.hub.observers();
        if let Some(all) = observers.get_mut(&self.key) {
            all.retain(|(serial, _)| *serial != self.serial);
            if all.is_empty() {
                observers.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_news_of_the_last_question_count() {
        let hub = Hub::new("c".into());
        let id = ClaimId::from_bytes([7; 16]);
        assert_eq!(hub.number(id), Number::Unknown);
        assert_eq!(hub.asks(id), 1);
        hub.read(format!("lk1={id}:1700000000000000 1700000000500 1").as_bytes());
        assert_eq!(hub.asks(id), 2, "the word of the first question is forgotten");
        assert_eq!(hub.news_of(id, Duration::ZERO).await, None);
        hub.read(format!("lk1={id}:1700000000000001 1700000000500 1").as_bytes());
        assert_eq!(hub.news_of(id, Duration::from_secs(9)).await, None, "late news of the first question");
        assert_eq!(hub.number(id), Number::Untold);
        hub.read(format!("lk1={id}:1700000000000002 1700000000500 2").as_bytes());
        let token = Token::of_number(1_700_000_000_000_002);
        let held = Standing::Held { token, lease: Duration::from_millis(500) };
        assert_eq!(hub.news_of(id, Duration::from_secs(9)).await, Some(held));
        assert_eq!(hub.number(id), Number::Told(1_700_000_000_000_002));
        hub.forgets(id);
        assert_eq!(hub.number(id), Number::Unknown);
    }

    #[test]
    fn news_that_cannot_be_read_are_no_news() {
        let hub = Hub::new("c".into());
        for bad in ["", "~", "x", "lk1=00:1 2 3", &"0".repeat(33), "é", &format!("lk1={}:x y z", "0".repeat(32))] {
            hub.read(bad.as_bytes());
        }
        hub.read(&[0xff, 0xfe]);
    }
}
