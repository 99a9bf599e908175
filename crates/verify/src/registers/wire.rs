//! What workers and registers say to each other: one JSON object in a line, over a Unix socket.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::history::{Guard, Life, Step, Verdict};

/// No message is longer.
pub(super) const LINE_BYTES: u64 = 4 * 1024;

/// What a worker says. Only an [`Ask`] is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// The first word on a connection: who it is.
    Hello(Life),
    /// Do a step.
    Ask(Ask),
    /// It holds a lock that has no register, until it tells or asks something else.
    Inside,
    /// How far this connection's task is, in all; and that it is not at a register now.
    Tell {
        /// Questions for locks.
        asked: u64,
        /// Of these, held.
        held: u64,
    },
}

/// A step at a register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Whose register: the lock's.
    pub lock: String,
    /// Which of its four.
    pub guard: Guard,
    /// In which acquisition.
    pub op: u64,
    /// What to do.
    pub step: Step,
    /// Does it enter together with other readers?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// With which token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// What to write.
    #[serde(default)]
    pub value: u64,
}

/// What a register answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// How it went.
    pub answer: Verdict,
    /// What was read, or is to be written.
    pub value: u64,
}

/// A message as it is sent.
pub(super) fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A path to a socket that is short enough for the system, which takes 107 bytes: a long one goes by way of its folder,
/// which has to stay open until the socket is.
pub(super) fn within_reach(socket: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a path to a file"));
    };
    if socket.as_os_str().len() < 100 {
        return Ok((socket.to_owned(), None));
    }
    let folder = File::open(folder)?;
    Ok((Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name), Some(folder)))
}
