//! A worker's way to the registers: one connection for each of its tasks, one question at a time.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::history::Life;

use super::wire::{Answer, Ask, Request, line, within_reach};

/// One connection to the registers. It blocks: the registers answer at once, or their process is gone.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    answer: String,
}

impl Client {
    /// Connects, and says who it is.
    pub fn connect(socket: &Path, life: Life) -> io::Result<Self> {
        let (path, _folder) = within_reach(socket)?;
        let mut client = Self { stream: BufReader::new(UnixStream::connect(path)?), answer: String::new() };
        client.say(&Request::Hello(life))?;
        Ok(client)
    }

    /// Does a step at a register.
    pub fn ask(&mut self, ask: Ask) -> io::Result<Answer> {
        self.say(&Request::Ask(ask))?;
        self.answer.clear();
        if self.stream.read_line(&mut self.answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&self.answer)?)
    }

    /// Says that its task holds a lock that has no register.
    pub fn inside(&mut self) -> io::Result<()> {
        self.say(&Request::Inside)
    }

    /// Tells how far its task is.
    pub fn tell(&mut self, asked: u64, held: u64) -> io::Result<()> {
        self.say(&Request::Tell { asked, held })
    }

    fn say(&mut self, request: &Request) -> io::Result<()> {
        self.stream.get_mut().write_all(&line(request)?)
    }
}
