//! What all threads of a proxy share: its connections and its rules, behind one lock.
//!
//! The surprise: closed connections stay in the list, for their counts.

use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::connection::{Connection, What};
use super::rules::{Rules, Selector};
use super::{Counts, Way};

/// The state, and a way to wait for it to change.
#[derive(Debug, Default)]
pub(super) struct Hub {
    state: Mutex<State>,
    changed: Condvar,
}

/// Everything a proxy knows.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) rules: Rules,
    /// Requests whose reply is to be lost, once each.
    pub(super) losing: Vec<(Selector, Vec<u8>)>,
    pub(super) is_closing: bool,
    /// In the order of their numbers.
    pub(super) connections: Vec<Connection>,
    /// What is looked for in what clients send, in upper case.
    patterns: Vec<Vec<u8>>,
}

impl Hub {
    /// Does something with the state, and tells everybody who waits.
    pub(super) fn change<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        let done = what(&mut self.lock());
        self.changed.notify_all();
        done
    }

    /// Reads something from the state.
    pub(super) fn look<T>(&self, at: impl FnOnce(&State) -> T) -> T {
        at(&self.lock())
    }

    /// Waits until there is an answer, or the time is over.
    pub(super) fn wait<T>(&self, end: Option<Instant>, ask: impl Fn(&State) -> Option<T>) -> Option<T> {
        let mut state = self.lock();
        loop {
            if let Some(answer) = ask(&state) {
                return Some(answer);
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                return None;
            }
            state = self.sleep(state, end);
        }
    }

    /// Carries all that is due, again and again, until the proxy closes.
    pub(super) fn carry(&self) {
        let mut state = self.lock();
        while !state.is_closing {
            let carried = state.carry();
            if carried.moved {
                self.changed.notify_all();
            }
            state = self.sleep(state, carried.next);
        }
    }

    fn sleep<'a>(&self, state: MutexGuard<'a, State>, until: Option<Instant>) -> MutexGuard<'a, State> {
        match until.map(|until| until.saturating_duration_since(Instant::now())) {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(time) => self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A client connected; its number, or nothing if it was refused.
    pub(super) fn accept(&mut self, client: Arc<TcpStream>) -> Option<u64> {
        let number = self.connections.len() as u64 + 1;
        let mut connection = Connection::new(number, client, self.patterns.len());
        if self.is_closing || self.rules.refuses(&connection) {
            connection.refuse();
        }
        let is_open = connection.is_open();
        self.connections.push(connection);
        is_open.then_some(number)
    }

    /// The server took the connection, or did not. Says whether there is something to read from it.
    pub(super) fn connected(&mut self, number: u64, server: Option<Arc<TcpStream>>) -> bool {
        let Some(connection) = open_mut(&mut self.connections, number) else { return false };
        match server {
            Some(server) => connection.server = Some(server),
            None => connection.cut(),
        }
        connection.is_open()
    }

    /// Takes in what one side sent. Says whether to go on reading.
    pub(super) fn take_in(&mut self, number: u64, way: Way, what: What) -> bool {
        let Some(connection) = open_mut(&mut self.connections, number) else { return false };
        if let (Way::ToServer, What::Bytes(bytes)) = (way, &what) {
            let was_refused = self.rules.refuses(connection);
            connection.note(bytes, &self.patterns);
            if !was_refused && self.rules.refuses(connection) {
                connection.refuse();
                return false;
            }
        }
        let goes_on = matches!(what, What::Bytes(_));
        connection.push(way, what);
        goes_on
    }

    /// The connection of this number, if it is open.
    pub(super) fn open(&self, number: u64) -> Option<&Connection> {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        self.connections.get(place).filter(|connection| connection.is_open())
    }

    /// Numbers of the open connections.
    pub(super) fn open_numbers(&self) -> Vec<u64> {
        self.connections.iter().filter(|connection| connection.is_open()).map(|connection| connection.number).collect()
    }

    /// Ends these connections.
    pub(super) fn cut(&mut self, selector: &Selector) {
        self.connections.iter_mut().filter(|connection| selector.covers(connection)).for_each(Connection::cut);
    }

    /// What was seen on these connections.
    pub(super) fn counts(&self, selector: &Selector) -> Counts {
        let seen = self.connections.iter().filter(|connection| selector.covers(connection));
        seen.map(Connection::counts).fold(Counts::default(), Counts::plus)
    }

    /// The place of a pattern in the list, from now on looked for.
    pub(super) fn look_for(&mut self, words: &str) -> usize {
        let pattern = words.to_ascii_uppercase().into_bytes();
        if let Some(known) = self.patterns.iter().position(|known| *known == pattern) {
            return known;
        }
        for connection in &mut self.connections {
            connection.look_for(&pattern);
        }
        self.patterns.push(pattern);
        self.patterns.len() - 1
    }
}

/// The same as [`State::open`], and leaves the rest of the state to be used.
fn open_mut(connections: &mut [Connection], number: u64) -> Option<&mut Connection> {
    let place = usize::try_from(number).ok()?.checked_sub(1)?;
    connections.get_mut(place).filter(|connection| connection.is_open())
}
