//! Which process a pid means: the number alone is reused, the number with its start time is not.
//!
//! The surprise: a killed process stays a zombie until its parent reaps it, and `kill -0` calls it alive. Here a zombie
//! is gone.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// One process, told apart from a later one that got the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The process id.
    pub pid: u32,
    /// Clock ticks from boot to its start: field 22 of `/proc/PID/stat`. Stays the same when the process execs.
    pub start: u64,
}

impl Identity {
    /// The process that has this pid now; nothing if there is none or it is a zombie.
    pub fn of(pid: u32) -> Option<Identity> {
        let (state, start) = stat(pid)?;
        (!matches!(state, 'Z' | 'X')).then_some(Identity { pid, start })
    }

    /// The child that has this pid, even if it ended: until it is reaped the pid is its own.
    pub(super) fn of_child(pid: u32) -> Option<Identity> {
        stat(pid).map(|(_, start)| Identity { pid, start })
    }

    /// Whether this very process still runs (or is stopped).
    pub fn is_alive(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }

    /// Whether it is stopped by a signal.
    pub fn is_paused(self) -> bool {
        stat(self.pid) == Some(('T', self.start))
    }

    /// Sends a signal if the pid still means this process; says whether it did.
    pub fn signal(self, signal: Signal) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        self.is_alive() && pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    /// Waits until it is gone; says whether it is.
    pub fn wait_gone(self, at_most: Duration) -> bool {
        poll(at_most, || (!self.is_alive()).then_some(())).is_some()
    }
}

/// State and start time. The name in parentheses may hold spaces and parentheses itself, so read from the last one.
fn stat(pid: u32) -> Option<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Asks again and again, slower each time, until there is an answer or the time is over.
pub(super) fn poll<T>(at_most: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + at_most;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
