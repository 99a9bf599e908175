//! Carries bytes from one side to the other, as the rules say.
//!
//! The surprise: bytes are written under the hub's lock, and never waited for. So the lock is not held for long, and a
//! control that has it knows that no byte is half-way through.

use std::net::Shutdown;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::Way;
use super::connection::{Connection, Fate, What, contains};
use super::hub::State;
use super::rules::{Rules, Selector};

/// When to try again to write to somebody who does not read.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// What a look at all queues brought.
#[derive(Default)]
pub(super) struct Carried {
    /// When to look again if nothing happens until then.
    pub(super) next: Option<Instant>,
    pub(super) moved: bool,
}

/// What became of the first piece of a queue.
enum Step {
    /// It is through, in whole or in part, or gone.
    Moved,
    /// It waits for this time.
    Until(Instant),
    /// It waits for something to change, or there is none.
    Still,
}

impl State {
    /// Carries all that is due, as far as it is taken.
    pub(super) fn carry(&mut self) -> Carried {
        let mut carried = Carried::default();
        let State { connections, rules, losing, .. } = self;
        for connection in connections.iter_mut().filter(|connection| connection.is_open()) {
            for way in [Way::ToServer, Way::ToClient] {
                loop {
                    match connection.step(way, rules, losing) {
                        Step::Moved => carried.moved = true,
                        Step::Still => break,
                        Step::Until(time) => {
                            carried.next = Some(carried.next.map_or(time, |next| next.min(time)));
                            break;
                        }
                    }
                }
            }
        }
        carried
    }
}

impl Connection {
    fn step(&mut self, way: Way, rules: &mut Rules, losing: &mut Vec<(Selector, Vec<u8>)>) -> Step {
        let (Some(piece), Some(_)) = (self.queues[way as usize].pieces.front(), self.receiver(way)) else {
            return Step::Still;
        };
        if rules.freezes(self) {
            return Step::Still;
        }
        let due = piece.at + rules.delay[way as usize].of(self).copied().unwrap_or_default();
        if Instant::now() < due {
            return Step::Until(due);
        }
        match (&piece.what, way) {
            (What::Bytes(_), Way::ToServer) => {
                if self.queues[way as usize].written == 0 {
                    self.begin_request(rules, losing);
                }
                return self.write(way);
            }
            (What::Bytes(bytes), Way::ToClient) => {
                let (length, fate) = (bytes.len() as u64, piece.fate);
                self.is_answered = true;
                if fate == Fate::Pass && !rules.drops_replies(self) {
                    return self.write(way);
                }
                self.counts.dropped_bytes += length;
                self.pop(way);
                if fate == Fate::DropAndCut {
                    self.cut();
                }
            }
            (What::End, _) => {
                let _ = self.receiver(way).map(|receiver| receiver.shutdown(Shutdown::Write));
                self.pop(way);
            }
            (What::Break, _) => self.cut(),
        }
        Step::Moved
    }

    /// The first piece of a request is about to go: counts it, and decides about the reply.
    fn begin_request(&mut self, rules: &mut Rules, losing: &mut Vec<(Selector, Vec<u8>)>) {
        if self.is_answered {
            self.counts.round_trips += 1;
            self.is_answered = false;
        }
        let is_dropped = rules.uses_up_a_drop(self);
        let lost = self.first_bytes().and_then(|bytes| {
            let bytes = bytes.to_ascii_uppercase();
            losing.iter().position(|(selector, words)| selector.covers(self) && contains(&bytes, words))
        });
        self.next_replies = match lost.map(|place| losing.remove(place)) {
            // What is to be lost stays so when other requests follow it before the answer.
            _ if self.next_replies == Fate::DropAndCut => Fate::DropAndCut,
            Some(_) => Fate::DropAndCut,
            None if is_dropped => Fate::Drop,
            None => Fate::Pass,
        };
    }

    fn first_bytes(&self) -> Option<&[u8]> {
        match &self.queues[Way::ToServer as usize].pieces.front()?.what {
            What::Bytes(bytes) => Some(bytes),
            What::End | What::Break => None,
        }
    }

    /// Writes what is taken at once of the first piece.
    fn write(&mut self, way: Way) -> Step {
        let queue = &self.queues[way as usize];
        let (Some(What::Bytes(bytes)), Some(receiver)) =
            (queue.pieces.front().map(|piece| &piece.what), self.receiver(way))
        else {
            return Step::Still;
        };
        let (left, length) = (&bytes[queue.written..], bytes.len());
        match send(receiver, left, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => {
                let counter = match way {
                    Way::ToServer => &mut self.counts.to_server_bytes,
                    Way::ToClient => &mut self.counts.to_client_bytes,
                };
                *counter += count as u64;
                let queue = &mut self.queues[way as usize];
                queue.written += count;
                if queue.written == length {
                    self.pop(way);
                }
                Step::Moved
            }
            Err(Errno::AGAIN) => Step::Until(Instant::now() + TRY_AGAIN),
            Err(Errno::INTR) => Step::Moved,
            Err(_) => {
                self.cut();
                Step::Moved
            }
        }
    }
}
