//! What is left at a store when every worker has gone and every lease is over.
//!
//! Surprise: only the lines are looked at through the store's own client. What a store keeps besides, only a server that
//! this run started can be asked for: anything else may be somebody else's. One small function per sort of server.

use std::io;
use std::time::Duration;

use lockkeeper::store::{Page, Store};
use lockkeeper::{Name, Result};

use super::etcd;
use super::resp::{Reply, Resp};
use crate::history::Leftover;

/// How many lines are read at once.
const PAGE: usize = 1_000;
/// More than this is not written down one by one.
pub(super) const MOST: usize = 1_000;
/// A store that does not answer is left.
const ANSWER_TAKES: Duration = Duration::from_secs(5);

pub(super) fn leftover(what: &str, name: impl Into<String>) -> Leftover {
    Leftover { what: what.to_owned(), name: name.into() }
}

/// Claims in lines whose names begin with the run's own beginning, which ends with a `/`.
pub(super) async fn claims(url: &str, under: &str) -> Result<Vec<Leftover>> {
    let store = lockkeeper::open(url).await?;
    let listed = match tokio::time::timeout(ANSWER_TAKES, list(&*store, under)).await {
        Ok(listed) => listed,
        Err(_) => Err(lockkeeper::Error::new(lockkeeper::ErrorKind::Unavailable, "it did not list its lines in time")),
    };
    let _ = tokio::time::timeout(ANSWER_TAKES, store.close()).await;
    listed
}

async fn list(store: &dyn Store, under: &str) -> Result<Vec<Leftover>> {
    let mut after = Name::new(under.trim_end_matches('/'))?;
    let mut left = Vec::new();
    loop {
        let page = Page { only: None, after: Some(&after), limit: PAGE };
        let views = store.inspect(page).await?;
        for view in &views {
            if !view.name.as_str().starts_with(under) {
                continue;
            }
            for claim in &view.claims {
                left.push(leftover("claim", format!("{} {} ({})", view.name, claim.id, claim.state.as_str())));
            }
        }
        match views.last() {
            Some(last) if views.len() >= PAGE && left.len() < MOST => after = last.name.clone(),
            _ => return Ok(left),
        }
    }
}

/// What servers of this run's own have besides.
pub(super) fn of_servers(scheme: &str, ports: &[u16]) -> io::Result<Vec<Leftover>> {
    match (scheme, ports) {
        ("redis", [port]) => of_redis(*port),
        ("etcd", ports) => etcd::left(ports),
        _ => Err(io::Error::other(format!("nobody knows how to ask a server of `{scheme}`"))),
    }
}

/// Does such a server tell who is connected? Of others the proxies before them do.
pub(super) fn tells_connections(scheme: &str) -> bool {
    scheme == "redis"
}

/// What a Redis server of this run's own has besides: keys that nobody needs any more and that never go, subscriptions,
/// connections.
fn of_redis(port: u16) -> io::Result<Vec<Leftover>> {
    let mut server = Resp::to(port)?;
    let mut left = Vec::new();
    let mut cursor = None;
    while cursor.as_deref() != Some("0") && left.len() < MOST {
        let (next, keys) = scan(&mut server, cursor.as_deref().unwrap_or("0"))?;
        for key in keys {
            if !may_stay(&mut server, &key)? {
                left.push(leftover("key", key));
            }
        }
        cursor = Some(next);
    }
    let channels = server.ask(&["PUBSUB", "CHANNELS"])?.texts();
    left.extend(channels.into_iter().map(|channel| leftover("subscription", channel)));
    let (own, clients) = (server.ask(&["CLIENT", "ID"])?, server.ask(&["CLIENT", "LIST"])?);
    let (Reply::Number(own), Reply::Text(clients)) = (own, clients) else { return Err(strange("CLIENT")) };
    let others = clients.lines().filter(|line| !line.starts_with(&format!("id={own} ")));
    left.extend(others.map(|line| leftover("connection", short(line))));
    Ok(left)
}

/// Some keys, and where to go on: `0` after the last.
fn scan(server: &mut Resp, cursor: &str) -> io::Result<(String, Vec<String>)> {
    let Reply::List(parts) = server.ask(&["SCAN", cursor, "COUNT", "1000"])? else { return Err(strange("SCAN")) };
    let Ok([Reply::Text(next), keys]) = <[Reply; 2]>::try_from(parts) else { return Err(strange("SCAN")) };
    Ok((next, keys.texts()))
}

/// What is not understood is not taken for nothing.
fn strange(to: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a reply to `{to}` that cannot be read"))
}

/// Where a line is kept, and for how long at the most when its last claim is over: one that dies in the last moment of a run
/// is taken out by nobody, and goes with these.
const LINE: [&str; 4] = ["}:line", "}:wait", "}:in", "}:ends"];
const LINGERS_MS: i64 = 60_000;

/// The mark of the clock, the floors of the numbers, which forget themselves after a day, and cells that do; and lines without
/// claims for as long as they go by themselves.
fn may_stay(server: &mut Resp, key: &str) -> io::Result<bool> {
    if key == "lockkeeper:clock" {
        return Ok(true);
    }
    let is_line = LINE.iter().any(|part| key.ends_with(part));
    match server.ask(&["PTTL", key])? {
        Reply::Number(-2) => Ok(true), // gone since it was listed
        Reply::Number(0..=LINGERS_MS) if is_line => Ok(true),
        Reply::Number(0..) => Ok(key.ends_with("}:last") || key.ends_with("}:cell")),
        _ => Ok(false),
    }
}

/// Who it is and what it did last, of all that the server tells of a connection.
fn short(client: &str) -> String {
    let telling = |word: &&str| ["id=", "addr=", "age=", "sub=", "cmd="].iter().any(|key| word.starts_with(key));
    client.split(' ').filter(telling).collect::<Vec<_>>().join(" ")
}
