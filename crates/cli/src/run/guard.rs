//! The guard process: it ends the command's group when the hold's deadline comes or `lockkeeper` is gone.
//!
//! It is a process because a killed or stopped `lockkeeper` can do nothing itself, and a parent-death signal is
//! per thread and misses grandchildren. It has a process group of its own, blocks every signal and closes all it
//! inherited, so that it is not affected by a terminal or a `kill` of the whole unit, nor a pipeline by it.
//!
//! Surprise: it stays in the session. A session of its own adds nothing to that, and Linux makes it a scheduling
//! group of its own (autogroup): on a busy machine such guards were left waiting for the processor for seconds.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use lockkeeper::time::{Clock, Moment};
use nix::sys::signal::SigSet;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::record::{ASKED, POSTED, Record, Watch};
use super::{group, nest};

/// How often a group that was asked to end is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The hidden mode `lockkeeper __guard`: records come on stdin, single bytes go out on stdout.
///
/// Exit code 0 means that it was told it is done, or that nobody of the group is left.
/// The folder of the sockets that inner ones ask at, if there is one, is taken away in the end: a `lockkeeper` that was
/// killed cannot.
pub fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    leave_everything();
    let folder = args.next();
    match Guard::post() {
        Some(guard) => {
            guard.stand();
            if let Some(folder) = folder {
                nest::remove(Path::new(&folder));
            }
            ExitCode::SUCCESS
        }
        // The pipe closed before there was anybody to watch; the gate has seen the same and has ended.
        None => ExitCode::FAILURE,
    }
}

/// Steps out of the caller's world, so that nothing done to it is done to the guard.
fn leave_everything() {
    // All that can be blocked: a service manager that signals every process of a unit must not end the guard first.
    let _ = SigSet::all().thread_block();
    close_strangers();
    let _ = std::env::set_current_dir("/");
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"lockkeeper");
    // Being late lets two run at once, so the guard goes ahead of others where that is allowed.
    let _ = rustix::process::setpriority_process(None, -10);
}

/// Closes what the shell that started `lockkeeper` had open besides the standard three: a pipe held open here
/// would keep its reader waiting.
fn close_strangers() {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else { return };
    let open: Vec<i32> = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // Nothing in this process owns any of these; the one that listed the directory is closed already.
        let _ = nix::unistd::close(fd);
    }
}

struct Guard {
    clock: Clock,
    timer: Timer,
    watch: Watch,
    /// Has the group been asked to end, under the present deadline?
    asked: bool,
    /// Why it must end whatever the deadline says; then also: when it is killed at the latest.
    ending: Option<Moment>,
    /// Is the pipe from `lockkeeper` still open?
    connected: bool,
    done: bool,
}

impl Guard {
    /// Waits for the first record and says that it is on guard.
    fn post() -> Option<Self> {
        let mut bytes = [0; Record::BYTES];
        let Heard::Bytes(Record::BYTES) = hear(&mut bytes) else { return None };
        let Some(Record::Watch(watch)) = Record::from_bytes(&bytes) else { return None };
        let (clock, timer) = (Clock::system(), Timer::new()?);
        let guard = Self { clock, timer, watch, asked: false, ending: None, connected: true, done: false };
        say(POSTED).then_some(guard)
    }

    /// Watches until it is told that all is over, or until it has ended the group itself.
    fn stand(mut self) {
        while !self.done {
            let now = self.clock.now();
            if now >= self.kill_at() {
                group::end(self.watch.group);
                // On a busy machine both moments may pass at once; `lockkeeper` is to know why the command ended.
                if !self.asked && self.ending.is_none() {
                    say(ASKED);
                }
                return;
            }
            if !self.asked && now >= self.ask_at() {
                group::ask_to_end(self.watch.group);
                self.asked = true;
                if self.ending.is_none() {
                    say(ASKED);
                }
            }
            // Without this a guard whose `lockkeeper` is dead would stay on until the deadline for nobody.
            if self.ending.is_some() && !group::is_alive(self.watch.group) {
                return;
            }
            let stdin = std::io::stdin();
            if self.timer.sleep(self.wake_at(now), self.connected.then(|| stdin.as_fd())) {
                self.listen();
            }
        }
    }

