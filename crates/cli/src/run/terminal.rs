//! The terminal: whose it is, handing it to the command, and taking it back.
//!
//! Surprise: it is handed over at once only when the command's input *and* output are the terminal. In a pipeline
//! (`lockkeeper run … | less`) the others of our group need it; there the command gets it when it asks for it,
//! which is when the system stops it with SIGTTIN or SIGTTOU.

use std::fs::File;
use std::io::IsTerminal;

use rustix::process::{Pid, getpgrp};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The terminal that controls this session. SIGTTOU must be blocked while this is used.
#[derive(Debug)]
pub struct Terminal {
    tty: File,
    handed: bool,
    /// How it was set before the command had it.
    modes: Option<Termios>,
}

impl Terminal {
    /// The controlling terminal, if there is one.
    pub fn find() -> Option<Self> {
        let tty = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { tty, handed: false, modes: None })
    }

    /// Is our group in the foreground?
    pub fn is_ours(&self) -> bool {
        tcgetpgrp(&self.tty) == Ok(getpgrp())
    }

    /// Does the command have it?
    pub fn is_handed(&self) -> bool {
        self.handed
    }

    /// Should the command have it from the start?
    pub fn is_wanted(&self) -> bool {
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && self.is_ours()
    }

    /// Makes the command's group the foreground group.
    pub fn hand_to(&mut self, group: Pid) {
        if self.modes.is_none() {
            self.modes = tcgetattr(&self.tty).ok();
        }
        self.handed = tcsetpgrp(&self.tty, group).is_ok();
    }

    /// Makes our own group the foreground group again, if the command had the terminal.
    pub fn take_back(&mut self) {
        if std::mem::take(&mut self.handed) {
            let _ = tcsetpgrp(&self.tty, getpgrp());
        }
    }

    /// Sets it as it was: a command that was killed may have left it without echo.
    pub fn restore(&self) {
        if let Some(modes) = self.modes.as_ref().filter(|_| self.is_ours()) {
            let _ = tcsetattr(&self.tty, OptionalActions::Drain, modes);
        }
    }
}
