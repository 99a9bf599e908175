//! How the program ends: its exit codes, and how a failure is put to people.
//!
//! Lower case, cause, then `hint:`; always on stderr, never in the way of data.

use std::io::Write;

use lockkeeper::{Error, ErrorKind};

/// A check of `verify` failed: something that is promised is not so.
pub const FAILED: u8 = 1;
/// Wrong usage, or input outside the limits.
pub const USAGE: u8 = 64;
/// The store cannot be used.
pub const STORE: u8 = 69;
/// A fault of this program.
pub const BUG: u8 = 70;
/// The lock was not free in time.
pub const BUSY: u8 = 75;
/// The hold was lost while the command was running.
pub const LOST: u8 = 76;
/// The store promises less than is required of it.
pub const CONFIG: u8 = 78;
/// The command is there but cannot be run.
pub const NO_EXEC: u8 = 126;
/// There is no such command.
pub const NO_COMMAND: u8 = 127;
/// What a shell adds to the number of the signal that ended a process.
pub const SIGNAL: u8 = 128;

/// Why the program ends without having done what it was asked.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// A failure with its exit code.
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// The same with a word on what to do now.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with one more way out, besides the one that is told already.
    #[must_use]
    pub fn or_hint(mut self, hint: &str) -> Self {
        self.hint = Some(self.hint.map_or_else(|| hint.to_owned(), |first| format!("{first}; {hint}")));
        self
    }

    /// Says it and gives the exit code.
    pub fn report(&self) -> u8 {
        say(&format!("error: {}", self.message), self.hint.as_deref());
        self.code
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut message = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(next) = cause {
            message = format!("{message}: {next}");
            cause = next.source();
        }
        Self { code: code_of(error.kind()), message, hint: error.hint().map(str::to_owned) }
    }
}

fn code_of(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Timeout => BUSY,
        ErrorKind::Lost => LOST,
        ErrorKind::Invalid | ErrorKind::Mismatch | ErrorKind::Unsupported => USAGE,
        ErrorKind::Unavailable | ErrorKind::NotReplicated | ErrorKind::Denied => STORE,
        ErrorKind::Foreign | ErrorKind::Closed => STORE,
        _ => BUG,
    }
}

/// One message on stderr, in one write so that several processes do not mix theirs.
pub fn say(message: &str, hint: Option<&str>) {
    let mut text = format!("{message}\n");
    if let Some(hint) = hint {
        text.push_str(&format!("  hint: {hint}\n"));
    }
    // Nobody may be reading; that must not end a process that holds a lock.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