    fn kill_at(&self) -> Moment {
        self.ending.unwrap_or(self.watch.deadline).min(self.watch.deadline)
    }

    fn ask_at(&self) -> Moment {
        if self.ending.is_some() { Moment::from_nanos(0) } else { self.watch.deadline - self.watch.lead }
    }

    fn wake_at(&self, now: Moment) -> Moment {
        let next = if self.asked { self.kill_at() } else { self.ask_at() };
        if self.ending.is_some() { next.min(now + LOOK_EVERY) } else { next }
    }

    fn listen(&mut self) {
        let mut bytes = [0; Record::BYTES * 64];
        match hear(&mut bytes) {
            Heard::Nothing => {}
            Heard::End => {
                // `lockkeeper` is gone. The name stays taken until the deadline, so the group has until then.
                self.connected = false;
                self.ending.get_or_insert(self.watch.deadline);
            }
            Heard::Bytes(count) => {
                for record in bytes[..count].chunks_exact(Record::BYTES).filter_map(Record::from_bytes) {
                    self.obey(record);
                }
            }
        }
    }

    fn obey(&mut self, record: Record) {
        match record {
            // A deadline moves when the store has answered again: what was asked before it is asked anew.
            Record::Watch(watch) => {
                self.asked &= self.ending.is_some();
                self.watch = watch;
            }
            // Somebody else may be in already (`break --now`): the group gets the usual grace and no more.
            Record::Lost => self.ending = Some(self.clock.now() + self.watch.lead),
            Record::Done => self.done = true,
        }
    }
}

/// One byte for `lockkeeper`; false if it is gone.
fn say(byte: u8) -> bool {
    let mut out = std::io::stdout();
    out.write_all(&[byte]).and_then(|()| out.flush()).is_ok()
}

enum Heard {
    Bytes(usize),
    Nothing,
    End,
}

fn hear(bytes: &mut [u8]) -> Heard {
    match rustix::io::read(std::io::stdin(), bytes) {
        Ok(0) => Heard::End,
        Ok(count) => Heard::Bytes(count),
        Err(Errno::INTR | Errno::AGAIN) => Heard::Nothing,
        Err(_) => Heard::End,
    }
}

/// Sleeps by the clock that also counts suspension, or until the pipe has news.
#[cfg(target_os = "linux")]
struct Timer(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Timer {
    fn new() -> Option<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK).ok().map(Self)
    }

    /// True if the pipe has something to read; may return early.
    fn sleep(&self, until: Moment, pipe: Option<BorrowedFd<'_>>) -> bool {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        // A time of zero would switch the timer off. Setting it anew also takes back an earlier ring.
        let at = Duration::from_nanos(until.as_nanos().max(1));
        let seconds = i64::try_from(at.as_secs()).unwrap_or(i64::MAX);
        let it_value = Timespec { tv_sec: seconds, tv_nsec: at.subsec_nanos().into() };
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        if timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut fds = vec![PollFd::new(&self.0, PollFlags::IN)];
        fds.extend(pipe.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)));
        let _ = rustix::event::poll(&mut fds, None);
        fds.get(1).is_some_and(|pipe| !pipe.revents().is_empty())
    }
}

/// Sleeps in short pieces, since this clock may stop with the machine.
#[cfg(not(target_os = "linux"))]
struct Timer;

#[cfg(not(target_os = "linux"))]
impl Timer {
    fn new() -> Option<Self> {
        Some(Self)
    }

    fn sleep(&self, until: Moment, pipe: Option<BorrowedFd<'_>>) -> bool {
        let left = Clock::system().now().until(until).min(Duration::from_millis(50));
        let left = rustix::time::Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let mut fds: Vec<_> = pipe.map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).into_iter().collect();
        let _ = rustix::event::poll(&mut fds, Some(&left));
        fds.first().is_some_and(|pipe| !pipe.revents().is_empty())
    }
}
