//! Signals sent to `lockkeeper`, as a stream; and stopping or ending the way a signal would have done it.
//!
//! Surprise: there are no signal handlers. The signals are blocked and one thread waits for them. So what was
//! ignored when `lockkeeper` was started (`nohup`) stays ignored in the command, no system call is interrupted,
//! and `lockkeeper` can still stop of SIGTSTP itself, which a shell reports as it reports any stopped job.

use std::collections::VecDeque;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, raise};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// What is passed to the command while it runs. SIGWINCH is for a command that is not in the foreground itself.
const PASSED: [Signal; 9] = [
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
    Signal::SIGWINCH,
];

/// The signals that arrive.
#[derive(Debug)]
pub struct Signals {
    arrived: UnboundedReceiver<Signal>,
    /// Arrived while another one was waited for.
    kept: VecDeque<Signal>,
}

impl Signals {
    /// Starts to listen. Call it before any other thread exists: they inherit what is blocked here.
    pub fn listen() -> nix::Result<Self> {
        let ignored = ignored();
        let wanted: SigSet = PASSED.into_iter().filter(|signal| ignored & (1 << (*signal as i32 - 1)) == 0).collect();
        wanted.thread_block()?;
        // With SIGTTOU blocked a process in the background may take its terminal back.
        SigSet::from(Signal::SIGTTOU).thread_block()?;
        let (tell, arrived) = unbounded_channel();
        std::thread::spawn(move || {
            loop {
                match wanted.wait() {
                    Ok(signal) if tell.send(signal).is_ok() => {}
                    Err(Errno::EINTR) => {}
                    _ => return,
                }
            }
        });
        Ok(Self { arrived, kept: VecDeque::new() })
    }

    /// The next signal.
    ///
    /// # Cancel safety
    /// Nothing is lost when this is dropped.
    pub async fn next(&mut self) -> Signal {
        if let Some(signal) = self.kept.pop_front() {
            return signal;
        }
        match self.arrived.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    /// The next signal that is to end us, while there is no command that could decide about it. We stop when asked to.
    ///
    /// # Cancel safety
    /// Nothing is lost when this is dropped.
    pub async fn fatal(&mut self) -> Signal {
        loop {
            match self.next().await {
                Signal::SIGTSTP => self.suffer(Signal::SIGTSTP),
                Signal::SIGCONT | Signal::SIGWINCH => {}
                ends => return ends,
            }
        }
    }

    /// Does to this process, and to those it shares a job with, what the signal does by default.
    ///
    /// For a stop signal it returns when the job is continued; at once if nobody could continue it, because the
    /// system does not let such a signal stop an orphaned group.
    pub fn suffer(&mut self, signal: Signal) {
        let job = match signal {
            Signal::SIGTTIN | Signal::SIGTTOU => Signal::SIGTSTP,
            other => other,
        };
        // The others of a pipeline too. Our own copy is blocked and comes from the waiting thread; if it were still
        // on its way when we unblock, it would be suffered twice, and the user would have to type `fg` twice.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(0), job);
        if self.swallow(job) {
            let only = SigSet::from(signal);
            let _ = only.thread_unblock();
            let _ = raise(signal);
            let _ = only.thread_block();
        }
        // What woke us is not for the command.
        self.drain();
        self.kept.retain(|signal| *signal != Signal::SIGCONT);
    }

    /// Waits for our own copy of a signal sent to the whole group. It is not there if it was ignored when this
    /// process was started, or if the group was continued in the same instant.
    fn swallow(&mut self, signal: Signal) -> bool {
        for _ in 0..200 {
            self.drain();
            if let Some(at) = self.kept.iter().position(|kept| *kept == signal) {
                self.kept.remove(at);
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    fn drain(&mut self) {
        while let Ok(signal) = self.arrived.try_recv() {
            self.kept.push_back(signal);
        }
    }
}

/// The signals that were ignored when this process was started, one bit each.
#[cfg(target_os = "linux")]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn ignored() -> u64 {
    0
}
