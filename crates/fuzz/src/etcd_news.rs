//! What an etcd tells those who watch.
//!
//! An input is steps, one a line: `begin` a stream, `listen KEY END`, `drop N`, `end`; `tell AGO ID REVISION WORDS` is told by
//! the stream of so many streams ago, with the `event KIND CREATE MOD KEY` lines that follow; `raw HEX` is an answer as the
//! protocol has it.

use std::collections::HashSet;

use lockkeeper_etcd::fuzzing::{Heard, Listener, News};
use lockkeeper_etcd::proto::watch::{Event, WatchResponse, Watching};
use lockkeeper_etcd::proto::{KeyValue, ResponseHeader};
use prost::Message;

use crate::etcd_words::bytes;

/// A stream and those who listen.
#[derive(Default)]
struct Hall {
    news: News,
    listeners: Vec<Option<(Listener, Heard)>>,
    /// Watches that this stream was asked for, and those that it was asked to end.
    made: HashSet<i64>,
    ended: HashSet<i64>,
}

/// What is over stays over, and says nothing more; revisions never go back; each watch is asked for once and ended once;
/// and when nobody listens, nothing is kept.
pub(crate) fn news(input: &[u8]) {
    if let Ok(response) = WatchResponse::decode(input) {
        let mut hall = Hall::default();
        hall.step("begin", "");
        hall.step("listen", "a/ a0");
        hall.hears(0, WatchResponse { watch_id: 1, ..response.clone() });
        hall.hears(0, response);
    }
    let text = String::from_utf8_lossy(input);
    let mut hall = Hall::default();
    let mut telling: Option<(u64, WatchResponse)> = None;
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, &mut telling) {
            ("event", Some((_, response))) => response.events.push(event(rest)),
            _ => {
                if let Some((ago, response)) = telling.take() {
                    hall.hears(ago, response);
                }
                match word {
                    "tell" => telling = Some(told(rest)),
                    word => hall.step(word, rest),
                }
            }
        }
    }
    if let Some((ago, response)) = telling {
        hall.hears(ago, response);
    }
    hall.listeners.clear();
    assert_eq!(hall.news.watches(), 0, "somebody still listens");
}

fn told(text: &str) -> (u64, WatchResponse) {
    let words: Vec<&str> = text.split(' ').collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
    let header = number(2).map(|revision| ResponseHeader { revision, ..ResponseHeader::default() });
    let says = |word: &str| words.get(3).is_some_and(|all| all.split(',').any(|one| one == word));
    let response = WatchResponse {
        header,
        watch_id: number(1).unwrap_or_default(),
        created: says("created"),
        canceled: says("canceled"),
        ..WatchResponse::default()
    };
    (number(0).unwrap_or_default().unsigned_abs(), response)
}

fn event(text: &str) -> Event {
    let words: Vec<&str> = text.splitn(4, ' ').collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
    let kv = number(2).map(|mod_revision| KeyValue {
        key: words.get(3).map(|key| bytes(key)).unwrap_or_default(),
        create_revision: number(1).unwrap_or_default(),
        mod_revision,
        ..KeyValue::default()
    });
    Event { kind: number(0).and_then(|kind| i32::try_from(kind).ok()).unwrap_or_default(), kv }
}

impl Hall {
    fn step(&mut self, word: &str, rest: &str) {
        match word {
            "begin" => {
                self.asked();
                self.news.begin();
                (self.made, self.ended) = Default::default();
                self.all_over();
            }
            "listen" => {
                let (key, end) = rest.split_once(' ').unwrap_or((rest, ""));
                let listener = self.news.listen(&bytes(key), &bytes(end));
                let heard = listener.heard();
                assert!(!heard.3, "a watch that is over is shared");
                self.listeners.push(Some((listener, heard)));
            }
            "drop" => {
                let at = rest.parse::<usize>().unwrap_or(usize::MAX);
                if let Some(place) = self.listeners.get_mut(at) {
                    *place = None;
                }
            }
            "end" => {
                self.news.end();
                self.all_over();
            }
            "raw" => {
                let bytes = bytes(rest);
                if let Ok(response) = WatchResponse::decode(&bytes[..]) {
                    self.hears(0, response);
                }
            }
            _ => {}
        }
        self.look();
        self.asked();
    }

    fn hears(&mut self, ago: u64, response: WatchResponse) {
        let before: Vec<Heard> = self.heard();
        let last = response.events.iter().filter_map(|event| Some(event.kv.as_ref()?.mod_revision)).max();
        let refused_nobody = response.canceled && response.watch_id < 0;
        self.news.hears(ago, response);
        self.look();
        let after = self.heard();
        if ago > 0 {
            assert_eq!(before, after, "an earlier stream was heard");
        }
        for (before, after) in before.iter().zip(&after) {
            assert!(after.1 <= before.1.max(last.unwrap_or_default()), "{after:?} was never told");
            assert!(ago > 0 || !refused_nobody || after.3, "a watch was refused, and nobody is told whose: {after:?}");
        }
        self.asked();
    }

    fn heard(&self) -> Vec<Heard> {
        self.listeners.iter().flatten().map(|(listener, _)| listener.heard()).collect()
    }

    /// Everybody who listened is told that it is over.
    fn all_over(&self) {
        assert!(self.heard().iter().all(|heard| heard.3), "a stream has ended, and somebody waits for it");
    }

    fn look(&mut self) {
        for (listener, before) in self.listeners.iter_mut().flatten() {
            let now = listener.heard();
            assert!(now.0 >= before.0 && now.1 >= before.1 && now.2 >= before.2, "back from {before:?} to {now:?}");
            assert!(now.1 >= now.2 && now.2 >= 0, "{now:?}");
            assert!(!before.3 || now == *before, "{before:?} was over, and is {now:?}");
            *before = now;
        }
        assert!(self.news.watches() <= self.listeners.iter().flatten().count(), "a watch that nobody listens to");
    }

    fn asked(&mut self) {
        for asked in self.news.asked() {
            match asked {
                Watching::Create(create) => {
                    assert!(create.watch_id > 0 && create.start_revision == 0, "{create:?}");
                    assert!(self.made.insert(create.watch_id), "{create:?} is there already");
                }
                Watching::Cancel(cancel) => {
                    assert!(self.made.contains(&cancel.watch_id), "{cancel:?} was never made");
                    assert!(self.ended.insert(cancel.watch_id), "{cancel:?} has been ended");
                }
            }
        }
    }
}
