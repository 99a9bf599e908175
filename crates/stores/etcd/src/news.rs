//! News: one stream per client that tells of changes, and who listens to what.
//!
//! A watch is opened *now*: one that starts at a past revision joins etcd's group of laggards, and its first news are up to
//! 100 ms late. What happened before is found by asking again (C7). Surprise: that is mostly not needed. A new watch says the
//! last revision that it does not tell of, and a listener who knows a later state has missed nothing.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::stream;
use lockkeeper_core::Result;
use tokio::sync::{mpsc, watch};

use crate::claims::Awaited;
use crate::link::{Link, closed};
use crate::proto::path;
use crate::proto::watch::{EventKind, WatchCancelRequest, WatchCreateRequest, WatchRequest, WatchResponse, Watching};
use crate::trouble;

/// What a client listens to.
pub(crate) struct News {
    link: Arc<Link>,
    desk: Arc<Mutex<Desk>>,
}

#[derive(Default)]
struct Desk {
    /// Where questions go while there is a stream.
    outbox: Option<mpsc::UnboundedSender<WatchRequest>>,
    /// Which stream that is, and the way it went: the member, and the connection to it.
    stream: u64,
    way: (usize, u64),
    bells: HashMap<i64, Bell>,
    by_range: HashMap<Range, i64>,
    /// The last id that was given out. Never used again, not even on another stream.
    last: i64,
}

type Range = (Vec<u8>, Vec<u8>);

struct Bell {
    range: Range,
    heard: watch::Sender<Heard>,
    listeners: usize,
}

/// What a watch has told so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Heard {
    /// The last revision that it does not tell of; `None` until the server has made the watch.
    pub(crate) since: Option<i64>,
    /// The revision of its last news of any sort.
    pub(crate) last: i64,
    /// The same, but for keys that were only added.
    pub(crate) last_not_new: i64,
    /// It tells nothing more.
    pub(crate) over: bool,
}

/// Somebody who listens, until dropped.
pub(crate) struct Ear {
    desk: Arc<Mutex<Desk>>,
    id: i64,
    range: Range,
    heard: watch::Receiver<Heard>,
}

impl Ear {
    /// Does it listen to that?
    pub(crate) fn is_for(&self, awaited: &Awaited) -> bool {
        self.range.0 == awaited.key && self.range.1 == awaited.range_end
    }

    pub(crate) fn hearing(&self) -> watch::Receiver<Heard> {
        self.heard.clone()
    }
}

impl fmt::Debug for Ear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ear").field("heard", &*self.heard.borrow()).finish_non_exhaustive()
    }
}

impl News {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { link, desk: Arc::default() }
    }

    /// Listens to a key, or with an end to a range of keys. Those who listen to the same share one watch.
    pub(crate) fn listen(&self, key: &[u8], range_end: &[u8]) -> Result<Ear> {
        if self.link.is_closed() {
            return Err(closed());
        }
        let range = (key.to_vec(), range_end.to_vec());
        let mut desk = lock(&self.desk);
        // A member, or a connection, that was found silent may be so for long: its stream is left, too.
        let way = self.link.way();
        if desk.way != way || desk.outbox.as_ref().is_none_or(mpsc::UnboundedSender::is_closed) {
            let questions = desk.begin();
            desk.way = way;
            tokio::spawn(tell(self.link.clone(), self.desk.clone(), (way.0, desk.stream), questions));
        }
        let (id, heard) = desk.listens(&range);
        Ok(Ear { desk: self.desk.clone(), id, range, heard })
    }

    /// Nobody is told anything any more.
    pub(crate) fn close(&self) {
        lock(&self.desk).end();
    }
}

impl Drop for News {
    fn drop(&mut self) {
        self.close();
    }
}

impl Desk {
    /// Another stream, of which nobody has heard anything yet; what it is to be asked.
    fn begin(&mut self) -> mpsc::UnboundedReceiver<WatchRequest> {
        self.end();
        let (outbox, questions) = mpsc::unbounded_channel();
        self.outbox = Some(outbox);
        self.stream += 1;
        questions
    }

    /// One more who listens to this; the watch that tells of it.
    fn listens(&mut self, range: &Range) -> (i64, watch::Receiver<Heard>) {
        if let Some(id) = self.by_range.get(range).copied()
            && let Some(bell) = self.bells.get_mut(&id)
        {
            bell.listeners += 1;
            return (id, bell.heard.subscribe());
        }
        self.last += 1;
        let id = self.last;
        let (sender, heard) = watch::channel(Heard::default());
        let create =
            WatchCreateRequest { key: range.0.clone(), range_end: range.1.clone(), start_revision: 0, watch_id: id };
        self.say(Watching::Create(create));
        self.by_range.insert(range.clone(), id);
        self.bells.insert(id, Bell { range: range.clone(), heard: sender, listeners: 1 });
        (id, heard)
    }

