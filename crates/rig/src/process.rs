//! A child process that can be killed, stopped and continued, and that is gone when its owner is.
//!
//! The surprise: it leads a process group of its own, so Ctrl-C in a terminal reaches the owner only, and killing takes
//! the children's children along.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::identity::poll;
use super::reaper::{Reaper, held_back};
use super::{Identity, Trouble};

/// A signal takes effect at once; this bounds how long we look for it.
const SIGNAL_TAKES: Duration = Duration::from_secs(5);

/// A child process. Use this in a law that hurts a program; use [`Server`](super::Server) for a store's server.
///
/// Dropping it kills it and waits for its end; so does the owner's own death.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    identity: Identity,
    reaper: Option<Reaper>,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts a program. Standard streams are as the command says; a piped one is taken with `stdin()` and the like.
    pub fn spawn(command: &mut Command) -> Result<Process, Trouble> {
        let mut process = Process::start(command)?;
        process.reaper = Some(Reaper::guard(process.identity, Signal::KILL.as_raw(), &[])?);
        Ok(process)
    }

    /// Starts a server that is ended with `signal`, and whose `belongings` (told by its pid) are removed, if the owner
    /// dies.
    pub(super) fn serve(
        program: &Path,
        args: &[String],
        signal: Signal,
        belongings: impl FnOnce(u32) -> Vec<PathBuf>,
        dress: impl FnOnce(&mut Command) -> Result<(), Trouble>,
    ) -> Result<Process, Trouble> {
        let mut command = held_back(program, args);
        dress(&mut command)?;
        let mut process = Process::start(&mut command)?;
        process.name = program.display().to_string();
        process.reaper = Some(Reaper::guard(process.identity, signal.as_raw(), &belongings(process.pid()))?);
        let go = process.child.stdin.take().map(|mut pipe| pipe.write_all(b"go\n"));
        match go {
            Some(Ok(())) => Ok(process),
            _ => Err(Trouble::new(format!("cannot start `{}`: its shell ended at once", process.name))),
        }
    }

    fn start(command: &mut Command) -> Result<Process, Trouble> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child =
            command.process_group(0).spawn().map_err(|e| Trouble::new(format!("cannot start `{name}`: {e}")))?;
        let Some(identity) = Identity::of_child(child.id()) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Trouble::new(format!("cannot read /proc/{}/stat of `{name}`", child.id()))
                .hint("the rig needs Linux with /proc mounted"));
        };
        Ok(Process { name, child, identity, reaper: None, ended: None })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.identity.pid
    }

    /// Its pid together with its start time.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Its standard input, once, if it was piped.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Its standard output, once, if it was piped.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its standard error, once, if it was piped.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// How it ended, or nothing while it runs or is stopped.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Sends a signal to it, not to its group; to a process that ended this does nothing.
    pub fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            self.identity.signal(signal);
        }
    }

    /// `kill -9` of its whole group, and waits for its end.
    pub fn kill(&mut self) -> Result<ExitStatus, Trouble> {
        // Only while the child is not reaped is its number surely its own.
        if self.ended().is_none()
            && let Some(group) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.wait(SIGNAL_TAKES)
    }

    /// Stops it (SIGSTOP) and waits until it is stopped.
    pub fn pause(&mut self) -> Result<(), Trouble> {
        self.signal(Signal::STOP);
        self.becomes(true)
    }

    /// Lets it go on (SIGCONT) and waits until it does.
    pub fn resume(&mut self) -> Result<(), Trouble> {
        self.signal(Signal::CONT);
        self.becomes(false)
    }

    fn becomes(&mut self, paused: bool) -> Result<(), Trouble> {
        let seen = poll(SIGNAL_TAKES, || match self.ended() {
            Some(status) => Some(Err(format!("has ended ({status})"))),
            None => (self.identity.is_paused() == paused).then_some(Ok(())),
        });
        let seen = seen.unwrap_or_else(|| Err(if paused { "did not stop" } else { "did not go on" }.to_string()));
        seen.map_err(|what| Trouble::new(format!("`{}` (pid {}) {what}", self.name, self.pid())))
    }

    /// Waits for its end. It keeps running when the time is over; that is an error.
    pub fn wait(&mut self, at_most: Duration) -> Result<ExitStatus, Trouble> {
        match poll(at_most, || self.ended()) {
            Some(status) => {
                self.dismiss();
                Ok(status)
            }
            None => Err(Trouble::new(format!("`{}` (pid {}) still runs after {at_most:?}", self.name, self.pid()))),
        }
    }

    fn dismiss(&mut self) {
        if let Some(reaper) = self.reaper.take() {
            reaper.dismiss();
        }
    }

    /// Lets it live on without an owner.
    pub(super) fn release(mut self) -> Identity {
        self.dismiss();
        self.ended = Some(ExitStatus::default()); // so that the drop leaves it alone
        self.identity
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() && self.kill().is_err() {
            // Cannot be killed (uninterruptible): the reaper, dropped with us, stays at it.
            return;
        }
        self.dismiss();
    }
}
