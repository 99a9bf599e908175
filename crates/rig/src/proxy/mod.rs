//! A TCP proxy that hurts: it cuts, delays, freezes, refuses, and throws replies away; and it counts round trips.
//!
//! The surprise: a control has taken effect when it returns. One thread of the proxy's own writes all bytes, and it does
//! so under the lock that the controls take, so after `freeze()` not one byte more comes through. No runtime is involved:
//! a test whose runtime is blocked does not stop its proxy.
//!
//! ```no_run
//! # use lockkeeper_conformance::rig::{Proxy, Server, Which};
//! # use std::time::Duration;
//! let server = Server::named("redis")?;
//! let proxy = Proxy::to(server.port())?;
//! let url = format!("redis://127.0.0.1:{}", proxy.port());
//! // … a client at `url` …
//! proxy.cut();
//! proxy.only(Which::Sent("SUBSCRIBE")).cut_for(Duration::from_secs(10));
//! proxy.lose_reply_to("EVALSHA");
//! # Ok::<(), lockkeeper_conformance::rig::Trouble>(())
//! ```

mod carry;
mod connection;
mod hub;
mod rules;
#[cfg(test)]
mod tests;
mod threads;

use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::ops::Deref;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::hub::{Hub, State};
use self::rules::{Refusal, Replies, Selector};
use super::Trouble;

/// A proxy in front of one port of this machine or another, gone when dropped together with its connections.
///
/// It controls all its connections, present and future, with the methods of [`Connections`]; [`only`](Proxy::only) some
/// of them. Use this for faults of the network; use [`Server`](super::Server) for faults of the server.
#[derive(Debug)]
pub struct Proxy {
    all: Connections,
    port: u16,
    listener: Arc<TcpListener>,
    threads: Vec<JoinHandle<()>>,
}

/// Some of the connections of a proxy, and the controls for them. A clone is the same selection.
///
/// Where two controls of one sort contradict each other on a connection, the later one counts.
#[derive(Clone, Debug)]
pub struct Connections {
    hub: Arc<Hub>,
    selector: Selector,
}

/// A choice of connections.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// Those that are open now, and no later ones.
    Open,
    /// The one that was accepted as the n-th, from 1, whether it came already or not. Refused ones count.
    Nth(u64),
    /// Those on which the client has sent this, or will; upper or lower case. Looks at the first 256 KiB of each, and
    /// sees nothing through TLS.
    Sent(&'a str),
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Requests.
    ToServer,
    /// Replies.
    ToClient,
}

/// What was seen on some connections, closed ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that clients made.
    pub accepted: u64,
    /// Those of them that were closed by [`refuse`](Connections::refuse) or [`cut_for`](Connections::cut_for).
    pub refused: u64,
    /// Those of them that are open.
    pub open: u64,
    /// See [`count_round_trips`](Connections::count_round_trips).
    pub round_trips: u64,
    /// Bytes handed to the server.
    pub to_server_bytes: u64,
    /// Bytes handed to the client.
    pub to_client_bytes: u64,
    /// Bytes of replies thrown away.
    pub dropped_bytes: u64,
    /// Bytes that wait in the proxy now: delayed, frozen, or not taken yet.
    pub held_bytes: u64,
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            accepted: self.accepted + other.accepted,
            refused: self.refused + other.refused,
            open: self.open + other.open,
            round_trips: self.round_trips + other.round_trips,
            to_server_bytes: self.to_server_bytes + other.to_server_bytes,
            to_client_bytes: self.to_client_bytes + other.to_client_bytes,
            dropped_bytes: self.dropped_bytes + other.dropped_bytes,
            held_bytes: self.held_bytes + other.held_bytes,
        }
    }
}

impl Proxy {
    /// A proxy on a free port, in front of `target`.
    pub fn to(target: u16) -> Result<Proxy, Trouble> {
        Proxy::listening_on(0, target)
    }

    /// A proxy on a port of the caller's choice, in front of `target`.
    pub fn listening_on(port: u16, target: u16) -> Result<Proxy, Trouble> {
        Proxy::between(port, SocketAddr::from((Ipv4Addr::LOCALHOST, target)))
    }

    /// A proxy on a free port of this machine, in front of a server anywhere. Its name is looked up once, now.
    pub fn before(host: &str, target: u16) -> Result<Proxy, Trouble> {
        let unknown = |why: String| Trouble::new(format!("no proxy can be put before `{host}`: {why}"));
        let mut found = (host, target).to_socket_addrs().map_err(|e| unknown(e.to_string()))?;
        Proxy::between(0, found.next().ok_or_else(|| unknown("the name has no address".to_string()))?)
    }

