//! What happens to the command: it stops, it goes on, it ends.
//!
//! Surprise: its end is *seen* here but not collected. As long as the dead process is not collected, its number
//! stays taken, so a guard that acts late cannot hit a stranger's group.

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Something that happened to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It was stopped by this signal.
    Stopped(Signal),
    /// It has ended and waits to be collected.
    Ended,
}

/// Watches a child of this process from a thread of its own; the last event is `Ended`.
pub fn events_of(pid: Pid) -> UnboundedReceiver<Event> {
    let (tell, events) = unbounded_channel();
    std::thread::spawn(move || follow(pid, &tell));
    events
}

fn follow(pid: Pid, tell: &UnboundedSender<Event>) {
    let any = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
    loop {
        match waitid(WaitId::Pid(pid), any | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) if status.stopped() => {
                // Taken off the list, or it would be seen again at once. It may have gone on meanwhile.
                let taken = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
                let signal = taken.ok().flatten().and_then(|status| Signal::from_named_raw(status.stopping_signal()?));
                if let Some(signal) = signal {
                    let _ = tell.send(Event::Stopped(signal));
                }
            }
            Ok(None) | Err(Errno::INTR) => {}
            // Ended; or, with an error, no longer ours to wait for, which comes to the same.
            Ok(Some(_)) | Err(_) => {
                let _ = tell.send(Event::Ended);
                return;
            }
        }
    }
}
