//! The least of a client: says a line, hears one reply.
//!
//! The surprise: it speaks to redis and to a server of echoed lines alike, because a plain line is a command to redis.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use super::SOON;

/// One connection.
pub(crate) struct Talk<S: Read + Write = TcpStream>(pub(crate) BufReader<S>);

impl Talk {
    /// Connects; what is said later has a limit in time.
    pub(crate) fn to(port: u16) -> Talk {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(SOON)).unwrap();
        Talk(BufReader::new(stream))
    }

    /// Whether there is nothing to read now.
    pub(crate) fn is_silent(&self) -> bool {
        let stream = self.0.get_ref();
        stream.set_nonblocking(true).unwrap();
        let seen = stream.peek(&mut [0]);
        stream.set_nonblocking(false).unwrap();
        matches!(seen, Err(e) if e.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits for the end of the connection; how it ended.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest)?;
        assert_eq!(String::from_utf8_lossy(&rest), "", "nothing more was to come");
        Ok(())
    }

    /// Has nothing more to say, and goes on listening.
    pub(crate) fn hang_up(&self) {
        self.0.get_ref().shutdown(Shutdown::Write).unwrap();
    }
}

impl<S: Read + Write> Talk<S> {
    /// Says a line and hears the reply to it.
    pub(crate) fn ask(&mut self, line: &str) -> io::Result<String> {
        self.say(line)?;
        self.hear()
    }

    /// Says a line, in one piece.
    pub(crate) fn say(&mut self, line: &str) -> io::Result<()> {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes())
    }

    /// Hears one reply. Texts come without their length, nothing is `nil`, and lists have blanks between.
    pub(crate) fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        let number = line.get(1..).and_then(|rest| rest.parse::<i64>().ok());
        match (line.chars().next(), number) {
            (Some('$'), Some(..0)) => Ok("nil".to_string()),
            (Some('$'), Some(length)) => {
                let mut text = vec![0; usize::try_from(length).unwrap() + 2];
                self.0.read_exact(&mut text)?;
                Ok(String::from_utf8_lossy(&text).trim_end().to_string())
            }
            (Some('*'), Some(count)) => {
                let parts: io::Result<Vec<String>> = (0..count).map(|_| self.hear()).collect();
                Ok(parts?.join(" "))
            }
            _ => Ok(line.to_string()),
        }
    }
}
