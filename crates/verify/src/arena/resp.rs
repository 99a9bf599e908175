//! The least of a client of Redis: says a command, hears the reply. For servers that this run started, and so without a
//! password; it looks at them past every layer and proxy.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// A server that is well answers long before.
const ANSWER_TAKES: Duration = Duration::from_secs(5);
/// No reply to what is asked here is longer.
const LONGEST: usize = 64 * 1024 * 1024;
/// Nor nested deeper.
const DEEPEST: u32 = 4;

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Text, of either sort.
    Text(String),
    /// A number.
    Number(i64),
    /// Several.
    List(Vec<Reply>),
    /// Nothing.
    Nil,
}

impl Reply {
    /// The texts of a list.
    pub(crate) fn texts(self) -> Vec<String> {
        let text = |reply| if let Reply::Text(text) = reply { Some(text) } else { None };
        if let Reply::List(parts) = self { parts.into_iter().filter_map(text).collect() } else { Vec::new() }
    }
}

/// One connection.
pub(crate) struct Resp(BufReader<TcpStream>);

impl Resp {
    /// Connects to a port of this machine.
    pub(crate) fn to(port: u16) -> io::Result<Resp> {
        Resp::patient(port, ANSWER_TAKES)
    }

    /// The same, and waits no longer than this for anything.
    pub(crate) fn patient(port: u16, limit: Duration) -> io::Result<Resp> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), limit)?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Resp(BufReader::new(stream)))
    }

    /// Says a command and hears the reply; an error of the server is an error.
    pub(crate) fn ask(&mut self, words: &[&str]) -> io::Result<Reply> {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.get_mut().write_all(text.as_bytes())?;
        self.hear(0)
    }

    /// Waits for a reply that did not come in time before.
    #[cfg(test)]
    pub(crate) fn hear_late(&mut self) -> io::Result<Reply> {
        self.0.get_ref().set_read_timeout(Some(2 * ANSWER_TAKES))?;
        self.hear(0)
    }

    fn hear(&mut self, depth: u32) -> io::Result<Reply> {
        let strange = || io::Error::new(io::ErrorKind::InvalidData, "not a reply of Redis");
        let mut line = String::new();
        if (&mut self.0).take(LONGEST as u64).read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        let (sort, rest) = line.split_at_checked(1).ok_or_else(strange)?;
        let number = || rest.parse::<i64>().map_err(|_| strange());
        let length = || number().map(|length| usize::try_from(length).ok());
        match sort {
            "+" => Ok(Reply::Text(rest.to_owned())),
            "-" => Err(io::Error::other(format!("the server says `{rest}`"))),
            ":" => Ok(Reply::Number(number()?)),
            "$" => match length()? {
                None => Ok(Reply::Nil),
                Some(length) if length <= LONGEST => {
                    let mut text = vec![0; length + 2];
                    self.0.read_exact(&mut text)?;
                    Ok(Reply::Text(String::from_utf8_lossy(&text[..length]).into_owned()))
                }
                Some(_) => Err(strange()),
            },
            "*" if depth < DEEPEST => match length()? {
                None => Ok(Reply::Nil),
                Some(count) => Ok(Reply::List((0..count).map(|_| self.hear(depth + 1)).collect::<io::Result<_>>()?)),
            },
            _ => Err(strange()),
        }
    }
}