    fn say(&self, request: Watching) {
        if let Some(outbox) = &self.outbox {
            // One that has ended is found by the next who listens.
            let _ = outbox.send(WatchRequest { request: Some(request) });
        }
    }

    /// The stream is over: whoever listens finds out.
    fn end(&mut self) {
        self.outbox = None;
        self.by_range.clear();
        for bell in self.bells.drain().map(|(_, bell)| bell) {
            bell.heard.send_modify(|heard| heard.over = true);
        }
    }

    fn hears(&mut self, stream: u64, response: WatchResponse) {
        let id = response.watch_id;
        if self.stream != stream {
            return;
        }
        // A watch was refused, and since 3.5 the server does not say which: the badge has run out, or a right was taken
        // away. Whoever listens finds out by asking, and asks with another badge.
        if response.canceled && id < 0 {
            return self.end();
        }
        let Some(bell) = self.bells.get(&id) else { return };
        bell.heard.send_modify(|heard| {
            if response.created {
                // Told twice, the later one counts: what was missed once is not there again.
                heard.since = heard.since.max(Some(response.header.map_or(0, |header| header.revision)));
            }
            for event in &response.events {
                let Some(kv) = &event.kv else { continue };
                heard.last = heard.last.max(kv.mod_revision);
                if event.kind == EventKind::Delete as i32 || kv.create_revision != kv.mod_revision {
                    heard.last_not_new = heard.last_not_new.max(kv.mod_revision);
                }
            }
            // Ended by the server: what it would have to tell was compacted, or it lost its leader.
            heard.over |= response.canceled;
        });
        if response.canceled
            && let Some(bell) = self.bells.remove(&id)
        {
            self.by_range.remove(&bell.range);
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let mut desk = lock(&self.desk);
        let Some(bell) = desk.bells.get_mut(&self.id) else { return };
        bell.listeners -= 1;
        if bell.listeners == 0 {
            if let Some(bell) = desk.bells.remove(&self.id) {
                desk.by_range.remove(&bell.range);
            }
            desk.say(Watching::Cancel(WatchCancelRequest { watch_id: self.id }));
        }
    }
}

/// Opens the stream at the member that answers, and passes on what it tells until it ends.
async fn tell(
    link: Arc<Link>,
    desk: Arc<Mutex<Desk>>,
    (at, stream): (usize, u64),
    mut questions: mpsc::UnboundedReceiver<WatchRequest>,
) {
    let source = stream::poll_fn(move |context| questions.poll_recv(context));
    let why = match link.stream::<WatchRequest, WatchResponse>(at, path::WATCH, source).await {
        Err(error) => Some(error.to_string()),
        Ok(mut answers) => loop {
            match answers.message().await {
                Ok(Some(response)) => lock(&desk).hears(stream, response),
                Ok(None) => break None,
                Err(status) => break Some(trouble::refused(link.endpoint(at), &status).to_string()),
            }
        },
    };
    if let Some(why) = why {
        tracing::debug!(target: "lockkeeper", member = %link.endpoint(at), %why, "the stream of news from etcd ended");
        link.pass_over(at);
    }
    let mut desk = lock(&desk);
    if desk.stream == stream {
        desk.end();
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stream without a network, for the fuzz targets.
#[derive(Default)]
pub(crate) struct Rehearsal {
    desk: Arc<Mutex<Desk>>,
    questions: Option<mpsc::UnboundedReceiver<WatchRequest>>,
}

impl Rehearsal {
    pub(crate) fn begin(&mut self) {
        self.questions = Some(lock(&self.desk).begin());
    }

    pub(crate) fn listen(&self, key: &[u8], range_end: &[u8]) -> Ear {
        let range = (key.to_vec(), range_end.to_vec());
        let (id, heard) = lock(&self.desk).listens(&range);
        Ear { desk: self.desk.clone(), id, range, heard }
    }

    /// What the stream of so many streams ago tells.
    pub(crate) fn hears(&self, ago: u64, response: WatchResponse) {
        let mut desk = lock(&self.desk);
        let stream = desk.stream.wrapping_sub(ago);
        desk.hears(stream, response);
    }

    pub(crate) fn end(&self) {
        lock(&self.desk).end();
    }

    /// What this stream was asked since the last look.
    pub(crate) fn asked(&mut self) -> Vec<Watching> {
        let mut asked = Vec::new();
        while let Some(Ok(request)) = self.questions.as_mut().map(mpsc::UnboundedReceiver::try_recv) {
            asked.extend(request.request);
        }
        asked
    }

    /// How many watches there are.
    pub(crate) fn watches(&self) -> usize {
        lock(&self.desk).bells.len()
    }
}
