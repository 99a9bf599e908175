//! One connection: both its sockets, what waits between them, and what was seen on it.
//!
//! The surprise: cutting resets the client but says goodbye to the server properly. A reset would also take back what
//! the server has not read yet, and then nobody could tell whether it acted.

use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

use super::{Counts, Way};

/// How much of what a client sent is looked at for words.
const HISTORY_BYTES: usize = 256 * 1024;
/// How much may wait in one direction before the sender has to.
const HELD_BYTES: usize = 8 * 1024 * 1024;

/// One connection, or what is known of one that is closed.
#[derive(Debug)]
pub(super) struct Connection {
    /// From 1, in the order of acceptance.
    pub(super) number: u64,
    /// Nothing when the connection is closed.
    pub(super) client: Option<Arc<TcpStream>>,
    /// Nothing when the connection is closed, or not made yet.
    pub(super) server: Option<Arc<TcpStream>>,
    /// By [`Way`].
    pub(super) queues: [Queue; 2],
    pub(super) counts: Counts,
    /// Whether the server has said something since the last request.
    pub(super) is_answered: bool,
    /// What becomes of what the server says next.
    pub(super) next_replies: Fate,
    /// By place in the hub's list of patterns: whether the client has sent it.
    pub(super) found: Vec<bool>,
    /// What the client sent first.
    history: Vec<u8>,
}

/// What waits in one direction, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) pieces: VecDeque<Piece>,
    /// How much of the first piece is through.
    pub(super) written: usize,
    bytes: usize,
    is_over: bool,
}

/// What one read brought.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) what: What,
    /// When it came.
    pub(super) at: Instant,
    pub(super) fate: Fate,
}

#[derive(Debug)]
pub(super) enum What {
    Bytes(Vec<u8>),
    /// Its sender has nothing more to say.
    End,
    /// Its sender is gone.
    Break,
}

/// What is to become of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pass,
    Drop,
    DropAndCut,
}

impl Connection {
    pub(super) fn new(number: u64, client: Arc<TcpStream>, patterns: usize) -> Connection {
        Connection {
            number,
            client: Some(client),
            server: None,
            queues: Default::default(),
            counts: Counts { accepted: 1, ..Counts::default() },
            is_answered: true,
            next_replies: Fate::Pass,
            found: vec![false; patterns],
            history: Vec::new(),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.client.is_some()
    }

    pub(super) fn counts(&self) -> Counts {
        let held_bytes = self.queues.iter().map(|queue| queue.bytes as u64).sum();
        Counts { open: u64::from(self.is_open()), held_bytes, ..self.counts }
    }

    /// Whether another piece may be taken in.
    pub(super) fn has_room(&self, way: Way) -> bool {
        self.queues[way as usize].bytes < HELD_BYTES
    }

    /// Remembers what the client sent, and which patterns that makes it a sender of.
    pub(super) fn note(&mut self, bytes: &[u8], patterns: &[Vec<u8>]) {
        let seen = self.history.len();
        let room = HISTORY_BYTES - seen;
        self.history.extend(bytes.iter().take(room).map(u8::to_ascii_uppercase));
        for (pattern, found) in patterns.iter().zip(&mut self.found) {
            // A pattern may have begun in an earlier piece.
            *found |= contains(&self.history[(seen + 1).saturating_sub(pattern.len())..], pattern);
        }
    }

    /// A new pattern is looked for, in what was sent so far too.
    pub(super) fn look_for(&mut self, pattern: &[u8]) {
        self.found.push(contains(&self.history, pattern));
    }

    pub(super) fn push(&mut self, way: Way, what: What) {
        let queue = &mut self.queues[way as usize];
        if let What::Bytes(bytes) = &what {
            queue.bytes += bytes.len();
        }
        let fate = if way == Way::ToClient { self.next_replies } else { Fate::Pass };
        queue.pieces.push_back(Piece { what, at: Instant::now(), fate });
    }

    /// The first piece is through, or gone. With both ends through, the connection is closed.
    pub(super) fn pop(&mut self, way: Way) {
        let queue = &mut self.queues[way as usize];
        queue.written = 0;
        match queue.pieces.pop_front().map(|piece| piece.what) {
            Some(What::Bytes(bytes)) => queue.bytes -= bytes.len(),
            Some(What::End) => queue.is_over = true,
            Some(What::Break) | None => {}
        }
        if self.queues.iter().all(|queue| queue.is_over) {
            (self.client, self.server) = (None, None);
        }
    }

    /// Who gets what goes this way.
    pub(super) fn receiver(&self, way: Way) -> Option<&TcpStream> {
        match way {
            Way::ToServer => self.server.as_deref(),
            Way::ToClient => self.client.as_deref(),
        }
    }

    /// Ends it, because a rule wants none like it.
    pub(super) fn refuse(&mut self) {
        self.counts.refused = 1;
        self.cut();
    }

    /// Ends it for both sides, with all that waits. The reader drops its half when it wakes; with that the client is reset.
    pub(super) fn cut(&mut self) {
        if let Some(client) = self.client.take() {
            let _ = set_socket_linger(&client, Some(Duration::ZERO));
            let _ = client.shutdown(Shutdown::Read); // wakes the reader, and tells the client nothing
        }
        if let Some(server) = self.server.take() {
            let _ = server.shutdown(Shutdown::Both);
        }
        self.queues = Default::default();
    }
}

/// Whether the words are in the text.
pub(super) fn contains(text: &[u8], words: &[u8]) -> bool {
    words.is_empty() || text.windows(words.len()).any(|window| window == words)
}
