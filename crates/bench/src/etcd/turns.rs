//! The baseline for one name and two processes: a token that is put under a key, heard of, and taken by a transaction.
//!
//! Surprise: its watch is made before the first slice and stays. A watch that begins at a past revision joins etcd's group of
//! laggards, which is served every 100 ms: that would be the figure, and not what the way itself takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt};
use lockkeeper_etcd::proto::watch::{EventKind, WatchCreateRequest, WatchRequest, WatchResponse, Watching};
use lockkeeper_etcd::proto::{DeleteRangeRequest, Do, PutRequest, TxnResponse, path};
use lockkeeper_etcd::raw::{Answers, Client};
use tokio::sync::Mutex;

use super::wire::{changed, options, txn};
use crate::handed::{Event, Noted};
use crate::player::Player;
use crate::turns::{Game, Two, player, runtime};
use crate::{Outcome, machine};

/// How long the bare client listens before it looks at the clock.
const LISTENS_FOR: Duration = Duration::from_millis(200);

/// Two processes with the bare token.
pub fn token(url: &str) -> Outcome<Two> {
    let start = |role| Player::own(&["etcd", "token", url, role])?.when_ready();
    let players = [start("0")?, start("1")?];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let url = url.to_owned();
    Ok(Two::of(Game::Ball, players).cleared(move || {
        runtime.block_on(async {
            let client = Client::open(options(&url)).await?;
            let deletes = [0, 1].map(|role| delete(token_key(role))).to_vec();
            client.ask::<_, TxnResponse>(path::TXN, &txn(Vec::new(), deletes, Vec::new())).await?;
            Ok(())
        })
    }))
}

fn token_key(role: usize) -> Vec<u8> {
    format!("token-{role}").into_bytes()
}

fn delete(key: Vec<u8>) -> Do {
    Do::Delete(DeleteRangeRequest { key, range_end: Vec::new() })
}

/// A bare client that hears when the token is put under its key.
#[derive(Clone)]
struct Passing {
    client: Client,
    news: Arc<Mutex<Answers<WatchResponse>>>,
    own: Vec<u8>,
    other: Vec<u8>,
}

/// The hidden mode of a bare client: is told of the token, takes it by a transaction, puts it under the other's key.
pub fn child(url: &str, role: usize) -> Outcome<()> {
    let runtime = runtime()?;
    let (own, other) = (token_key(role), token_key(1 - role));
    let passing = runtime.block_on(async {
        let client = Client::open(options(url)).await?;
        let create = WatchCreateRequest { key: own.clone(), ..WatchCreateRequest::default() };
        let create = WatchRequest { request: Some(Watching::Create(create)) };
        let questions = stream::iter([create]).chain(stream::pending());
        let mut news = client.stream::<_, WatchResponse>(path::WATCH, questions).await?;
        if news.next().await?.is_none_or(|answer| !answer.created) {
            return Err("the watch was not made".into());
        }
        Outcome::Ok(Passing { client, news: Arc::new(Mutex::new(news)), own, other })
    })?;
    player(&runtime, Game::Ball, |end| pass_on(passing.clone(), role == 0, end))
}

async fn pass_on(passing: Passing, mut has_it: bool, end: Instant) -> Outcome<Vec<Noted>> {
    let ((held_for, rest), mut noted) = (Game::Ball.pace(), Vec::new());
    let mut news = passing.news.lock().await;
    while Instant::now() < end {
        if !has_it {
            let Ok(told) = tokio::time::timeout(LISTENS_FOR, news.next()).await else { continue };
            let told = told?.ok_or("the watch has ended")?;
            let mut put = told
                .events
                .into_iter()
                .filter(|event| event.kind == EventKind::Put as i32)
                .filter_map(|event| event.kv);
            let Some(put) = put.next_back() else { continue };
            let question =
                txn(vec![changed(&passing.own, put.mod_revision)], vec![delete(passing.own.clone())], Vec::new());
            let taken: TxnResponse = passing.client.ask(path::TXN, &question).await?;
            if !taken.succeeded {
                // Of the slice before.
                continue;
            }
            noted.push((machine::boottime_nanos(), Event::Taken));
        }
        tokio::time::sleep(held_for).await;
        noted.push((machine::boottime_nanos(), Event::Passed));
        let put = Do::Put(PutRequest { key: passing.other.clone(), value: b"token".to_vec(), ..PutRequest::default() });
        passing.client.ask::<_, TxnResponse>(path::TXN, &txn(Vec::new(), vec![put], Vec::new())).await?;
        has_it = false;
        tokio::time::sleep(rest).await;
    }
    Ok(noted)
}
