//! The gate: the command's process exists, in its own group, before the command's first instruction runs.
//!
//! `lockkeeper` starts itself as `__gate`, posts the guard on that process's group, hands the terminal over, and
//! only then says "go"; the gate becomes the command by `exec`. If the word never comes, it ends quietly.
//!
//! Surprise: the word comes over a pipe whose *number* is an argument. All three standard streams belong to the
//! command, and `forbid(unsafe_code)` rules out owning a bare number; so the gate opens `/dev/fd/N` (which gives
//! it an end of its own that `exec` closes) and closes N. A named pipe would need a directory to clean up after a
//! kill, and a socket a check of who called.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode};

use nix::sys::signal::SigSet;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;

use crate::exit;

/// A command's process that waits for the word to become the command.
#[derive(Debug)]
pub struct Gate {
    child: Child,
    go: OwnedFd,
}

impl Gate {
    /// Starts the process in a group of its own. `prepare` sets the command's environment.
    ///
    /// Nothing else may start a process at the same time: it would inherit the gate's pipe.
    pub fn close(command: &[OsString], prepare: impl FnOnce(&mut Command)) -> io::Result<Self> {
        let (word, go) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut gate = Command::new(super::own_executable()?);
        gate.arg(super::GATE).arg(word.as_raw_fd().to_string()).args(command).process_group(0);
        prepare(&mut gate);
        fcntl_setfd(&word, FdFlags::empty())?;
        let child = gate.spawn()?;
        Ok(Self { child, go })
    }

    /// The group of the command-to-be.
    pub fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Says go.
    pub fn open(self) -> Child {
        // A gate that was killed meanwhile is noticed where the child is waited for.
        let _ = File::from(self.go).write_all(b"+");
        self.child
    }

    /// Never says go: the process ends without having been the command.
    pub fn abandon(self) {
        let Self { mut child, go } = self;
        drop(go);
        let _ = child.wait();
    }
}

/// The hidden mode `lockkeeper __gate N COMMAND…`.
pub fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let Some(number) = args.next().and_then(|number| number.to_str()?.parse::<i32>().ok()) else {
        return ExitCode::from(exit::BUG);
    };
    // What `lockkeeper` waits for is blocked in it, and would stay so in the command.
    let _ = SigSet::empty().thread_set_mask();
    let word = File::open(format!("/dev/fd/{number}"));
    // Not one of the standard three and nobody else's: this process has opened nothing yet.
    if number > 2 {
        let _ = nix::unistd::close(number);
    }
    let went = word.and_then(|mut word| word.read_exact(&mut [0]));
    let (Ok(()), Some(command)) = (went, args.next()) else { return ExitCode::from(exit::BUG) };
    // `exec` also gives SIGPIPE its default back.
    let error = Command::new(&command).args(args).exec();
    exit::say(&format!("error: `{}` could not be started: {error}", command.display()), None);
    ExitCode::from(exec_code(&error))
}

/// 127 if there is no such command, 126 if it is there but cannot be run, as in shells.
pub fn exec_code(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { exit::NO_COMMAND } else { exit::NO_EXEC }
}

/// Finds out, before anything is taken, that the command cannot be started.
pub fn check(command: &OsStr) -> Result<(), exit::Failure> {
    let missing = |code, why: &str| {
        exit::Failure::new(code, format!("`{}` {why}", command.display()))
            .with_hint("nothing was locked; what stands after `--` is run as it is, not by a shell")
    };
    if command.is_empty() {
        return Err(missing(exit::NO_COMMAND, "is not a command"));
    }
    let path = std::path::Path::new(command);
    if command.as_encoded_bytes().contains(&b'/') {
        return match std::fs::metadata(path) {
            Ok(_) if runs(path) => Ok(()),
            Ok(_) => Err(missing(exit::NO_EXEC, "is not executable")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing(exit::NO_COMMAND, "does not exist")),
            Err(error) => Err(missing(exit::NO_EXEC, &format!("cannot be looked at: {error}"))),
        };
    }
    // What the C library searches when there is no PATH.
    let search = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut found = std::env::split_paths(&search).map(|folder| folder.join(path)).filter(|path| path.is_file());
    let Some(first) = found.next() else { return Err(missing(exit::NO_COMMAND, "was not found on the PATH")) };
    if runs(&first) || found.any(|path| runs(&path)) {
        return Ok(());
    }
    Err(missing(exit::NO_EXEC, "is on the PATH but not executable"))
}

fn runs(path: &std::path::Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}