    fn between(port: u16, target: SocketAddr) -> Result<Proxy, Trouble> {
        let refused = |e| Trouble::new(format!("no proxy can listen on port {port}: {e}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let (listener, hub) = (Arc::new(listener), Arc::new(Hub::default()));
        let threads = threads::start(&hub, &listener, target).map_err(refused)?;
        Ok(Proxy { all: Connections { hub, selector: Selector::All }, port, listener, threads })
    }

    /// Where clients connect, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The controls for some of its connections.
    pub fn only(&self, which: Which<'_>) -> Connections {
        let hub = self.all.hub.clone();
        let selector = match which {
            Which::Open => Selector::These(hub.look(State::open_numbers)),
            Which::Nth(number) => Selector::These(vec![number]),
            Which::Sent(words) => Selector::Sent(hub.change(|state| state.look_for(words))),
        };
        Connections { hub, selector }
    }
}

impl Deref for Proxy {
    type Target = Connections;

    fn deref(&self) -> &Connections {
        &self.all
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.all.hub.change(|state| {
            state.is_closing = true;
            state.cut(&Selector::All);
        });
        // Ends the wait for the next client.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Connections {
    /// Ends them now: the client sees a reset. What was handed to the server before stays with it.
    pub fn cut(&self) {
        self.hub.change(|state| state.cut(&self.selector));
    }

    /// Ends them now, and [refuses](Connections::refuse) new ones for this long. Returns at once.
    pub fn cut_for(&self, time: Duration) {
        let refusal = Refusal::Until(Instant::now() + time);
        self.hub.change(|state| {
            state.cut(&self.selector);
            state.rules.refusal.set(&self.selector, refusal);
        });
    }

    /// New ones are reset at once; with [`Which::Sent`], as soon as the client sends it, before the server sees it.
    /// Those that are there already stay.
    pub fn refuse(&self, refuse: bool) {
        let refusal = if refuse { Refusal::Always } else { Refusal::Never };
        self.hub.change(|state| state.rules.refusal.set(&self.selector, refusal));
    }

    /// Bytes take this much longer in one direction, each counted from when it came, those on their way included.
    pub fn delay(&self, way: Way, by: Duration) {
        self.hub.change(|state| state.rules.delay[way as usize].set(&self.selector, by));
    }

    /// Half-open: they stay up and new ones are accepted, but nothing comes through, in either direction, not even an
    /// end. What is sent waits for [`thaw`](Connections::thaw).
    pub fn freeze(&self) {
        self.hub.change(|state| state.rules.is_frozen.set(&self.selector, true));
    }

    /// What was frozen goes on, with all that waited.
    pub fn thaw(&self) {
        self.hub.change(|state| state.rules.is_frozen.set(&self.selector, false));
    }

    /// Requests reach the server and replies are thrown away. A client of a stream cannot use the connection again when
    /// this ends: [`cut`](Connections::cut) it then.
    pub fn drop_replies(&self, drop: bool) {
        let replies = if drop { Replies::Drop } else { Replies::Pass };
        self.hub.change(|state| state.rules.replies.set(&self.selector, replies));
    }

    /// The same for the next `count` requests only, over all of these connections: what the server sends after one of
    /// them reached it is thrown away until the next request goes through. A request is what comes in one write.
    pub fn drop_next_replies(&self, count: usize) {
        self.hub.change(|state| state.rules.replies.set(&self.selector, Replies::DropNext(count)));
    }

    /// Once: the next request with these words in it (upper or lower case) reaches the server; when the server answers,
    /// the answer is thrown away and the connection is cut. The server has acted, and the client cannot know.
    ///
    /// Exact when nothing else is under way on the connection; otherwise the answer to an earlier request may be taken
    /// for it, and the server acts on all it was sent, a moment later.
    pub fn lose_reply_to(&self, words: &str) {
        let words = words.to_ascii_uppercase().into_bytes();
        self.hub.change(|state| state.losing.push((self.selector.clone(), words)));
    }

    /// How often a request went to the server after an answer to what went before it, or as the first of its connection.
    ///
    /// Exact for a client that waits for each answer: 1 per request and reply, however many pieces either comes in, and
    /// 1 for a pipeline that is there before its first answer. An answer that is thrown away is an answer. What the
    /// server sends unasked is taken for one; it changes the count only in the middle of a request in several pieces.
    pub fn count_round_trips(&self) -> u64 {
        self.counts().round_trips
    }

    /// What was seen so far.
    pub fn counts(&self) -> Counts {
        self.hub.look(|state| state.counts(&self.selector))
    }

    /// Waits until the counts are as wanted; says whether they became so. Blocks its thread.
    pub fn wait_for(&self, at_most: Duration, wanted: impl Fn(&Counts) -> bool) -> bool {
        self.hub
            .wait(Some(Instant::now() + at_most), |state| wanted(&state.counts(&self.selector)).then_some(()))
            .is_some()
    }
}
